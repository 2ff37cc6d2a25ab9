"""Rows that lack a text or a label: counts by reason, and a file of the rows that were left out."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from pairkit.base.printable import one_line
from pairkit.base.system.files import write_text

_LOG = logging.getLogger(__name__)
SCHEMA = {"file": pl.String, "row": pl.Int64, "reason": pl.String} | dict.fromkeys(
    ("text1", "text2", "label"), pl.String
)


def by_reason(bad: pl.DataFrame) -> Iterator[tuple[str, int, str]]:
    """Each reason with its count and the first row as `file:row`; the most frequent first."""
    first = pl.format("{}:{}", "file", "row").first()
    counts = bad.group_by("reason", maintain_order=True).agg(pl.len(), first.alias("first"))
    yield from counts.sort("len", descending=True, maintain_order=True).iter_rows()


def format_bad_rows(bad: pl.DataFrame) -> str:
    """The counts by reason in words."""
    return "; ".join(
        f"{reason.replace('_', ' ')} in {count:,} ({'the first is ' if count > 1 else ''}{one_line(first)})"
        for reason, count, first in by_reason(bad)
    )


def joined(frames: Iterable[pl.DataFrame | None]) -> pl.DataFrame:
    """The bad rows of several tables."""
    return pl.concat([pl.DataFrame(schema=SCHEMA), *(frame for frame in frames if frame is not None)])


def report_bad_rows(bad: pl.DataFrame) -> None:
    """Log the counts, which a command prints on stderr."""
    if bad.height:
        _LOG.warning("rows left out: %s", format_bad_rows(bad))


def write_bad_rows(out: Path, bad: pl.DataFrame | None) -> None:
    """Write the rows that were left out to a file next to an output folder."""
    if bad is not None and bad.height:
        out = out.resolve() if out.name in ("", "..") else out
        path = out.with_name(f"{out.name}.bad-rows.jsonl")
        write_text(path, bad.write_ndjson())
        _LOG.warning("rows left out are in %s", path)
