"""One question and its answer. Whatever goes wrong on the wire becomes an `Answer`, never an exception."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Raw
from msgspec.json import Decoder

from gis_builder._decoding import Malformed, decode
from gis_builder._github.answers import Answer, AnswerKind, bad_reply, classify
from gis_builder._github.exchange import Exchange
from gis_builder._github.nodes import Rate
from gis_builder._github.tokens import Token
from pairkit.address import Address

_RATE = Decoder(Rate | None)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Query(Generic[T]):
    """A question to the server: what is sent, and the type of what comes back."""

    text: str  # a GraphQL query, or a path below the root of a REST API
    answer: Decoder[T]  # of what is under each alias of a GraphQL query, or of the body
    method: str = "GET"  # of a REST API
    body: bytes = b""  # what a REST API is sent, JSON


class Transport(Protocol):
    """Asks a server once, in the language of its API."""

    def ask(self, query: Query[Any]) -> Answer:
        """Ask once.

        Raises:
            AuthError: a GitHub App's installation gives no token to sign with.
            BadReply: a REST path is none on this server.
        """

    def close(self) -> None:
        """Close the connection."""


class GraphQLTransport:
    """Posts GraphQL queries to one server with one token."""

    def __init__(self, address: Address, token: Token, timeout_s: float) -> None:
        self._exchange = Exchange(address, token, timeout_s)

    def ask(self, query: Query[Any]) -> Answer:
        """See `Transport`; the data of an answer is what is under each alias, decoded, or None."""
        raw = self._exchange.post("/graphql", json.dumps({"query": query.text}).encode())
        answer = raw if isinstance(raw, Answer) else classify(raw.status, raw.headers, raw.body)
        return _decoded(answer, query) if answer.data else answer

    def close(self) -> None:
        """See `Transport`."""
        self._exchange.close()


def _decoded(answer: Answer, query: Query[Any]) -> Answer:
    parts: dict[str, Raw] = dict(answer.data)
    rate = parts.pop("rateLimit", None)
    try:
        data = {
            alias: None if bytes(part) == b"null" else decode(part, query.answer)
            for alias, part in parts.items()
        }
        said = decode(rate, _RATE) if rate is not None else None
    except Malformed as error:
        return replace(
            bad_reply(f"the reply does not have what was asked for ({error})"), rate_limit=answer.rate_limit
        )
    kind = answer.kind if data else AnswerKind.BAD_REPLY
    return replace(answer, kind=kind, data=data, cost=said.cost if said else 1)
