"""Asking a REST API until there is an answer, as patiently as over GraphQL; and lists of objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from msgspec.json import Decoder

from gis_builder._github.answers import Answer, AnswerKind
from gis_builder._github.client import Client
from gis_builder._github.pages import LEAST_ITEMS, MOST_OF_THREAD, Pages
from gis_builder._github.rest_transport import REDIRECTS, RestReply, RestTransport
from gis_builder._github.tokens import Token
from gis_builder._github.tools import Tools
from gis_builder._github.transport import Query, Transport
from gis_builder._rest_records import CommentObject, EventObject, IssueObject, LabelEventObject, RepoObject
from gis_builder._settings.crawl import CrawlSettings
from pairkit.errors import BadReply

_MOST_REDIRECTS = 5

T = TypeVar("T")
Numbered = TypeVar("Numbered", CommentObject, EventObject, LabelEventObject)

ISSUE, REPOSITORY = Decoder(IssueObject), Decoder(RepoObject)
ISSUES, COMMENTS, EVENTS = (
    Decoder(list[IssueObject]),
    Decoder(list[CommentObject]),
    Decoder(list[EventObject]),
)


class RestClient(Client):
    """One token's line to a REST API: one request at a time, each counted as a point."""

    def _connect(self, settings: CrawlSettings, token: Token) -> tuple[str, Transport]:
        return settings.address.url, RestTransport(settings.address, token, settings.timeout_s)

    def get(self, path: str, answer: Decoder[T]) -> RestReply[T]:
        """Ask for a path below the server's root; redirects are followed, on this server only.

        Raises:
            BadReply: it redirects elsewhere or in a circle; else as `Client.ask`.
        """
        here = path
        for _ in range(_MOST_REDIRECTS):
            reply: RestReply[T] = self._until_answered(Query(here, answer)).data
            if reply.status not in REDIRECTS:
                return reply
            if reply.location is None:
                raise BadReply(f"{path}: the server redirects {reply.message}")
            here = reply.location
        raise BadReply(f"{path}: the server redirects in a circle; run the same command again to continue")

    def write(
        self, method: str, path: str, body: bytes, answer: Decoder[T], arrived: Callable[[], T | None]
    ) -> RestReply[T]:
        """Have the server change something, once.

        Args:
            method: `POST` or `DELETE`.
            path: Below the server's root; a redirect is not followed.
            body: JSON.
            answer: Of what comes back.
            arrived: Asked before each further try, as a request may have arrived whose answer was lost: what
                came of it, or None where nothing did.

        Raises:
            Denied: the token may not; else as `Client.ask`.
        """

        def settled() -> Answer | None:
            found = arrived()
            return None if found is None else Answer(AnswerKind.OK, data=RestReply(200, found))

        query = Query(path, answer, method, body)
        reply: RestReply[T] = self._until_answered(query, settled).data
        return reply

    def get_list(self, path: str, answer: Decoder[list[T]]) -> tuple[list[T], RestReply[list[T]]]:
        """Ask for a page of a list.

        Raises:
            BadReply: it is none; else as `get`.
        """
        reply = self.get(path, answer)
        if reply.value is None:
            words = reply.message or f"HTTP {reply.status}"
            raise BadReply(f"{path}: no list ({words}); run the same command again to continue")
        return reply.value, reply

    def get_all(self, path: str, answer: Decoder[list[Numbered]]) -> Iterator[Numbered]:
        """The items of a list, asked for page by page; see `get_list`."""
        cursor: str | None = path
        pages = Pages(path, path, most=MOST_OF_THREAD, least=LEAST_ITEMS)
        while cursor:
            items, reply = self.get_list(cursor, answer)
            yield from items
            cursor = reply.next
            if cursor:
                pages.turn([item.id for item in items], cursor)


@dataclass(frozen=True, slots=True)
class RestCrawl(Tools[RestClient]):
    """The tools of a worker that asks over REST."""
