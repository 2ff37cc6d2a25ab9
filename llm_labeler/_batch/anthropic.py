"""Anthropic's Message Batches API: questions in one request, their results as JSON lines once all have ended.

A batch has no name of our own there, and a start whose end is unknown has to be found again. So each
question's custom id ends with the batch's tag, and before a batch is started the newest one there is noted:
ours is among those that came later, has as many questions, and its results bear the tag.

Source: Anthropic's API reference, `/v1/messages/batches`: at most 100,000 requests or 256 MB, custom ids of
at most 64 letters, digits, `_` and `-`, results for 29 days.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from llm_labeler._batch.lines import Line, Portion
from llm_labeler._batch.openai import objects_of
from llm_labeler._batch.server import (
    MOST_RESULTS,
    TRANSFER_S,
    BatchServer,
    Pages,
    Seen,
    decoded,
    identifier,
    listed,
)
from llm_labeler._providers.anthropic import error_status
from llm_labeler._store import Batch
from pairkit.errors import ConfigError
from pairkit.openai_api.credentials import ANTHROPIC_HOST

_BATCHES = "/messages/batches"
_PAGE = 100
_WHY = {"canceled": "cancelled", "expired": "expired"}


class AnthropicBatches(BatchServer):
    """Batches of Anthropic."""

    maker = ANTHROPIC_HOST
    most_requests = 100_000
    most_bytes = 250 * 10**6

    def line(self, name: str, body: dict[str, Any], tag: str) -> bytes:
        """A question as one of the requests."""
        request = {"custom_id": f"{name}-{_mark(tag)}", "params": body}
        return json.dumps(request, ensure_ascii=False).encode()

    async def prepare(self, portion: Portion) -> str:  # noqa: ARG002 - it is handed in by starting it
        """The newest batch that is there; nothing where there is none."""
        newest = listed(decoded(await self._get(f"{_BATCHES}?limit=1")), "data")
        return identifier(newest[0], "id") if newest else ""

    async def start(self, portion: Portion, prepared: str) -> Seen:  # noqa: ARG002 - it serves in finding it
        """Hand all questions in."""
        content = b'{"requests":[' + b",".join(portion.lines) + b"]}"
        found = decoded(await self._channel.post_json(_BATCHES, content, timeout_s=TRANSFER_S))
        return _seen(found)

    async def look(self, batch_id: str) -> Seen:
        """How far a batch is."""
        return _seen(decoded(await self._get(f"{_BATCHES}/{batch_id}")))

    async def find(self, tag: str, prepared: str, size: int) -> Seen | None:
        """The batch whose results bear the tag; those that may be ours have to end before that is known."""
        for entry in await self._later_than(prepared):
            if _size(entry) == size and (seen := await self._is_ours(_seen(entry), tag)):
                return seen
        return None

    async def results(self, seen: Seen, batch: Batch) -> list[Line]:  # noqa: ARG002 - lines have custom ids
        """The lines, by custom ids without the tag."""
        found = (_line(value) for value in objects_of(await self._lines(seen)))
        return [line for line in found if line is not None]

    async def _later_than(self, prepared: str) -> list[dict[str, Any]]:
        """The batches that came after one, newest first."""
        found: list[dict[str, Any]] = []
        path, pages = f"{_BATCHES}?limit={_PAGE}", Pages()
        while True:
            page = decoded(await self._get(path))
            for entry in (entries := listed(page, "data")):
                if identifier(entry, "id") == prepared:
                    return found
                found.append(entry)
            if not entries or page.get("has_more") is not True:
                return found
            path = f"{_BATCHES}?limit={_PAGE}&after_id={pages.turn(identifier(entries[-1], 'id'))}"

    async def _is_ours(self, seen: Seen, tag: str) -> Seen | None:
        while seen.state != "completed":
            await asyncio.sleep(self._poll_s)
            seen = await self.look(seen.batch_id)
        try:
            content = await self._lines(seen)
        except ConfigError:  # its results are gone, so it is not of today
            return None
        names = (value.get("custom_id") for value in objects_of(content))
        mark = f"-{_mark(tag)}"
        return seen if any(isinstance(name, str) and name.endswith(mark) for name in names) else None

    async def _lines(self, seen: Seen) -> bytes:
        # Not where `results_url` leads: the key is for this server alone.
        return await self._get(f"{_BATCHES}/{seen.batch_id}/results", most_bytes=MOST_RESULTS)


def _mark(tag: str) -> str:
    return tag.removeprefix("label-")


def _seen(value: dict[str, Any]) -> Seen:
    state = identifier(value, "processing_status")
    return Seen(identifier(value, "id"), "completed" if state == "ended" else "in_progress")


def _size(value: dict[str, Any]) -> int:
    """How many questions a batch has, whatever became of them."""
    counts = value.get("request_counts")
    numbers = counts.values() if isinstance(counts, dict) else ()
    return sum(number for number in numbers if isinstance(number, int))


def _line(value: dict[str, Any]) -> Line | None:
    name, result = value.get("custom_id"), value.get("result")
    if not isinstance(name, str) or not isinstance(result, dict):
        return None
    name = name.partition("-")[0]
    match result.get("type"):
        case "succeeded":
            return Line(name, 200, result.get("message"))
        case "errored":
            return Line(name, error_status(result.get("error")), result.get("error"))
        case "canceled" | "expired" as why:
            return Line(name, None, _WHY[why])
        case _:
            return None
