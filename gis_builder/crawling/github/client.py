"""Sends queries: waits for rate limits, retries transient failures, adapts batch sizes, and refuses endless lists."""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Generic, TypeVar

from msgspec.json import Decoder

from gis_builder.crawl_progress import RunDisplay
from gis_builder.crawling.github.access_tokens import Token
from gis_builder.crawling.github.exchange import (
    AnswerKind,
    Exchange,
    GraphQLError,
    QueryAnswer,
)
from gis_builder.crawling.github.graphql_queries import (
    INTROSPECTION,
    GraphQuery,
    Queries,
    Server,
)
from gis_builder.crawling.github.nodes import Rate
from gis_builder.settings import CrawlSettings
from gis_builder.store import RATE_LIMIT, Page, RateLimit, Store, Usage
from gis_builder.store.decoding import MAX_NUMBER, Malformed, decode, stamp
from pairkit.base.errors import AuthError, BadReply, RateLimited, RemoteError
from pairkit.base.printable import one_line

_LOG = logging.getLogger(__name__)
_MAX_SHOWN = 100  # characters of a query

_RATE = Decoder(Rate | None)
# 2008-01-01 in epoch seconds; imported issues may be older than their repository.
GITHUB_START = 1199145600
# Consecutive pages without new items, which occur if items move while they are listed, or fail.
_MAX_IDLE = 10
MAX_ITEMS = MAX_NUMBER
MAX_THREAD_ITEMS = 100_000  # GitHub allows 2,500 comments

T = TypeVar("T")
ItemT = TypeVar("ItemT")


class TooHeavy(RemoteError):  # noqa: N818
    """The query exceeds the server's time or size limits; a smaller batch may succeed."""


class Unreachable(RemoteError):  # noqa: N818
    """The server can't be reached, which ends the whole crawl."""


class CrawlStopped(RemoteError):  # noqa: N818
    """Another worker raised an error that ends the whole crawl."""


class RequestRefused(BadReply):
    """The server rejects this query permanently."""


@dataclass(frozen=True)
class GraphReply(Generic[T]):
    """A value for each alias of a query, and the errors of missing parts."""

    data: Mapping[str, T | None]
    errors: tuple[GraphQLError, ...] = ()


