"""OpenAI's Batch API: upload a file of questions, start a batch, and download the results.

Transfers are retried, since a job of hours must not end because of one lost packet.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from io import BytesIO
from itertools import chain
from math import ceil
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from llm_labeler.clients.chat_completions import reply_of
from llm_labeler.dispatch.answer_store import SubmittedBatch
from llm_labeler.dispatch.budget import UNBILLED, Reservation, Spending, charge_answer
from llm_labeler.records import (
    Ask,
    AskKey,
    CallFailed,
    Failure,
    LlmReply,
    Prices,
    StoredAnswer,
    TokenUsage,
    content_hash,
)
from pairkit.base.errors import BadReply, ConfigError, PairkitError, RemoteError
from pairkit.base.openai_api.credentials import OPENAI_HOST
from pairkit.base.openai_api.refusals import (
    NoAnswer,
    Refusal,
    RefusedCall,
    patiently,
    read_json,
)

if TYPE_CHECKING:
    from llm_labeler.clients.llm_server import ServerProvider


_ENDPOINT = "/v1/chat/completions"
_TRIES = 6
_TRANSFER_S = 1800.0  # 200 MB over a slow line
_MAX_RESULT_BYTES = 1 << 30  # 50,000 answers of 20 kB
_MAX_BYTES = 8 << 20  # of other responses
_PAGE = 100
_MAX_PAGES = 100
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
ENDED = frozenset(("completed", "expired", "cancelled", "failed"))


def custom_id(key: AskKey) -> str:
    """The id of a question on the server."""
    return content_hash(*astuple(key))


@dataclass(slots=True)
class BatchDraft:
    """A batch that is not submitted yet."""

    tag: str = field(default_factory=lambda: f"label-{uuid4().hex}")
    lines: list[bytes] = field(default_factory=list)
    size: int = 0
    keys: dict[str, AskKey] = field(default_factory=dict)
    reservations: dict[str, Reservation] = field(default_factory=dict)
    max_usage: TokenUsage = field(default_factory=lambda: TokenUsage(0, 0))

    def add(
        self, ask: Ask, line: bytes, max_usage: TokenUsage, reservation: Reservation
    ) -> None:
        """Add a question."""
        name = custom_id(ask.key)
        self.lines.append(line)
        self.size += len(line) + 1  # the line break
        self.keys[name] = ask.key
        self.reservations[name] = reservation
        self.max_usage += max_usage


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """The server's description of a batch."""

    batch_id: str
    state: str
    tag: str
    files: tuple[str, ...]
    problem: str


@dataclass(frozen=True, slots=True)
class ResultLine:
    """The result of one question of a batch."""

    custom_id: str
    status: int | None  # None if the question wasn't asked
    body: Any


