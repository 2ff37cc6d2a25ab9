"""Gemini's Batch API: questions in one request, and their results in the batch itself once it has ended.

Questions go in the request, 20 MB at a time, and not in a file of 2 GB: no texts are left behind on the
server in files that somebody has to delete, and a batch begins by one call. Its display name is the tag.

Source: Gemini's API reference, `models.batchGenerateContent`, and the types of Google's SDK google-genai
3.4.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

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
from llm_labeler._providers.gemini import GeminiDialect
from llm_labeler._store import Batch
from pairkit.openai_api.credentials import GEMINI_HOST
from pairkit.printable import one_line

_PAGE = 20  # the list may hold all results of each
_PREFIX = "batches/"
_STATES = {
    "SUCCEEDED": "completed",
    "PARTIALLY_SUCCEEDED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "EXPIRED": "expired",
}
# Of google.rpc.Code, which errors of single questions have, to the status that a direct call would bring.
_STATUSES = {
    1: 499,
    3: 400,
    4: 504,
    5: 404,
    7: 403,
    8: 429,
    9: 400,
    10: 409,
    11: 400,
    12: 501,
    14: 503,
    16: 401,
}


class GeminiBatches(BatchServer):
    """Batches of Gemini."""

    maker = GEMINI_HOST
    most_requests = 50_000
    most_bytes = 19 * 10**6  # of 20 MB, less what stands around the questions

    def line(self, name: str, body: dict[str, Any], tag: str) -> bytes:  # noqa: ARG002 - the batch has it
        """A question as one of the requests."""
        return json.dumps({"request": body, "metadata": {"key": name}}, ensure_ascii=False).encode()

    async def prepare(self, portion: Portion) -> str:  # noqa: ARG002 - it is handed in by starting it
        """Nothing."""
        return ""

    async def start(self, portion: Portion, prepared: str) -> Seen:  # noqa: ARG002 - nothing was
        """Hand all questions in."""
        name = json.dumps(portion.tag).encode()
        content = (
            b'{"batch":{"displayName":' + name + b',"inputConfig":{"requests":{"requests":['
            b"%b]}}}}" % b",".join(portion.lines)
        )
        path = f"{_model_path(self._provider.dialect)}:batchGenerateContent"
        return _seen(decoded(await self._channel.post_json(path, content, timeout_s=TRANSFER_S)))

    async def look(self, batch_id: str) -> Seen:
        """How far a batch is."""
        return _seen(await self._batch(batch_id))

    async def find(self, tag: str, prepared: str, size: int) -> Seen | None:  # noqa: ARG002 - it has the tag
        """The batch with this display name."""
        first = path = f"/batches?pageSize={_PAGE}"
        pages = Pages()
        while True:
            page = decoded(await self._get(path, most_bytes=MOST_RESULTS))
            for entry in listed({"operations": [], **page}, "operations"):
                if (seen := _seen(entry)).tag == tag:
                    return seen
            token = page.get("nextPageToken")
            if not isinstance(token, str) or not token:
                return None
            path = f"{first}&pageToken={quote(pages.turn(token), safe='')}"

    async def results(self, seen: Seen, batch: Batch) -> list[Line]:
        """The responses by their keys; where the server gave no key back, by their order, which is kept."""
        value = await self._batch(seen.batch_id)
        responses = _responses(value)
        keys = [_key(response) for response in responses]
        if not any(keys) and len(responses) == len(batch.keys):
            keys = [*batch.keys]
        found = (_line(key, response) for key, response in zip(keys, responses, strict=True) if key)
        return [line for line in found if line is not None]

    async def _batch(self, batch_id: str) -> dict[str, Any]:
        return decoded(await self._get(f"/batches/{batch_id}", most_bytes=MOST_RESULTS))


def _model_path(dialect: object) -> str:
    return dialect.model_path if isinstance(dialect, GeminiDialect) else ""


def _seen(value: dict[str, Any]) -> Seen:
    about, error = value.get("metadata"), value.get("error")
    about = about if isinstance(about, dict) else {}
    state, tag = about.get("state"), about.get("displayName")
    state = state.partition("STATE_")[2] if isinstance(state, str) else ""
    said = error.get("message") if isinstance(error, dict) else None
    if not state and value.get("done") is True:
        state = "FAILED" if said else "SUCCEEDED"
    return Seen(
        identifier(value, "name", _PREFIX),
        _STATES.get(state, "in_progress"),
        tag if isinstance(tag, str) else "",
        problems=one_line(said) if isinstance(said, str) else "",
    )


def _responses(value: dict[str, Any]) -> list[Any]:
    """What came of the questions; it stands in the operation's response or in its metadata."""
    metadata = value.get("metadata")
    for place in (value.get("response"), metadata.get("output") if isinstance(metadata, dict) else None):
        outer = place.get("inlinedResponses") if isinstance(place, dict) else None
        inner = outer.get("inlinedResponses") if isinstance(outer, dict) else None
        if isinstance(inner, list):
            return inner
    return []


def _key(response: Any) -> str:
    metadata = response.get("metadata") if isinstance(response, dict) else None
    key = metadata.get("key") if isinstance(metadata, dict) else None
    return key if isinstance(key, str) else ""


def _line(key: str, response: Any) -> Line | None:
    if not isinstance(response, dict):
        return None
    if isinstance(error := response.get("error"), dict):
        code = error.get("code")
        known = code if isinstance(code, int) else 0
        status = known if 400 <= known < 600 else _STATUSES.get(known, 500)
        return Line(key, status, {"error": error})
    return Line(key, 200, response["response"]) if "response" in response else None
