"""What goes into a batch, question by question, and what comes back of each, in any order."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from typing import Any
from uuid import uuid4

from llm_labeler._budget import Reservation
from llm_labeler._records import Ask, AskKey, Usage, digest


def custom_id(key: AskKey) -> str:
    """What a question is known by on the server."""
    return digest(*astuple(key))


@dataclass(slots=True)
class Portion:
    """The questions of one batch, growing.

    Attributes:
        tag: What the batch is known by before the server has given it a name.
        lines: The questions as they are handed in.
        size: Bytes of these.
        keys: Custom id to question.
        held: Custom id to its room in the budget.
        bound: The most tokens that all of it can take.
    """

    tag: str = field(default_factory=lambda: f"label-{uuid4().hex}")
    lines: list[bytes] = field(default_factory=list)
    size: int = 0
    keys: dict[str, AskKey] = field(default_factory=dict)
    held: dict[str, Reservation] = field(default_factory=dict)
    bound: Usage = field(default_factory=lambda: Usage(0, 0))

    def add(self, ask: Ask, line: bytes, bound: Usage, reservation: Reservation) -> None:
        """Take a question in."""
        name = custom_id(ask.key)
        self.lines.append(line)
        self.size += len(line) + 1  # what parts it from the next
        self.keys[name], self.held[name] = ask.key, reservation
        self.bound = Usage(
            self.bound.prompt_tokens + bound.prompt_tokens,
            self.bound.completion_tokens + bound.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Line:
    """What a batch says of one question.

    Attributes:
        custom_id: Which question.
        status: As of a direct call; None: it was not asked.
        body: Likewise; where it was not asked, a word that says why, or None.
    """

    custom_id: str
    status: int | None
    body: Any = None