class OpenAiBatches:
    """The Batch API of OpenAI and compatible servers; our tag is in a batch's metadata."""

    maker = OPENAI_HOST
    max_requests = 50_000
    max_bytes = 200 * 10**6

    def __init__(self, provider: ServerProvider, poll_s: float) -> None:
        self._provider = provider
        self._channel = provider.channel
        self._pause_s = min(1.0, poll_s)

    def line(self, ask: Ask) -> bytes:
        """The line of a question in the file."""
        dialect = self._provider.dialect
        line = {
            "custom_id": custom_id(ask.key),
            "method": "POST",
            "url": _ENDPOINT,
            "body": dialect.body(ask, dialect.form(ask)),
        }
        return json.dumps(line, ensure_ascii=False).encode()

    async def upload(self, draft: BatchDraft) -> str:
        """Upload the file of a batch, which costs nothing; return its id."""
        upload = partial(
            self._channel.upload,
            "/files",
            "questions.jsonl",
            b"".join(line + b"\n" for line in draft.lines),
            purpose="batch",
            timeout_s=_TRANSFER_S,
        )
        response = await self._retried(upload)
        return _identifier(_decoded(response), "id")

    async def create(self, draft: BatchDraft, file_id: str) -> BatchStatus:
        """Start a batch, never twice: after a failed call, the batch is looked up by its tag."""
        request = {
            "input_file_id": file_id,
            "endpoint": _ENDPOINT,
            "completion_window": "24h",
            "metadata": {"tag": draft.tag},
        }
        failed: Exception
        try:
            response = await self._channel.post("/batches", request)
            return _batch_status(_decoded(response))
        except RefusedCall as refused:
            failed = await self._call_failure(refused)
        except (NoAnswer, BadReply) as error:
            failed = error
        batch = await self.find(draft.tag)
        if batch is not None:
            return batch
        raise RemoteError(
            f"llm {self._provider.name}: no batch could be started ({failed}); run the same command again"
            " to continue"
        )

    async def status(self, batch_id: str) -> BatchStatus:
        """Fetch the state of a batch."""
        return _batch_status(_decoded(await self._get(f"/batches/{batch_id}")))

    async def find(self, tag: str) -> BatchStatus | None:
        """The batch with this tag, if one was started."""
        after = ""
        for _ in range(_MAX_PAGES):  # the newest batches come first
            page = _decoded(await self._get(f"/batches?limit={_PAGE}{after}"))
            entries = _field(page, "data")
            if not isinstance(entries, list):
                raise BadReply(
                    "the Batch API's response has no list of batches; run again to continue"
                )
            batches = [_batch_status(entry) for entry in entries]
            for batch in batches:
                if batch.tag == tag:
                    return batch
            if not batches or _field(page, "has_more") is not True:
                return None
            after = f"&after={batches[-1].batch_id}"
        raise BadReply(
            f"the Batch API lists {_MAX_PAGES} pages of batches without {tag}; run again to continue, or ask"
            " the questions without a batch, with --retry-failed"
        )

    async def results(self, status: BatchStatus) -> Iterator[ResultLine]:
        """The readable lines of both result files, decoded one by one."""
        get = partial(self._get, timeout_s=_TRANSFER_S, most_bytes=_MAX_RESULT_BYTES)
        contents = [await get(f"/files/{name}/content") for name in status.files]
        return chain.from_iterable(map(read_lines, contents))

    async def _get(
        self, path: str, *, timeout_s: float | None = None, most_bytes: int = _MAX_BYTES
    ) -> bytes:
        get = partial(
            self._channel.get, path, timeout_s=timeout_s, most_bytes=most_bytes
        )
        return await self._retried(get)

    async def _retried(self, call: Callable[[], Awaitable[bytes]]) -> bytes:
        failed: Exception
        try:
            return await patiently(call, tries=_TRIES, pause_s=self._pause_s)
        except RefusedCall as refused:
            refusal = refused.refusal
            if refusal.status in (404, 405):
                raise ConfigError(
                    f"llm {self._provider.name}: the server has no such batch or file, or no Batch API (HTTP"
                    f" {refusal.status}: {refusal.message}); use the server and the key that the batch was"
                    " started with, or run without --batch, with --retry-failed"
                ) from refused
            failed = await self._call_failure(refused)
        except NoAnswer as missed:
            failed = missed
        raise RemoteError(
            f"llm {self._provider.name}: the Batch API failed ({failed}); fix the cause or wait, then run the"
            " same command again to continue"
        )

    async def _call_failure(self, refused: RefusedCall) -> CallFailed:
        """The failure of one call; raises the error of a refusal that concerns all calls."""
        failed = await self._provider.explain(refused)
        if isinstance(failed, CallFailed):
            return failed
        raise failed from refused


@dataclass(slots=True)
class BatchResults:
    """The results of a batch, by custom id."""

    answers: dict[str, StoredAnswer] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    charges: dict[str, Spending] = field(
        default_factory=lambda: defaultdict(lambda: UNBILLED)
    )
    problem: PairkitError | None = None


