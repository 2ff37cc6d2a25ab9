"""How many texts rows have room for: as many as the row that has most."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pairkit.errors import DataError

_MOST_CELLS, _WIDER = 1 << 27, 4  # 1 GiB of texts' numbers; so many times as many texts as rows have


def check_width(widths: np.ndarray, place: Callable[[int], str]) -> None:
    """Refuse a few rows of so many negatives that room for as many in all rows would be mostly empty.

    Args:
        widths: How many texts each row has.
        place: Tells where a row is from, as `file:row`.

    Raises:
        DataError: Names the row with most.
    """
    most, mean = int(widths.max()), float(widths.mean())
    cells = len(widths) * most
    if cells > _MOST_CELLS and most > _WIDER * mean:
        raise DataError(
            f"{place(int(widths.argmax()))}: has {most - 2:,} negatives, where rows have {mean - 2:.1f} on"
            f" average; as much room in each of {len(widths):,} rows takes {8 * cells / 2**30:.1f} GiB: leave"
            " some out"
        )
