"""A preview of an import: the columns, times, links and tickets as it would read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gis_builder.store.records import TicketSite
from gis_builder.trackers.dump import BrokenRows
from gis_builder.trackers.ticket_files import ColumnRead
from gis_builder.trackers.tickets import ImportOptions, TicketDump, find_trackers
from pairkit.app.printable import one_line
from pairkit.app.result_table import Printed, ResultTable

_SHOWN, _WIDTH = 3, 60  # tickets, characters of a cell


@dataclass(frozen=True, repr=False)
class ImportPreview(Printed):
    """What an import would read.

    Attributes:
        columns: Each used column or key: file, role, name, first value, and a time as it is understood.
        tickets: The first three tickets: key, created_at, state, title and duplicate_of.
        counts: Number of issues by repository.
        messages: Lines on links, and on skipped files and rows.
    """

    columns: tuple[ColumnRead, ...]
    tickets: tuple[Mapping[str, str], ...]
    counts: Mapping[str, int]
    messages: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the preview."""
        return asdict(self) | {"columns": [column._asdict() for column in self.columns]}

    def tables(self) -> list[ResultTable]:
        """The columns and the first tickets."""
        columns = ResultTable(*ColumnRead._fields, left=ColumnRead._fields)
        for column in self.columns:
            columns.add_row(*(one_line(cell, _WIDTH) for cell in column))
        names = tuple(self.tickets[0]) if self.tickets else ("key",)
        tickets = ResultTable(*names, left=names)
        for ticket in self.tickets:
            tickets.add_row(*(one_line(cell, _WIDTH) for cell in ticket.values()))
        return [*([columns] if self.columns else []), tickets]

    def lines(self) -> list[str]:
        """The counts, and lines on links and on skipped files and rows."""
        return [*(f"{repo}: {count:,} issues" for repo, count in self.counts.items()), *self.messages]


def preview(source: Path, options: ImportOptions) -> ImportPreview:
    """Read the files of an import without a store."""
    broken = BrokenRows(skip=options.skip_broken)
    dumps = find_trackers(source, options, {}, broken)
    columns: list[ColumnRead] = []
    tickets: list[Mapping[str, str]] = []
    counts: Counter[str] = Counter()
    messages = [
        f"{path}: contains no issues, comments or events" for dump in dumps for path in dump.passed_over
    ]
    for dump in dumps:
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
                names = [keys[one][0] if one in keys else str(one) for one in (ref, *links)]
                fields = {"created_at": issue.created_at, "state": issue.state, "title": issue.title}
                tickets.append({"key": names[0], **fields, "duplicate_of": ", ".join(names[1:])})
    return ImportPreview(tuple(columns), tuple(tickets), counts, (*messages, *broken.notes))