class Crawl:
    """A worker: sends the queries of one token, one at a time, and stores what they return."""

    def __init__(
        self,
        settings: CrawlSettings,
        token: Token,
        store: Store,
        stop: threading.Event,
        show: RunDisplay,
    ) -> None:
        self.settings = settings
        self.store = store
        self._token_name = token.name
        self._exchange = Exchange(settings.graphql_address, token, settings.timeout_s)
        self._stop = stop
        self._show = show
        self._usage = Usage()
        self._was_reached = False
        self._rate_limit: RateLimit | None = None

    @cached_property
    def queries(self) -> Queries:
        """The queries for the server's optional fields, which are looked up once for each store."""
        key = f"server {self.settings.api_url}"
        server = self.store.meta_json(key, Server)
        if server is None:
            server = self._probe()
            self.save("", Page(notes={key: json.dumps(asdict(server))}))
        return Queries(self.settings, server)

    def _probe(self) -> Server:
        """Query the server's schema; without introspection there are no optional fields."""
        try:
            reply, _ = self.ask_sized(BatchSize(1), lambda _: INTROSPECTION)
        except RequestRefused:
            return Server()
        return Server.of_schema(reply.data)

    def save(self, repo: str, page: Page) -> None:
        """Store a page with its cost, which is charged to the repository."""
        page.usage[repo] = self.take_usage()
        if self._rate_limit:
            page.notes[RATE_LIMIT] = json.dumps(asdict(self._rate_limit))
        self.store.save(page)
        _LOG.info("%s: stored %s", repo or "all repositories", page)

    def ask(
        self,
        size: BatchSize,
        items: Sequence[ItemT],
        query: Callable[[Sequence[ItemT]], GraphQuery[T]],
    ) -> tuple[GraphReply[T], int]:
        """Query the first items, as many as the server allows; returns the reply and their number."""
        return self.ask_sized(size, lambda count: query(items[:count]))

    def ask_sized(
        self, size: BatchSize, query: Callable[[int], GraphQuery[T]]
    ) -> tuple[GraphReply[T], int]:
        """Query `size.now` items, or fewer if the query is too heavy; returns the reply and their number."""
        failures = 0
        while True:
            count = size.now
            try:
                reply = self.send(query(count))
            except TooHeavy as error:
                failures += 1
                if failures >= self.settings.attempts and count == 1:
                    raise RemoteError(
                        f"{error}, even for a single item; run the same command again to continue"
                    ) from error
                self.back_off(failures, str(error))
                size.shrink()
                continue
            is_cut = any(error.is_heavy for error in reply.errors)
            if is_cut and count > 1:
                size.shrink()
                continue
            size.grow()
            return reply, count

    def report(self, repo: str, stage: str, done: int, total: int) -> None:
        """Display the progress of a stage."""
        self._show.advanced(repo, stage, done, total, self._points_left)

    def send(self, query: GraphQuery[T]) -> GraphReply[T]:
        """Send a query, with retries, and return its reply."""
        failures = waits = 0
        while True:
            answer = self._send_once(query)
            match answer.kind:
                case AnswerKind.OK | AnswerKind.PARTIAL:
                    return GraphReply(answer.data, answer.errors)
                case AnswerKind.RATE_LIMITED:
                    waits += 1
                    self._wait_for_limit(answer, waits)
                case AnswerKind.TRANSIENT | AnswerKind.DAMAGED:
                    failures += 1
                    self._wait_after_failure(answer, failures)
                case _:
                    raise _error_of(answer, self._token_name)

    def back_off(self, failures: int, why: str) -> None:
        """Wait after the n-th consecutive failure, with jitter so that workers don't retry in step."""
        seconds = _doubled(self.settings.backoff_s, failures)
        jitter = random.uniform(0.5, 1.0)  # noqa: S311 - not a secret
        self._sleep(min(seconds, self.settings.max_wait_s) * jitter, why)

    def take_usage(self) -> Usage:
        """The cost since the last call, to be stored with the fetched page."""
        usage = self._usage
        self._usage = Usage()
        return usage

    def close(self) -> None:
        """Close the connection."""
        self._exchange.close()

    @property
    def _points_left(self) -> int | None:
        """The last known number of points left for the token; None if unknown."""
        return self._rate_limit.remaining if self._rate_limit else None

    def _send_once(self, query: GraphQuery[Any]) -> QueryAnswer:
        self._check_stop()
        start = time.monotonic()
        body = json.dumps({"query": query.text}).encode()
        answer = _decoded(self._exchange.post(body), query)
        self._was_reached |= answer.has_response
        self._rate_limit = answer.rate_limit or self._rate_limit
        seconds = time.monotonic() - start
        self._usage += Usage(answer.cost, 1, seconds)
        _LOG.info(
            "%s %s in %.2f s for %d points, %s left: %s",
            answer.status or "no status,",
            answer.kind,
            seconds,
            answer.cost,
            self._points_left,
            one_line(query.text, _MAX_SHOWN),
        )
        return answer

    def _wait_for_limit(self, answer: QueryAnswer, waits: int) -> None:
        """Wait for the requested time, or, if there is none or it was too short, for doubling times."""
        settings = self.settings
        seconds = _doubled(settings.secondary_wait_s, waits)
        if answer.wait_s is not None:
            seconds = answer.wait_s if waits == 1 else max(answer.wait_s, seconds)
        if waits > settings.attempts or seconds > settings.max_wait_s:
            raise RateLimited(
                f"still rate-limited ({answer.message}) after {waits - 1} waits, for {seconds:.0f} s more; run the"
                " same command again then, or raise max_wait_s",
                seconds,
            )
        self._sleep(seconds, answer.message)

    def _wait_after_failure(self, answer: QueryAnswer, failures: int) -> None:
        settings = self.settings
        first_attempts = min(settings.first_attempts, settings.attempts)
        if not self._was_reached and failures >= first_attempts:
            raise Unreachable(
                f"{settings.graphql_url} can't be reached ({answer.message}): check api_url and the "
                "network, and run the same command again to continue"
            )
        if failures >= settings.attempts:
            # Without a response, the network may be lost: see `Unreachable`.
            self._was_reached = answer.has_response
            kind = BadReply if answer.kind is AnswerKind.DAMAGED else RemoteError
            raise kind(
                f"{settings.graphql_url} failed {failures} consecutive times, last with: "
                f"{answer.message}; run the same command again to continue"
            )
        if answer.wait_s is not None:
            self._sleep(min(answer.wait_s, settings.max_wait_s), answer.message)
        else:
            self.back_off(failures, answer.message)

    def _sleep(self, seconds: float, why: str) -> None:
        self._show.waiting(why, seconds)
        _LOG.info("waiting %.2f s: %s", seconds, why)
        self._stop.wait(seconds)
        self._usage += Usage(seconds=seconds)
        self._check_stop()

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise CrawlStopped(
                "the crawl was stopped; run the same command again to continue"
            )


