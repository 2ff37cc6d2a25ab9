"""What a store remembers of the crawl that filled it: its settings, and whose pages its issues have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec.json import Decoder

from gis_builder.store import Store
from gis_builder.store.records import GITHUB
from pairkit.system.address import is_loopback

_RECORD = "crawl"
_DECODER = Decoder(dict[str, Any])


def stored_record(store: Store) -> dict[str, Any]:
    """The record of the crawl that filled this store; empty where none has begun."""
    return store.meta_json(_RECORD, _DECODER) or {}


def remember(store: Store, record: Mapping[str, Any]) -> None:
    """Keep the record of a crawl."""
    store.set_meta(_RECORD, json.dumps(record))


def site_of(store: Store) -> str:
    """The root of the pages that people see of a crawl's issues, see `site_at`; of a dump, GitHub's."""
    host = stored_record(store).get("server")
    return site_at(host) if isinstance(host, str) and host else GITHUB


def site_at(host: str) -> str:
    """The root of the pages that people see of a server's issues, without a slash at its end.

    `api.HOST` serves the API of `HOST` (github.com, and companies at ghe.com); any other server has its pages
    beside its API. A test server on this machine stands for github.com.
    """
    return GITHUB if is_loopback(host) else f"https://{host.removeprefix('api.')}"
