"""The calls of the Batch API, made with patience: an hour-long job must not end over one lost packet."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from llm_labeler.batch.lines import ENDPOINT
from llm_labeler.provider import CallFailed
from llm_labeler.providers.refusals import Refused
from pairkit.errors import BadReply, ConfigError, PairkitError, RemoteError

if TYPE_CHECKING:
    from llm_labeler.providers.openai_compatible import OpenAiProvider

_TRIES = 6
_LONGEST_WAIT_S = 60.0
_TRANSFER_S = 1800.0  # 200 MB over a slow line
_PAGE = 100
ENDED = frozenset(("completed", "expired", "cancelled", "failed"))


@dataclass(frozen=True, slots=True)
class Seen:
    """A batch as the server describes it."""

    batch_id: str
    state: str
    tag: str = ""
    files: tuple[str, ...] = ()  # ids of the output and error files
    problems: str = ""


class BatchServer:
    """One server's batches.

    Args:
        provider: Who asks.
        pause_s: Seconds before a call that failed is made again; doubled each time.
    """

    def __init__(self, provider: OpenAiProvider, pause_s: float) -> None:
        self._provider, self._channel, self._pause_s = provider, provider.channel, pause_s

    async def upload(self, content: bytes) -> str:
        """Hand a file in; its id."""
        upload = self._channel.upload
        found = await self._patiently(lambda: upload("questions.jsonl", content, timeout_s=_TRANSFER_S))
        return str(_field(found, "id"))

    async def create(self, file_id: str, tag: str) -> Seen:
        """Start a batch. It is never started twice: a call whose end is unknown is looked up by its tag."""
        request = {
            "input_file_id": file_id,
            "endpoint": ENDPOINT,
            "completion_window": "24h",
            "metadata": {"tag": tag},
        }
        try:
            return _seen(_object(await self._channel.post("/batches", request)))
        except Refused as refused:
            failed: Exception = await self._provider.explain(refused)
        except (CallFailed, BadReply) as error:
            failed = error
        if isinstance(failed, PairkitError) and not isinstance(failed, BadReply):
            raise failed
        if (found := await self.find(tag)) is not None:
            return found
        raise RemoteError(
            f"llm {self._provider.name}: no batch could be started ({failed}); run the same command again "
            "to go on"
        )

    async def look(self, batch_id: str) -> Seen:
        """How far a batch is."""
        return _seen(await self._patiently(lambda: self._channel.get(f"/batches/{batch_id}")))

    async def find(self, tag: str) -> Seen | None:
        """The batch with this tag, if one was started."""
        first = path = f"/batches?limit={_PAGE}"
        while True:
            page = await self._patiently(partial(self._channel.get, path))
            batches = [_seen(entry) for entry in _field(page, "data")]
            for batch in batches:
                if batch.tag == tag:
                    return batch
            if not batches or not page.get("has_more"):
                return None
            path = f"{first}&after={batches[-1].batch_id}"

    async def download(self, file_id: str) -> bytes:
        """A file's content."""
        path = f"/files/{file_id}/content"
        return await self._retried(lambda: self._channel.get(path, timeout_s=_TRANSFER_S))

    async def _patiently(self, call: Callable[[], Awaitable[bytes]]) -> dict[str, Any]:
        return _object(await self._retried(call))

    async def _retried(self, call: Callable[[], Awaitable[bytes]]) -> bytes:
        for attempt in range(_TRIES):
            try:
                return await call()
            except Refused as refused:
                if refused.refusal.status in (404, 405):
                    raise self._unknown(refused) from refused
                failed = await self._provider.explain(refused)
                if not isinstance(failed, CallFailed):
                    raise failed from refused
            except CallFailed as error:
                failed = error
            if not failed.retry:
                break
            wait_s = max(failed.retry_after_s or 0.0, self._pause_s * 2.0**attempt)
            await asyncio.sleep(min(_LONGEST_WAIT_S, wait_s))
        raise RemoteError(
            f"llm {self._provider.name}: its batches can't be reached ({failed}); run the same command again "
            "to go on"
        )

    def _unknown(self, refused: Refused) -> ConfigError:
        said = f"HTTP {refused.refusal.status}: {refused.refusal.message}"
        return ConfigError(
            f"llm {self._provider.name}: the server knows no such batch, or has no Batch API ({said}); use "
            "the server and the key that the batch was started with, or run without --batch"
        )


def _seen(value: dict[str, Any]) -> Seen:
    metadata = value.get("metadata")
    errors = value.get("errors")
    problems = errors.get("data") if isinstance(errors, dict) else None
    told = [str(problem.get("message")) for problem in problems or () if isinstance(problem, dict)]
    files = (value.get("output_file_id"), value.get("error_file_id"))
    return Seen(
        str(_field(value, "id")),
        str(_field(value, "status")),
        str(metadata.get("tag", "")) if isinstance(metadata, dict) else "",
        tuple(str(name) for name in files if name),
        "; ".join(told[:3])[:300],
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadReply("the Batch API answered with what is not JSON; run again to go on") from error
    if not isinstance(value, dict):
        raise BadReply("the Batch API answered with what is no object; run again to go on")
    return value


def _field(value: dict[str, Any], name: str) -> Any:
    if value.get(name) is None:
        raise BadReply(f"the Batch API answered without {name!r}; run again to go on")
    return value[name]
