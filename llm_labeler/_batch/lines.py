"""A batch's two files: the questions that go in, and the lines that come back in any order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field
from typing import Any

from llm_labeler._budget import Reservation
from llm_labeler._records import Ask, AskKey, Usage, digest

# OpenAI's limits of one batch.
MOST_REQUESTS = 50_000
MOST_BYTES = 200 * 10**6
ENDPOINT = "/v1/chat/completions"


def custom_id(key: AskKey) -> str:
    """What a question is known by on the server."""
    return digest(*astuple(key))


def request_line(ask: Ask, body: dict[str, Any]) -> bytes:
    """A question as a line of the file."""
    line = {"custom_id": custom_id(ask.key), "method": "POST", "url": ENDPOINT, "body": body}
    return json.dumps(line, ensure_ascii=False).encode() + b"\n"


@dataclass(slots=True)
class Portion:
    """The questions of one batch, growing."""

    content: bytearray = field(default_factory=bytearray)
    keys: dict[str, AskKey] = field(default_factory=dict)
    held: dict[str, Reservation] = field(default_factory=dict)  # by custom id
    bound: Usage = field(default_factory=lambda: Usage(0, 0))

    def has_room_for(self, line: bytes) -> bool:
        """Whether one more line keeps within the limits."""
        return len(self.keys) < MOST_REQUESTS and len(self.content) + len(line) <= MOST_BYTES

    def add(self, ask: Ask, line: bytes, bound: Usage, reservation: Reservation) -> None:
        """Take a question in."""
        name = custom_id(ask.key)
        self.content += line
        self.keys[name], self.held[name] = ask.key, reservation
        self.bound = Usage(
            self.bound.prompt_tokens + bound.prompt_tokens,
            self.bound.completion_tokens + bound.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Line:
    """What a batch says of one question."""

    custom_id: str
    status: int | None  # None: it was not asked
    body: Any


def read_lines(content: bytes) -> Iterator[Line]:
    """The lines of an output or error file; those that can't be understood are left out."""
    for text in content.splitlines():
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if not isinstance(value, dict) or not isinstance(name := value.get("custom_id"), str):
            continue
        response = value.get("response", ())
        if response is None:
            yield Line(name, None, None)
        elif isinstance(response, dict) and isinstance(status := response.get("status_code"), int):
            yield Line(name, status, response.get("body"))
