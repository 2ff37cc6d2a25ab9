"""Shows how an import would read its files, without a store."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from gis_builder.crawling.import_dump import passed_over
from gis_builder.crawling.ticket_dump import TicketDump, find_trackers
from gis_builder.crawling.ticket_index import TicketIndex
from gis_builder.store import Issue, IssueRef, TicketSite
from gis_builder.store.decoding import Malformed
from gis_builder.trackers.dump import BrokenRows, Row
from gis_builder.trackers.ticket_cells import NESTED, TICKET, cell_text, roles_of
from gis_builder.trackers.ticket_files import (
    TIMES,
    ImportOptions,
    TicketFile,
    file_kind,
    nested_roles,
)
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.printable import one_line

_MAX_ROWS = 1000  # of a file, whose columns are shown
_MAX_USED_COLUMNS = 400
_MAX_UNUSED_COLUMNS = 200
_NOT_USED = "not used"
_MAX_WORDS = 30  # kinds of words beside the ids of links
_MAX_TICKETS = 3
_WIDTH = 60  # characters of a cell

PreviewRow: TypeAlias = dict[str, str]
# The format of a file, and the names of its columns for id, title and time.
FileKind: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, repr=False)
class ImportPreview(Printed):
    """What an import would read.

    Attributes:
        columns: Each column or key: file, column, role, first value, and a time as it is understood.
        links: The 30 most frequent words beside the ids of links (… is the ids): words, number of links,
            role of the column, and how the words are read.
        tickets: The first three tickets: key, created_at, state, title and duplicate_of.
        messages: Number of issues and links, and lines on skipped files, rows and links.
    """

    columns: tuple[Mapping[str, str], ...]
    links: tuple[Mapping[str, str], ...]
    tickets: tuple[Mapping[str, str], ...]
    messages: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the preview."""
        return asdict(self)

    def tables(self) -> list[ResultTable]:
        """The columns, the words of links and the first tickets."""
        return [
            _table_of(rows) for rows in (self.columns, self.links, self.tickets) if rows
        ]

    def lines(self) -> list[str]:
        """The messages."""
        return list(self.messages)


def preview(source: Path, options: ImportOptions) -> ImportPreview:
    """Read the files of an import without a store."""
    broken = BrokenRows(skip=options.skip_broken)
    files: list[TicketFile] = []
    links: list[PreviewRow] = []
    tickets: list[PreviewRow] = []
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    dumps = find_trackers(source, options, {}, broken)
    messages = passed_over(dumps)
    for dump in dumps:
        index = TicketIndex({})
        if isinstance(dump, TicketDump):
            index = dump.index
            links += _link_rows(index)
            messages.append(f"{index.link_count:,} duplicate links")
            messages += index.notes("an import lists them")
            files += dump.every_file
        site = TicketSite.of(index.tickets)
        for row in dump.issues():
            if row.record.is_pull:
                continue
            numbers[row.repo].add(row.number)
            if len(tickets) < _MAX_TICKETS:
                tickets.append(_ticket_row(row, index, site))
    columns, are_all = _column_rows(files)
    if not are_all:
        messages.append("not all columns are shown; preview fewer files")
    counted = [f"{repo}: {len(known):,} issues" for repo, known in numbers.items()]
    return ImportPreview(
        columns=tuple(columns),
        links=tuple(links),
        tickets=tuple(tickets),
        messages=(*counted, *messages, *broken.notes),
    )


def _column_rows(files: Iterable[TicketFile]) -> tuple[list[PreviewRow], bool]:
    """A row for each column of files of a kind, by kind, and whether these are all columns."""
    rows: dict[tuple[FileKind, str], PreviewRow] = {}
    files_with: Counter[tuple[FileKind, str]] = Counter()
    are_all = True
    for file in files:
        seen = set()
        for kind, row in _columns_of(file):
            key = kind, row["column"]
            is_used = row["role"] != _NOT_USED
            limit = _MAX_USED_COLUMNS if is_used else _MAX_UNUSED_COLUMNS
            if key not in rows and len(rows) >= limit:
                are_all = False
                continue
            seen.add(key)
            # An object may lack a value.
            rows[key] = max(rows.get(key, row), row, key=_information)
        files_with.update(seen)
    shown = []
    for key in sorted(rows, key=itemgetter(0)):
        row = rows[key]
        others = files_with[key] - 1
        if others:
            row = row | {"file": f"{row['file']} and {others:,} more"}
        shown.append(row)
    return shown, are_all


def _columns_of(file: TicketFile) -> Iterator[tuple[FileKind, PreviewRow]]:
    """How each column or key of the first rows of a file is read."""
    for _, source, cells in islice(file.cells(), _MAX_ROWS):
        indices = roles_of(source.names, tuple(file.columns.items()))
        roles: dict[str, str] = {}
        for role in cells:
            roles |= {source.names[index]: role for index in indices[role]}
        roles |= nested_roles(source.fields)
        required = sorted(name for name, role in roles.items() if role in TICKET)
        kind = (file_kind(file.path), *required)
        for name, cell in zip(source.names, source.values, strict=True):
            if name not in NESTED or not isinstance(cell, dict):
                role = roles.get(name, _NOT_USED)
                if role == "body" and isinstance(cell, list):
                    # Such as GitLab's notes; in other trackers `notes` are a text.
                    role = _NOT_USED
                yield kind, _column_row(file, name, role, cell_text(cell).strip())


def _column_row(file: TicketFile, name: str, role: str, text: str) -> PreviewRow:
    time = ""
    if role in TIMES and text:
        with suppress(Malformed):
            time = file.time_of(text)
    return {
        "file": file.path.name,
        "column": name,
        "role": role,
        "first value": text,
        "understood as": time,
    }


def _information(row: PreviewRow) -> tuple[bool, bool]:
    """Whether a column has a role, and a value."""
    return row["role"] != _NOT_USED, row["first value"] != ""


def _link_rows(index: TicketIndex) -> Iterator[PreviewRow]:
    """The most frequent words beside the ids of links, and how these are read."""
    for (role, words, kind), count in index.words.most_common(_MAX_WORDS):
        yield {"words": words, "links": f"{count:,}", "column": role, "read as": kind}


def _ticket_row(row: Row[Issue], index: TicketIndex, site: TicketSite) -> PreviewRow:
    """An issue with the keys of its originals."""
    ref = IssueRef(row.repo, row.number)
    originals = [original.key(site) for original in index.marks.get(ref, ())]
    return {
        "key": ref.key(site) if ref in site.rows else str(ref),
        "created_at": row.record.created_at,
        "state": row.record.state,
        "title": row.record.title,
        "duplicate_of": ", ".join(originals),
    }


def _table_of(rows: Sequence[Mapping[str, str]]) -> ResultTable:
    table = ResultTable(*rows[0], left=[*rows[0]])
    for row in rows:
        table.add_row(*(one_line(cell, _WIDTH) for cell in row.values()))
    return table
