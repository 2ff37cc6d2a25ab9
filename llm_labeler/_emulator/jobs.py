"""Batches at work: requests that are handed in together and answered later, in another order."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llm_labeler._emulator.chat import Chat, refused
from llm_labeler._emulator.options import Options
from llm_labeler._emulator.stats import Stats

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request.

    Attributes:
        name: Its custom id.
        status: As of a direct call; None: it was not asked.
        body: The answer or the error, in OpenAI's shape.
    """

    name: str
    status: int | None
    body: Any = None


@dataclass(slots=True)
class Job:
    """A batch: its name, what it is known by, what was asked, and from when on it has ended."""

    name: str
    tag: str
    requests: Sequence[tuple[str, Body]]
    ready_s: float
    created_s: float = field(default_factory=time.time)
    outcomes: list[Outcome] | None = None  # None: it goes on


class Jobs:
    """All batches, oldest first; everything is lost with the server."""

    def __init__(self, chat: Chat, options: Options, stats: Stats) -> None:
        self._chat, self._options, self._stats = chat, options, stats
        self._jobs: dict[str, Job] = {}

    def start(self, requests: Sequence[tuple[str, Body]], name: str, tag: str = "") -> Job:
        """Take requests in, each a custom id and a body in OpenAI's shape; `name` has room for a number."""
        self._stats.batches += 1
        job = Job(name.format(len(self._jobs) + 1), tag, requests, time.monotonic() + self._options.batch_s)
        self._jobs[job.name] = job
        return self._now(job)

    def get(self, name: str) -> Job | None:
        """A batch as it is now."""
        job = self._jobs.get(name)
        return None if job is None else self._now(job)

    def page(self, after: str, size: int) -> tuple[list[Job], bool]:
        """Batches, newest first, that come after one; and whether there are more."""
        names = [*reversed(self._jobs)]
        start = names.index(after) + 1 if after in self._jobs else 0
        return [self._now(self._jobs[name]) for name in names[start : start + size]], start + size < len(
            names
        )

    def _now(self, job: Job) -> Job:
        if job.outcomes is None and time.monotonic() >= job.ready_s:
            job.outcomes = self._outcomes(job)
        return job

    def _outcomes(self, job: Job) -> list[Outcome]:
        """Of a batch that expires or is cancelled every second request is left out."""
        ends = self._options.batch_ends
        if ends == "failed":
            return []
        done = job.requests if ends == "completed" else job.requests[::2]
        left_out = job.requests[1::2] if ends != "completed" else ()
        return [self._outcome(*request) for request in reversed(done)] + [
            Outcome(name, None) for name, _ in left_out
        ]

    def _outcome(self, name: str, body: Body) -> Outcome:
        response = refused(400, body, self._options) or self._chat.reply(body)
        try:
            return Outcome(name, response.status, json.loads(response.body))
        except ValueError:  # a fault of the wire: a batch has no wire of its own
            return Outcome(name, 500, {"error": {"message": "The server had an error."}})
