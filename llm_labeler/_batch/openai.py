"""OpenAI's Batch API: a file of questions, a batch over it, and files of what came of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from llm_labeler._batch.lines import Line, Portion
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
from llm_labeler._store import Batch
from pairkit.openai_api.credentials import OPENAI_HOST
from pairkit.printable import one_line

ENDPOINT = "/v1/chat/completions"
_PAGE = 100


class OpenAiBatches(BatchServer):
    """Batches of OpenAI, and of whoever speaks its protocol; their metadata keep the tag."""

    maker = OPENAI_HOST
    most_requests = 50_000
    most_bytes = 200 * 10**6

    def line(self, name: str, body: dict[str, Any], tag: str) -> bytes:  # noqa: ARG002 - metadata have it
        """A question as a line of the file."""
        line = {"custom_id": name, "method": "POST", "url": ENDPOINT, "body": body}
        return json.dumps(line, ensure_ascii=False).encode()

    async def prepare(self, portion: Portion) -> str:
        """Hand the file in; its id. A file alone costs nothing."""
        content = b"".join(line + b"\n" for line in portion.lines)
        upload = partial(self._channel.upload, "/files", "questions.jsonl", content, purpose="batch")
        return identifier(decoded(await self._retried(lambda: upload(timeout_s=TRANSFER_S))), "id")

    async def start(self, portion: Portion, prepared: str) -> Seen:
        """Start a batch over the file."""
        request = {
            "input_file_id": prepared,
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {"tag": portion.tag},
        }
        return _seen(decoded(await self._channel.post("/batches", request)))

    async def look(self, batch_id: str) -> Seen:
        """How far a batch is."""
        return _seen(decoded(await self._get(f"/batches/{batch_id}")))

    async def find(self, tag: str, prepared: str, size: int) -> Seen | None:  # noqa: ARG002 - the tag is there
        """The batch with this tag in its metadata."""
        first = path = f"/batches?limit={_PAGE}"
        pages = Pages()
        while True:
            page = decoded(await self._get(path))
            batches = [_seen(entry) for entry in listed(page, "data")]
            for batch in batches:
                if batch.tag == tag:
                    return batch
            if not batches or page.get("has_more") is not True:
                return None
            path = f"{first}&after={pages.turn(batches[-1].batch_id)}"

    async def results(self, seen: Seen, batch: Batch) -> list[Line]:  # noqa: ARG002 - lines have custom ids
        """The lines of both files."""
        files = [await self._get(f"/files/{name}/content", most_bytes=MOST_RESULTS) for name in seen.files]
        return [line for content in files for line in read_lines(content)]


def read_lines(content: bytes) -> Iterator[Line]:
    """The lines of an output or error file; those that can't be understood are left out."""
    for value in objects_of(content):
        if not isinstance(name := value.get("custom_id"), str):
            continue
        response = value.get("response", ())
        if response is None:
            yield Line(name, None)
        elif isinstance(response, dict) and isinstance(status := response.get("status_code"), int):
            yield Line(name, status, response.get("body"))


def objects_of(content: bytes) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    for text in content.splitlines():
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _seen(value: dict[str, Any]) -> Seen:
    metadata, errors = value.get("metadata"), value.get("errors")
    tag = metadata.get("tag") if isinstance(metadata, dict) else None
    problems = errors.get("data") if isinstance(errors, dict) else None
    told = [
        problem["message"]
        for problem in (problems if isinstance(problems, list) else ())
        if isinstance(problem, dict) and isinstance(problem.get("message"), str)
    ]
    files = (name for name in ("output_file_id", "error_file_id") if value.get(name) is not None)
    return Seen(
        identifier(value, "id"),
        identifier(value, "status"),
        tag if isinstance(tag, str) else "",
        tuple(identifier(value, name) for name in files),
        one_line("; ".join(told[:3])),
    )
