"""The calls of the Batch API, made with patience: an hour-long job must not end over one lost packet."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from llm_labeler._batch.lines import ENDPOINT
from llm_labeler._provider import CallFailed
from pairkit.errors import BadReply, ConfigError, PairkitError, RemoteError
from pairkit.openai_api.patience import patiently
from pairkit.openai_api.refusals import NoAnswer, Refused
from pairkit.printable import one_line

if TYPE_CHECKING:
    from llm_labeler._providers.openai_compatible import OpenAiProvider

_TRIES = 6
_TRANSFER_S = 1800.0  # 200 MB over a slow line
_MOST_BYTES = 1 << 30  # of a file: 50,000 answers of 20 kB
_PAGE = 100
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
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
        upload = partial(self._channel.upload, "/files", "questions.jsonl", content, purpose="batch")
        found = await self._patiently(lambda: upload(timeout_s=_TRANSFER_S))
        return _id(found, "id")

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
        except (NoAnswer, BadReply) as error:
            failed = error
        if isinstance(failed, PairkitError) and not isinstance(failed, BadReply):
            raise failed
        if (found := await self.find(tag)) is not None:
            return found
        raise RemoteError(
            f"llm {self._provider.name}: no batch could be started ({failed}); run the same command again "
            "to continue"
        )

    async def look(self, batch_id: str) -> Seen:
        """How far a batch is."""
        return _seen(await self._patiently(lambda: self._channel.get(f"/batches/{batch_id}")))

    async def find(self, tag: str) -> Seen | None:
        """The batch with this tag, if one was started."""
        first = path = f"/batches?limit={_PAGE}"
        passed = set[str]()
        while True:
            page = await self._patiently(partial(self._channel.get, path))
            batches = _listed(page)
            for batch in batches:
                if batch.tag == tag:
                    return batch
            if not batches or page.get("has_more") is not True:
                return None
            if (last := batches[-1].batch_id) in passed:
                raise BadReply(
                    f"the Batch API lists the same batches again after {last}; run again to continue"
                )
            passed.add(last)
            path = f"{first}&after={last}"

    async def download(self, file_id: str) -> bytes:
        """A file's content."""
        path = f"/files/{file_id}/content"
        return await self._retried(
            lambda: self._channel.get(path, timeout_s=_TRANSFER_S, most_bytes=_MOST_BYTES)
        )

    async def _patiently(self, call: Callable[[], Awaitable[bytes]]) -> dict[str, Any]:
        return _object(await self._retried(call))

    async def _retried(self, call: Callable[[], Awaitable[bytes]]) -> bytes:
        failed: Exception
        try:
            return await patiently(call, tries=_TRIES, pause_s=self._pause_s)
        except Refused as refused:
            if refused.refusal.status in (404, 405):
                raise self._unknown(refused) from refused
            failed = await self._provider.explain(refused)
            if not isinstance(failed, CallFailed):
                raise failed from refused
        except NoAnswer as missed:
            failed = missed
        raise RemoteError(
            f"llm {self._provider.name}: its batches can't be reached ({failed}); run the same command again "
            "to continue"
        )

    def _unknown(self, refused: Refused) -> ConfigError:
        said = f"HTTP {refused.refusal.status}: {refused.refusal.message}"
        return ConfigError(
            f"llm {self._provider.name}: the server knows no such batch, or has no Batch API ({said}); use "
            "the server and the key that the batch was started with, or run without batch (--batch)"
        )


def _listed(page: dict[str, Any]) -> list[Seen]:
    entries = page.get("data")
    if not isinstance(entries, list):
        raise BadReply("the Batch API answered without a list; run again to continue")
    return [_seen(entry) for entry in entries]


def _seen(value: Any) -> Seen:
    if not isinstance(value, dict):
        raise BadReply("the Batch API lists a batch that is no object; run again to continue")
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
        _id(value, "id"),
        _id(value, "status"),
        tag if isinstance(tag, str) else "",
        tuple(_id(value, name) for name in files),
        one_line("; ".join(told[:3])),
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadReply("the Batch API answered with what is not JSON; run again to continue") from error
    if not isinstance(value, dict):
        raise BadReply("the Batch API answered with what is no object; run again to continue")
    return value


def _id(value: dict[str, Any], name: str) -> str:
    """A name that the server gave to something, and that becomes part of a path."""
    found = value.get(name)
    if not isinstance(found, str) or not _NAME.fullmatch(found):
        raise BadReply(f"the Batch API answered without a usable {name!r}; run again to continue")
    return found
