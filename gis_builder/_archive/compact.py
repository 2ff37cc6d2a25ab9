"""The second task: a month's hours to one file, of a share of the repositories: few files for later tasks."""

from __future__ import annotations

import io
from collections.abc import Sequence

import msgspec
import polars as pl

from gis_builder._archive.ledger import LEDGER, Ledger, decode_rows, encode_rows
from gis_builder._archive.objects import Location, ObjectPath, footer_of, several
from gis_builder._archive.rows import ROW_GROUP, bounds, newest, read_share
from gis_builder._archive.tasks import damaged
from pairkit.parquet import parquet_bytes, read_notes

SHARES = 32  # of the repositories; a month of 2025 then takes some 100 MB
_AT_ONCE = 48  # hours; an open one takes half a MiB, however little of it is read


def compact_month(hours: Sequence[Location], place: int) -> bytes:
    """The rows of a month's hours that are of the share `place` of `SHARES`; the first carries the ledger."""
    low, high = bounds(place, SHARES)
    parts = (hours[start : start + _AT_ONCE] for start in range(0, len(hours), _AT_ONCE))
    table = newest(pl.concat([read_share(part, low, high) for part in parts]))
    rows = ledgers_of(hours) if place == 0 else []
    return parquet_bytes(table, row_group=ROW_GROUP, notes={LEDGER: encode_rows(rows)})


def ledgers_of(paths: Sequence[Location]) -> list[Ledger]:
    """The rows of the ledgers that go with tables.

    Raises:
        DataError: One of them is damaged.
    """
    return [row for rows in several(_ledger, paths) for row in rows]


def _ledger(path: Location) -> list[Ledger]:
    try:
        footer = io.BytesIO(footer_of(path)) if isinstance(path, ObjectPath) else None
        return decode_rows(read_notes(path, footer)[LEDGER])
    except (KeyError, msgspec.MsgspecError, OSError) as error:
        raise damaged(path, error) from error
