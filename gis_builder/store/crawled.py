"""What a store remembers of the crawl that filled it: its settings, and whose pages its issues have."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec.json import Decoder

from gis_builder.store import Store
from gis_builder.store.records import GITHUB, IssueRef
from pairkit.system.address import is_loopback

_RECORD = "crawl"
_DECODER = Decoder(dict[str, Any])
TICKETS = "tickets"  # the key of the note on tickets of other trackers
# By repository and id the number of a ticket, and its page or, where it has none, its id.
Tickets: TypeAlias = dict[str, dict[str, tuple[int, str]]]
_TICKETS = Decoder(Tickets)


class TicketSite(str):
    """The root of GitHub's pages, for a store that also has tickets, whose pages are elsewhere."""

    pages: Mapping[IssueRef, str]

    @classmethod
    def of(cls, tickets: Tickets) -> TicketSite:
        """A root that differs where pages differ: kept verdicts have addresses of pages."""
        site = cls(f"{GITHUB}?{hashlib.sha256(json.dumps(tickets, sort_keys=True).encode()).hexdigest()}")
        every = (
            (IssueRef(repo, number), page) for repo, own in tickets.items() for number, page in own.values()
        )
        site.pages = dict(every)
        return site

    def page_of(self, ref: IssueRef) -> str:
        """The page of a ticket or issue."""
        return self.pages.get(ref) or ref.page(GITHUB)


def stored_tickets(store: Store) -> Tickets:
    """The tickets of other trackers in a store."""
    return store.meta_json(TICKETS, _TICKETS) or {}


def stored_record(store: Store) -> dict[str, Any]:
    """The record of the crawl that filled this store; empty where none has begun."""
    return store.meta_json(_RECORD, _DECODER) or {}


def remember(store: Store, record: Mapping[str, Any]) -> None:
    """Keep the record of a crawl."""
    store.set_meta(_RECORD, json.dumps(record))


def site_of(store: Store) -> str:
    """The root of the pages that people see of a crawl's issues, see `site_at`; of a dump, GitHub's."""
    if tickets := stored_tickets(store):
        return TicketSite.of(tickets)
    host = stored_record(store).get("server")
    return site_at(host) if isinstance(host, str) and host else GITHUB


def site_at(host: str) -> str:
    """The root of the pages that people see of a server's issues, without a slash at its end.

    `api.HOST` serves the API of `HOST` (github.com, and companies at ghe.com); any other server has its pages
    beside its API. A test server on this machine stands for github.com.
    """
    return GITHUB if is_loopback(host) else f"https://{host.removeprefix('api.')}"