async def read_results(
    provider: ServerProvider,
    batch: SubmittedBatch,
    state: str,
    lines: Iterable[ResultLine],
    discount: float,
) -> BatchResults:
    """Match result lines with questions; the first answer to a question counts."""
    results = BatchResults()
    fatal_statuses = set()
    priced = partial(_priced, provider.prices, batch, discount)
    for line in lines:
        name = line.custom_id
        if name not in batch.keys or name in results.answers:
            continue
        try:
            answer = priced(name, _reply(line, state))
            results.answers[name] = answer
            results.charges[name] = charge_answer(answer)
            results.failures.pop(name, None)
        except CallFailed as failed:
            results.failures[name] = _failure(batch, name, failed)
            if failed.maybe_billed:
                empty = priced(name, LlmReply("", usage=failed.usage))
                results.charges[name] = charge_answer(empty)
        except RefusedCall as refused:
            status = refused.refusal.status
            if status in fatal_statuses:
                continue
            error = await provider.explain(refused)
            if isinstance(error, CallFailed):
                results.failures[name] = _failure(batch, name, error)
            else:  # the same error for all lines with this status
                results.problem = error
                fatal_statuses.add(status)
    # If all questions were refused, the cause may not be the questions.
    if not results.answers:
        for name, failure in results.failures.items():
            results.failures[name] = replace(failure, final=False)
    for name in batch.keys.keys() - results.answers.keys() - results.failures.keys():
        results.failures[name] = _failure(batch, name, _unasked(state))
    return results


def _priced(
    prices: Prices, batch: SubmittedBatch, discount: float, name: str, reply: LlmReply
) -> StoredAnswer:
    """An answer with its cost; unknown usage is charged at the question's share of the batch's bound."""
    usage = reply.usage
    if usage is None:
        count = len(batch.keys)
        usage = TokenUsage(
            ceil(batch.max_usage.prompt_tokens / count),
            ceil(batch.max_usage.completion_tokens / count),
        )
    cost = prices.cost(usage)
    if cost is not None:
        cost *= discount
    answer = replace(reply, usage=usage)
    return StoredAnswer(batch.keys[name], answer, cost, reply.usage is None)


def read_lines(content: bytes) -> Iterator[ResultLine]:
    """The readable lines of an output or error file."""
    for text in BytesIO(content):
        try:
            value = read_json(text)
        except ValueError:
            continue
        name = _field(value, "custom_id")
        response = _field(value, "response")
        status = _field(response, "status_code")
        if not isinstance(status, int):
            status = None
        if isinstance(name, str):
            yield ResultLine(name, status, _field(response, "body"))


def _reply(line: ResultLine, state: str) -> LlmReply:
    if line.status is None:
        raise _unasked(state)
    if line.status != 200:
        raise RefusedCall(Refusal.from_value(line.status, line.body), {})
    return reply_of(line.body)


def _unasked(state: str) -> CallFailed:
    return CallFailed(
        "timeout", f"the batch was {state} before the question was answered"
    )


def _failure(batch: SubmittedBatch, name: str, failed: CallFailed) -> Failure:
    return Failure(batch.keys[name], failed.reason, failed.detail, 1, failed.final)


def _batch_status(value: object) -> BatchStatus:
    tag = _field(_field(value, "metadata"), "tag")
    problems = _field(_field(value, "errors"), "data")
    names = ("output_file_id", "error_file_id")
    return BatchStatus(
        batch_id=_identifier(value, "id"),
        state=_identifier(value, "status"),
        tag=tag if isinstance(tag, str) else "",
        # Some servers send an empty name for a file that doesn't exist.
        files=tuple(_identifier(value, name) for name in names if _field(value, name)),
        problem=Refusal.from_value(200, problems).message if problems else "",
    )


def _decoded(body: bytes) -> object:
    """The JSON of an answer."""
    try:
        return read_json(body)
    except ValueError as error:
        raise BadReply(
            "the Batch API's response is not usable JSON; run again to continue"
        ) from error


def _field(value: object, name: str) -> object:
    """A field of a JSON object; None if there is none."""
    return value.get(name) if isinstance(value, dict) else None


def _identifier(value: object, name: str) -> str:
    """A name from the server that is safe as part of a path."""
    identifier = _field(value, name)
    if not isinstance(identifier, str) or not _NAME.fullmatch(identifier):
        raise BadReply(
            f"the Batch API's response has no valid {name!r}; run again to continue"
        )
    return identifier
