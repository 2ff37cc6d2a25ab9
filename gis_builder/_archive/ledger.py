"""What became of each hour: how much of it was read, and what is missing. No hour is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

LEDGER = "ledger"  # what the rows are called in the footer of a table
_MOST_REASONS = 20  # kept apart in one hour
_OTHER = "other"


class Ledger(msgspec.Struct):
    """What was read of one hour.

    Attributes:
        hour: Its name.
        lines: Lines that are not blank.
        events: Lines that are events as far as one looks at them.
        issue_events: Those of issues, not of pull requests.
        broken: Lines that gave none as they are malformed, by reason.
        broke_off: Why the rest of the file could not be read; empty where all of it was.
        first_id: The least id of an event.
        last_id: The greatest. Other events than the archive's take ids, too.
        without_association: Of them, those that do not say what the author is to the repository.
    """

    hour: str
    lines: int = 0
    events: int = 0
    issue_events: int = 0
    broken: dict[str, int] = {}
    broke_off: str = ""
    first_id: int = 0
    last_id: int = 0
    without_association: int = 0

    def note_broken(self, reason: str) -> None:
        """Count a malformed line."""
        if reason not in self.broken and len(self.broken) >= _MOST_REASONS:
            reason = _OTHER
        self.broken[reason] = self.broken.get(reason, 0) + 1

    def note_id(self, number: int) -> None:
        """Count an event by its id."""
        self.events += 1
        self.first_id = min(self.first_id or number, number)
        self.last_id = max(self.last_id, number)


def encode_rows(rows: Iterable[Ledger]) -> str:
    """Rows as they go with a table."""
    return msgspec.json.encode(sorted(rows, key=lambda row: row.hour)).decode()


def decode_rows(text: str) -> list[Ledger]:
    """The rows of `encode_rows`."""
    return msgspec.json.decode(text, type=list[Ledger])


def by_month(asked: Iterable[str], rows: Iterable[Ledger]) -> dict[str, dict[str, Any]]:
    """What each month holds of the hours that were asked for.

    Args:
        asked: Names of hours.
        rows: Of the hours that there are.
    """
    found = {row.hour: row for row in rows}
    months: dict[str, list[str]] = {}
    for hour in asked:
        months.setdefault(hour[:7], []).append(hour)
    return {month: _counts(hours, found) for month, hours in sorted(months.items())}


def _counts(hours: list[str], found: Mapping[str, Ledger]) -> dict[str, Any]:
    rows = [found[hour] for hour in hours if hour in found]
    broken: Counter[str] = Counter()
    for row in rows:
        broken.update(row.broken)
    events = sum(row.events for row in rows)
    spanned = sum(row.last_id - row.first_id + 1 for row in rows if row.events)
    return {
        "hours": len(hours),
        "missing_hours": [hour for hour in hours if hour not in found],
        "hours_broken_off": {row.hour: row.broke_off for row in rows if row.broke_off},
        "events": events,
        "issue_events": sum(row.issue_events for row in rows),
        "broken_lines": dict(sorted(broken.items())),
        "ids_for_each_event": round(spanned / events, 2) if events else None,
        "events_without_association": sum(row.without_association for row in rows),
    }
