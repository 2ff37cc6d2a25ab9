"""Pieces of HTML in which nothing that a dataset says can act: all text goes through `escape`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from pairkit.notebook import escape

Cell = str | int | float | None


def link(address: object, text: str) -> str:
    """A link if the address is a plain https one, else the text alone."""
    if not (isinstance(address, str) and _is_https(address)):
        return escape(text)
    return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">{escape(text)}</a>'


def _is_https(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return address.startswith("https://") and bool(parts.hostname) and parts.username is None


def table(header: Sequence[str], rows: Iterable[Sequence[Cell]], *, note: str = "") -> str:
    """A table; its first column is words, the others numbers. A missing number is a dash.

    Args:
        header: Names of the columns.
        rows: Cells as plain text or numbers; whole numbers get thousands separators, others are shares.
        note: Words below it, in plain text.
    """
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    return (
        f'<div><div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f"{below}</div>"
    )


def _row(cells: Sequence[Cell]) -> str:
    first, *rest = cells
    return f'<th scope="row">{shown(first)}</th>' + "".join(f"<td>{shown(cell)}</td>" for cell in rest)


def shown(cell: Cell) -> str:
    """A cell as HTML: `1,234`, `61.0 %` for a share of 0.61, `–` for nothing."""
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return escape(cell)
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:.1%}".replace("%", "&#8239;%")


def plain_reason(key: str) -> str:
    """`text_too_short` as people read it."""
    return key.replace("_", " ")
