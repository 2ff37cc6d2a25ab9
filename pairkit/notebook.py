"""What results look like in a notebook: HTML in which nothing that a dataset says can act."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence

from pairkit.printable import printable


def html_table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str = "",
    note: str = "",
    words: Collection[int] = (0,),
) -> str:
    """A table for `_repr_html_`; whatever its cells hold is shown as text.

    Args:
        header: Names of the columns.
        rows: Cells; None is a dash, whole numbers get thousands separators.
        title: A line above.
        note: A line below.
        words: Places of the columns that hold words; the others are numbers, and stand on the right.
    """
    sides = [f"text-align:{'left' if place in words else 'right'}" for place in range(len(header))]
    head = "".join(
        f'<th style="{side}">{escape(name)}</th>' for side, name in zip(sides, header, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{side}">{escape(shown(cell))}</td>' for side, cell in zip(sides, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    caption = f'<caption style="text-align:left"><b>{escape(title)}</b></caption>' if title else ""
    below = f"<p><small>{escape(note)}</small></p>" if note else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def escape(text: str) -> str:
    """`text` for HTML, also inside quoted attributes; control and direction characters made visible."""
    return html.escape(printable(text), quote=True)


def shown(cell: object) -> str:
    """A cell as text: `1,234` for a whole number, `–` for nothing."""
    if cell is None:
        return "–"
    is_whole = isinstance(cell, int) and not isinstance(cell, bool)
    return f"{cell:,}" if is_whole else str(cell)
