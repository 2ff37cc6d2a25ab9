"""Asking a REST API until there is an answer, as patiently as over GraphQL; and lists of objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gis_builder.github.client import Client
from gis_builder.github.crawl import Tools
from gis_builder.github.pages import Pages
from gis_builder.github.rest_transport import REDIRECTS, RestReply, RestTransport
from gis_builder.github.settings import CrawlSettings
from gis_builder.github.tokens import Token
from gis_builder.github.transport import Transport
from pairkit.errors import BadReply

_MOST_REDIRECTS = 5
_MOST_ITEMS = 100_000  # of one thread

Object = Mapping[str, Any]


class RestClient(Client):
    """One token's line to a REST API: one request at a time, each counted as a point."""

    def _connect(self, settings: CrawlSettings, token: Token) -> tuple[str, Transport]:
        return settings.address.url, RestTransport(settings.address, token, settings.timeout_s)

    def get(self, path: str) -> RestReply:
        """Ask for a path below the server's root; redirects are followed, on this server only.

        Raises:
            BadReply: it redirects elsewhere or in a circle; else as `Client.ask`.
        """
        here = path
        for _ in range(_MOST_REDIRECTS):
            reply: RestReply = self.ask(here).data["reply"]
            if reply.status not in REDIRECTS:
                return reply
            if reply.location is None:
                raise BadReply(f"{path}: the server redirects to another host; give that one as --api-url")
            here = reply.location
        raise BadReply(f"{path}: the server redirects in a circle; run the same command again to go on")

    def get_list(self, path: str) -> tuple[list[Object], RestReply]:
        """Ask for a page of a list.

        Raises:
            BadReply: it is none; else as `get`.
        """
        reply = self.get(path)
        if reply.status != 200 or not isinstance(reply.value, list):
            raise BadReply(
                f"{path}: a list was expected, but it is {reply.message or type(reply.value).__name__}; "
                "run the same command again to go on"
            )
        return reply.value, reply

    def get_all(self, path: str) -> Iterator[Object]:
        """The items of a list, asked for page by page; see `get_list`."""
        cursor: str | None = path
        pages = Pages(path, path, most=_MOST_ITEMS)
        while cursor:
            items, reply = self.get_list(cursor)
            yield from items
            cursor = reply.next
            if cursor:
                pages.turn([item.get("id") for item in items], cursor)


@dataclass(frozen=True, slots=True)
class RestCrawl(Tools[RestClient]):
    """The tools of a worker that asks over REST."""