def _doubled(seconds: float, times: int) -> float:
    """The n-th of waits that double, but no longer after the sixtieth: a float overflows after a thousand."""
    return seconds * 2.0 ** min(times - 1, 60)


def _error_of(answer: QueryAnswer, token: str) -> RemoteError:
    """The error of an answer after which a retry is of no use."""
    message = answer.message
    match answer.kind:
        case AnswerKind.TOO_HEAVY:
            return TooHeavy(f"the query is too heavy for the server ({message})")
        case AnswerKind.AUTH:
            return AuthError(
                f"the server rejects {token} ({message}): create a new one and run again"
            )
        case AnswerKind.FORBIDDEN:
            return RemoteError(f"{token} has no access ({message}): grant it")
        case _:
            kind = RequestRefused if answer.errors else BadReply
            return kind(f"{message}; check api_url")


def _decoded(answer: QueryAnswer, query: GraphQuery[Any]) -> QueryAnswer:
    """The answer with its cost and its data as the query's types."""
    if not answer.data:
        return answer
    data = {}
    cost = 1
    try:
        for alias, part in answer.data.items():
            if alias == "rateLimit":
                if rate := decode(part, _RATE):
                    cost = rate.cost
            else:
                is_null = bytes(part) == b"null"
                data[alias] = None if is_null else decode(part, query.answer)
    except Malformed as error:
        message = f"the reply does not match the query ({error})"
        return replace(answer, kind=AnswerKind.DAMAGED, message=message)
    if not data:
        message = answer.message or "the response has none of the requested data"
        return replace(answer, kind=AnswerKind.BAD_REPLY, message=message, cost=cost)
    return replace(answer, data=data, cost=cost)


def iso(seconds: int) -> str:
    """Format epoch seconds like GitHub."""
    return stamp(datetime.fromtimestamp(seconds, UTC))


def epoch(text: str) -> int:
    """Parse a time of GitHub to epoch seconds; the start of GitHub if it is empty."""
    return int(datetime.fromisoformat(text).timestamp()) if text else GITHUB_START


class Pages:
    """Detects servers whose lists of pages never end."""

    def __init__(self, name: str, first: str | None, *, limit: int = MAX_ITEMS) -> None:
        self._name = name
        self._limit = limit
        self._cursors = {None, first}
        self._items: set[Hashable] = set()
        self._idle = 0

    def advance(self, items: Iterable[Hashable], cursor: str | None) -> None:
        """Record the items of a page and the cursor of the next one."""
        before = len(self._items)
        self._items.update(items)
        self._idle = 0 if len(self._items) > before else self._idle + 1
        if cursor in self._cursors:
            raise self._error(f"repeated a cursor ({str(cursor)[:60]!r})")
        if self._idle > _MAX_IDLE:
            raise self._error(f"sent {self._idle} pages without new items")
        if len(self._items) > self._limit:
            raise self._error(f"sent more than {self._limit:,} items")
        self._cursors.add(cursor)

    def _error(self, fault: str) -> BadReply:
        return BadReply(f"{self._name}: the server {fault}")


class BatchSize:
    """An adaptive batch size between 1 and `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.now = limit

    def shrink(self) -> None:
        """Halve the batch."""
        self.now = max(1, self.now // 2)

    def grow(self) -> None:
        """Increase the batch by a quarter."""
        self.now = min(self._limit, self.now + max(1, self.now // 4))
