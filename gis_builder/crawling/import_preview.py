"""Shows how an import would read its files, without a store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gis_builder.crawling.import_dump import passed_over
from gis_builder.crawling.ticket_dump import TicketDump, find_trackers
from gis_builder.crawling.ticket_index import TicketIndex
from gis_builder.store import Issue, IssueRef
from gis_builder.trackers.dump import BrokenRows, Row
from gis_builder.trackers.ticket_files import ColumnSummary, ImportOptions
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.printable import one_line

_SHOWN = 3  # tickets
_WIDTH = 60  # characters of a cell
_WORDS = 30  # kinds of words beside the ids of links


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
    columns = ColumnSummary()
    links: list[Mapping[str, str]] = []
    tickets: list[Mapping[str, str]] = []
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
            for file in dump.every_file:
                columns.add(file)
        for row in dump.issues():
            if row.record.is_pull:
                continue
            numbers[row.repo].add(row.number)
            if len(tickets) < _SHOWN:
                tickets.append(_ticket_row(row, index))
    if columns.is_cut:
        messages.append("not all columns are shown; preview fewer files")
    counted = [f"{repo}: {len(known):,} issues" for repo, known in numbers.items()]
    return ImportPreview(
        columns=tuple(columns.rows()),
        links=tuple(links),
        tickets=tuple(tickets),
        messages=(*counted, *messages, *broken.notes),
    )


def _link_rows(index: TicketIndex) -> Iterator[dict[str, str]]:
    """The most frequent words beside the ids of links, and how these are read."""
    for (role, words, kind), count in index.words.most_common(_WORDS):
        yield {
            "words": words,
            "links": f"{count:,}",
            "column": role,
            "read as": kind,
        }


def _ticket_row(row: Row[Issue], index: TicketIndex) -> dict[str, str]:
    """An issue with the keys of its originals."""
    ref = IssueRef(row.repo, row.number)
    return {
        "key": index.key(ref),
        "created_at": row.record.created_at,
        "state": row.record.state,
        "title": row.record.title,
        "duplicate_of": ", ".join(map(index.key, index.marks.get(ref, ()))),
    }


def _table_of(rows: Sequence[Mapping[str, str]]) -> ResultTable:
    table = ResultTable(*rows[0], left=[*rows[0]])
    for row in rows:
        table.add_row(*(one_line(cell, _WIDTH) for cell in row.values()))
    return table
