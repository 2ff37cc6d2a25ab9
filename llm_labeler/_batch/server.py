"""A server with batches, asked with patience: an hour-long job must not end over one lost packet."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from llm_labeler._batch.lines import Line, Portion
from llm_labeler._provider import CallFailed
from llm_labeler._store import Batch
from pairkit.errors import BadReply, ConfigError, PairkitError, RemoteError
from pairkit.openai_api.channel import MOST_BYTES
from pairkit.openai_api.patience import patiently
from pairkit.openai_api.refusals import NoAnswer, Refused

if TYPE_CHECKING:
    from llm_labeler._providers.server import ServerProvider

_TRIES = 6
TRANSFER_S = 1800.0  # 200 MB over a slow line
MOST_RESULTS = 1 << 30  # bytes: 50,000 answers of 20 kB
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
ENDED = frozenset(("completed", "expired", "cancelled", "failed"))


@dataclass(frozen=True, slots=True)
class Seen:
    """A batch as the server describes it.

    Attributes:
        batch_id: Its name there.
        state: One of `ENDED`, or whatever the server calls one that goes on.
        tag: What it was started with.
        files: Of OpenAI's the ids of the files with what came of it.
        problems: Why it failed, in the server's words.
    """

    batch_id: str
    state: str
    tag: str = ""
    files: tuple[str, ...] = ()
    problems: str = ""


class QueueFull(Exception):  # noqa: N818 - named after what is the case
    """The server takes no further batch now, and has not begun this one.

    Attributes:
        detail: What it said.
    """

    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(detail)


class BatchServer(ABC):
    """One server's batches.

    Attributes:
        maker: The host that is known to take half the price; whoever else has the API may give no discount.
        most_requests: Of one batch.
        most_bytes: Of one batch.

    Args:
        provider: Who asks.
        poll_s: Seconds between two looks at a batch.
    """

    maker: ClassVar[str]
    most_requests: ClassVar[int]
    most_bytes: ClassVar[int]

    def __init__(self, provider: ServerProvider, poll_s: float) -> None:
        self._provider, self._channel = provider, provider.channel
        self._poll_s, self._pause_s = poll_s, min(1.0, poll_s)

    def has_room_for(self, portion: Portion, line: bytes) -> bool:
        """Whether one more line keeps within the limits."""
        return len(portion.keys) < self.most_requests and portion.size + len(line) <= self.most_bytes

    @abstractmethod
    def line(self, name: str, body: dict[str, Any], tag: str) -> bytes:
        """A question as it is handed in.

        Args:
            name: Its custom id.
            body: The request of a direct call.
            tag: Of its batch.
        """

    @abstractmethod
    async def prepare(self, portion: Portion) -> str:
        """Do what can be done before the batch is started; what starting it and finding it needs to know."""

    @abstractmethod
    async def start(self, portion: Portion, prepared: str) -> Seen:
        """Start a batch, once.

        Raises:
            Refused, NoAnswer, BadReply: it may or may not have begun.
        """

    @abstractmethod
    async def look(self, batch_id: str) -> Seen:
        """How far a batch is."""

    @abstractmethod
    async def find(self, tag: str, prepared: str, size: int) -> Seen | None:
        """The batch that was started with a tag, if one was.

        Args:
            tag: Of the portion.
            prepared: What `prepare` said.
            size: How many questions it has.
        """

    @abstractmethod
    async def results(self, seen: Seen, batch: Batch) -> list[Line]:
        """What a batch that has ended says; lines that can't be understood are left out."""

    async def create(self, portion: Portion, prepared: str) -> Seen:
        """Start a batch. It is never started twice: a call whose end is unknown is looked up by its tag.

        Raises:
            QueueFull: not now; later perhaps.
            PairkitError: it was not started.
        """
        try:
            return await self.start(portion, prepared)
        except Refused as refused:
            if refused.refusal.status == 429 and refused.refusal.may_pass:
                raise QueueFull(refused.refusal.message) from refused
            failed: Exception = await self._provider.explain(refused)
        except (NoAnswer, BadReply) as error:
            failed = error
        if isinstance(failed, PairkitError) and not isinstance(failed, BadReply):
            raise failed
        if (found := await self.find(portion.tag, prepared, len(portion.keys))) is not None:
            return found
        raise RemoteError(
            f"llm {self._provider.name}: no batch could be started ({failed}); run the same command again "
            "to continue"
        )

    async def _get(self, path: str, *, most_bytes: int = MOST_BYTES) -> bytes:
        return await self._retried(
            lambda: self._channel.get(path, timeout_s=TRANSFER_S, most_bytes=most_bytes)
        )

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


class Pages:
    """Sees that a list of batches, page by page, does not lead in a circle."""

    def __init__(self) -> None:
        self._passed = set[str]()

    def turn(self, mark: str) -> str:
        """The mark of the next page.

        Raises:
            BadReply: it was passed before.
        """
        if mark in self._passed:
            raise BadReply(f"the Batch API lists the same batches again after {mark}; run again to continue")
        self._passed.add(mark)
        return mark


def decoded(body: bytes) -> dict[str, Any]:
    """An answer's object.

    Raises:
        BadReply: it is none.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadReply("the Batch API answered with what is not JSON; run again to continue") from error
    return an_object(value, "answered with")


def an_object(value: Any, what: str) -> dict[str, Any]:
    """The same, decoded already.

    Raises:
        BadReply: it is none.
    """
    if not isinstance(value, dict):
        raise BadReply(f"the Batch API {what} what is no object; run again to continue")
    return value


def listed(page: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The batches on a page.

    Raises:
        BadReply: there is no list, or something else in it.
    """
    entries = page.get(name)
    if not isinstance(entries, list):
        raise BadReply("the Batch API answered without a list; run again to continue")
    return [an_object(entry, "lists") for entry in entries]


def identifier(value: dict[str, Any], name: str, prefix: str = "") -> str:
    """A name that the server gave to something, and that becomes part of a path.

    Raises:
        BadReply: it can't.
    """
    found = value.get(name)
    if not isinstance(found, str) or not _NAME.fullmatch(found.removeprefix(prefix)):
        raise BadReply(f"the Batch API answered without a usable {name!r}; run again to continue")
    return found.removeprefix(prefix)
