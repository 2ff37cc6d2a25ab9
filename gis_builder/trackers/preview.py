"""A preview of an import: the columns, times, links and tickets as it would read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gis_builder.store.issue_records import TicketSite
from gis_builder.trackers.dump import BrokenRows
from gis_builder.trackers.ticket_files import ImportOptions
from gis_builder.trackers.tickets import TicketDump, find_trackers
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.printable import one_line

_SHOWN, _WIDTH = 3, 60  # tickets, characters of a cell


@dataclass(frozen=True, repr=False)
class ImportPreview(Printed):
    """What an import would read.

    Attributes:
        columns: Each column or key: file, column, role, first value, and a time as it is understood.
        tickets: The first three tickets: key, created_at, state, title and duplicate_of.
        messages: Number of issues and links, and lines on skipped files, rows and links.
    """

    columns: tuple[Mapping[str, str], ...]
    tickets: tuple[Mapping[str, str], ...]
    messages: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the preview."""
        return asdict(self)

    def tables(self) -> list[ResultTable]:
        """The columns and the first tickets."""
        return [_table(rows) for rows in (self.columns, self.tickets) if rows]

    def lines(self) -> list[str]:
        """The messages."""
        return list(self.messages)


def preview(source: Path, options: ImportOptions) -> ImportPreview:
    """Read the files of an import without a store."""
    broken = BrokenRows(skip=options.skip_broken)
    columns: list[Mapping[str, str]] = []
    tickets: list[Mapping[str, str]] = []
    counts: Counter[str] = Counter()
    messages: list[str] = []
    for dump in find_trackers(source, options, {}, broken):
        messages += [f"{path}: contains no issues, comments or events" for path in dump.passed_over]
        index = dump.index if isinstance(dump, TicketDump) else None
        keys = TicketSite.of(index.tickets).rows if index else {}
        if isinstance(dump, TicketDump) and index:
            columns += [column for file in dump.every_file for column in file.columns_read()]
            messages += [f"{index.link_count:,} duplicate links", *index.notes("an import lists them")]
        for repo, _, issue, _ in dump.issues():
            counts[repo] += not issue.is_pull
            if len(tickets) < _SHOWN and not issue.is_pull:
                ref = issue.ref._replace(repo=repo)
                links = index.marks.get(ref, ()) if index else ()
                names = [
                    keys[issue_ref][0] if issue_ref in keys else str(issue_ref) for issue_ref in (ref, *links)
                ]
                fields = {"created_at": issue.created_at, "state": issue.state, "title": issue.title}
                tickets.append({"key": names[0], **fields, "duplicate_of": ", ".join(names[1:])})
    counted = [f"{repo}: {count:,} issues" for repo, count in counts.items()]
    return ImportPreview(tuple(columns), tuple(tickets), (*counted, *messages, *broken.notes))


def _table(rows: Sequence[Mapping[str, str]]) -> ResultTable:
    table = ResultTable(*rows[0], left=[*rows[0]])
    for row in rows:
        table.add_row(*(one_line(cell, _WIDTH) for cell in row.values()))
    return table
