"""Reads files of tickets and links: tables, and JSON of other trackers than GitHub."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from gis_builder.store.decoding import (
    Malformed,
    RepoName,
    convert,
    date_order,
    parse_time,
    stamp,
)
from gis_builder.trackers.saved import is_known, values
from gis_builder.trackers.ticket_cells import (
    LINK_ROLES,
    ROLES,
    Cells,
    Columns,
    SourceRow,
    cells_of,
    objects_in,
    one_text,
    source_row,
)
from gis_builder.trackers.ticket_records import Ticket, read_ticket
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.text_lines import read_objects
from pairkit.dataset.reading.separated import records
from pairkit.dataset.reading.tables import SHEETS, first_row, format_of, read_table

TABLES = (".csv", ".tsv", ".parquet", *SHEETS)  # always tickets, unlike JSON
_KINDS = (*TABLES, ".jsonl", ".ndjson", ".json")
# Files of exports that can't be read, and what to do.
UNREADABLE = {
    **dict.fromkeys((".xml", ".rss"), "XML can't be read; export CSV or JSON"),
    **dict.fromkeys(
        (".zip", ".tar", ".tgz"),
        "archives can't be read; unpack it and give the folder",
    ),
}
_OTHER_FILES = re.compile(  # of GitLab's project export and of backups
    r"(?:(?:external_)?(?:merge|pull)_?requests?|pulls?|milestones?|labels?|releases?|epics?|snippets?|boards?)"
)
TIMES = ("created_at", "closed_at", "updated_at")


@dataclass(frozen=True)
class ImportOptions:
    """The options of an import."""

    links: Path | None  # a table of duplicate links
    columns: Columns
    # Repository of all tickets, and of GitHub's objects that name none.
    repo: str | None
    skip_broken: bool
    link_columns: Columns  # of `links`
    date_format: str  # of strptime; empty: see `parse_time`

    def __post_init__(self) -> None:
        for mapping, known in ((self.columns, ROLES), (self.link_columns, LINK_ROLES)):
            for role in mapping:
                if role not in known:
                    raise ConfigError(
                        f"column mapping {role!r}: expected one of {', '.join(known)}"
                    )
        if self.link_columns and not self.links:
            raise ConfigError("--link-columns: give the file of links too, as --links")
        if self.date_format and not _has_year(self.date_format):
            raise ConfigError(
                f"date_format = {self.date_format!r}: expected such as %d/%m/%Y %H:%M"
            )
        try:
            convert(self.repo or "owner/name", RepoName)
        except Malformed:
            raise ConfigError(
                f"repo = {self.repo!r}: expected owner/name, such as acme/helpdesk"
            ) from None


def _has_year(date_format: str) -> bool:
    """Whether it is a format of strptime with a year, unlike dd/mm/yyyy."""
    moment = datetime(2024, 1, 31, tzinfo=UTC)
    try:
        parsed = datetime.strptime(moment.strftime(date_format), date_format)
    except ValueError:
        return False
    return parsed.year == moment.year


def file_kind(path: Path) -> str:
    """The suffix of a file that may contain tickets, without `.gz`; empty for other files."""
    kind = format_of(path)
    return kind if kind in _KINDS else ""


@dataclass(frozen=True)
class TicketFile:
    """A file of tickets or links; `broken` gets the errors of its rows and may raise them."""

    path: Path
    columns: Columns
    broken: Callable[[DataError], None]
    date_format: str = ""
    are_links: bool = False

    def __iter__(self) -> Iterator[Ticket]:
        for row, source, cells in self.cells():
            try:
                yield read_ticket(source, cells, self.time_of)
            except Malformed as error:
                self.broken(DataError(str(error), path=self.path, row=row))

    def contains_tickets(self) -> bool:
        """Whether the first row or object is a ticket or a link."""
        _, first = next(_rows(self.path, lambda _: None), (0, None))
        item = next(iter(objects_in(first)), None)
        stem, _, _ = self.path.name.lower().partition(".")
        if is_known(first) or is_known(item) or _OTHER_FILES.fullmatch(stem):
            return False
        if isinstance(item, dict) and "/repos/" in str(item.get("url")):
            return False  # such as GitHub's milestones
        try:
            return bool(cells_of(source_row(item), self.columns))
        except Malformed:
            return False

    def lacks_body(self) -> bool:
        """Whether it is a table of tickets without a column for texts."""
        for _, source, cells in self.cells():
            return not source.fields and "title" in cells and "body" not in cells
        return False

    def cells(self) -> Iterator[tuple[int, SourceRow, Cells]]:
        """The number, names with values, and cells of each ticket or link."""
        try:
            for row, value in self._objects():
                try:
                    source = source_row(value)
                    cells = cells_of(source, self.columns, are_links=self.are_links)
                    yield row, source, cells
                except Malformed as error:
                    if isinstance(value, SourceRow):
                        # The table lacks a column, which holds for all of its rows.
                        self.broken(DataError(str(error), path=self.path))
                        return
                    self.broken(DataError(str(error), path=self.path, row=row))
        except DataError as error:
            self.broken(error)

    def time_of(self, text: str) -> str:
        """A time as a stamp."""
        return stamp(parse_time(text, self.date_format, lambda: self._day_first))

    @cached_property
    def _day_first(self) -> bool:
        """Whether the day comes first in dates such as 03/04/2024, according to the file's other dates."""
        orders: set[bool | None] = set()
        same_file = TicketFile(self.path, self.columns, lambda _: None)
        for _, _, cells in same_file.cells():
            orders.update(date_order(one_text(cells, role)) for role in TIMES)
        orders.discard(None)
        if len(orders) != 1:
            fault = (
                "have both orders" if orders else "can have the day or the month first"
            )
            raise DataError(
                f"dates such as 03/04/2024 {fault}; give --date-format %d/%m/%Y or %m/%d/%Y"
                ", with the time if there is one, such as %d/%m/%Y %H:%M",
                path=self.path,
            )
        return orders == {True}

    def _objects(self) -> Iterator[tuple[int, Any]]:
        """Yield rows of tables, and objects, which are numbered in JSON and have their line in JSON lines."""
        is_json = file_kind(self.path) == ".json"
        number = 0
        for row, value in _rows(self.path, self.broken):
            for item in objects_in(value):
                number += 1
                yield number if is_json else row, item


def _rows(path: Path, broken: Callable[[DataError], None]) -> Iterator[tuple[int, Any]]:
    """Yield numbered JSON objects as they are, or rows of tables."""
    kind = file_kind(path)
    if kind == ".json":
        yield from values(path)
    elif kind in (".jsonl", ".ndjson"):
        yield from read_objects(path, broken)
    elif kind in (".csv", ".tsv"):
        lines = records(path, broken)
        names = tuple(next(lines, (1, []))[1])
        for row, cells in lines:
            if cells:
                missing = len(names) - len(cells)
                yield row, SourceRow(names, cells + [""] * missing)
    else:
        frame = read_table(path)
        names = tuple(frame.columns)
        for row, values_of_row in enumerate(frame.iter_rows(), first_row(path)):
            yield row, SourceRow(names, values_of_row)
