"""A working folder as its user sees it: imports, verdicts, and the rows of `store.sqlite`."""

import sqlite3
from contextlib import closing

import gis_builder

_CONTENT = {
    "repos": "SELECT name, full_name, outcome FROM repos WHERE listed AND outcome <> 'failed' ORDER BY 1",
    "issues": "SELECT * FROM issues ORDER BY repo, number",
    "comments": "SELECT * FROM comments ORDER BY repo, number, id",
    "events": "SELECT * FROM events ORDER BY repo, number, place",
    "missing": "SELECT * FROM missing ORDER BY repo, number",
}


def imported(source, work, **options):
    """Import a saved tracker."""
    return gis_builder.import_tracker(source, work, **options)


def stored(work, sql):
    """The rows that a query finds in the store, or their values if they have only one column."""
    with closing(
        sqlite3.connect(f"file:{work / 'store.sqlite'}?mode=ro", uri=True)
    ) as connection:
        rows = connection.execute(sql).fetchall()
    return [row[0] if len(row) == 1 else row for row in rows]


def contents(work):
    """Everything that was fetched or imported."""
    return {table: stored(work, sql) for table, sql in _CONTENT.items()}


def verdicts(work, **settings):
    """Outcome, targets and reason of each issue."""
    dotted = {f"detect.{name}": value for name, value in settings.items()}
    rows = gis_builder.detect(work, settings=dotted).verdicts.iter_rows(named=True)
    return {
        f"{row['repo']}#{row['number']}": (
            row["verdict"],
            [
                *(f"{row['repo']}#{number}" for number in row["targets"]),
                *row["targets_elsewhere"],
            ],
            row["reason"],
        )
        for row in rows
    }
