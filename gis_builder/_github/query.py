"""A question to the server, and what its answer has to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec.json import Decoder

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Query(Generic[T]):
    """What is sent, and the type of what comes back."""

    text: str  # a GraphQL query, or a path below the root of a REST API
    answer: Decoder[T]  # of what is under each alias of a GraphQL query, or of the body
