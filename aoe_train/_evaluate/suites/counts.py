"""Whether a task's file is the published one, by its number of rows."""

from __future__ import annotations

from pathlib import Path

from pairkit.errors import DataError


def check_rows(found: int, published: int, path: Path) -> None:
    """Refuse a file that was cut off, added to or mistaken for another.

    Raises:
        DataError: The numbers differ.
    """
    if found != published:
        raise DataError(
            f"{found:,} rows, but {published:,} are published: not the whole file, or another one; fetch it"
            " again (pairs are scored as they are with --data)",
            path=path,
        )
