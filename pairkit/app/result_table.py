"""A table of results with one look: on a terminal of any width, in plain text and in a notebook."""

from __future__ import annotations

import html
import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib.resources import files

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from pairkit.app.printable import printable


def html_table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str = "",
    note: str = "",
    words: Collection[int] = (0,),
) -> str:
    """A table for `_repr_html_`; whatever its cells hold is shown as text."""
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


def style(package: str, sheet: str) -> str:
    """The look that all pages have, and behind it a page's own."""
    places = (("pairkit.app", "page_style.css"), (package, sheet))
    return "".join(files(home).joinpath(name).read_text(encoding="utf-8") for home, name in places)


class Printed:
    """A result that prints its tables, on a terminal and in a notebook."""

    def table(self) -> ResultTable:
        """Its table, if it has only one."""
        raise NotImplementedError

    def tables(self) -> Sequence[ResultTable | str]:
        """Its tables."""
        return [self.table()]

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self.tables()))

    def _repr_html_(self) -> str:
        return "".join(
            escape(part) if isinstance(part, str) else part._repr_html_() for part in self.tables()
        )


Cell = str | int | float | None

UNBOUNDED = 1 << 16  # columns of a place that has no edge
_LOOK = Box(
    "    \n    \n ── \n    \n ── \n    \n    \n    \n"
)  # a line below the headings, and for `add_rule`
_PAD = 1  # on either side of a cell
_GAP = 2 * _PAD + 1  # columns between two columns: their padding, and the line between them
_NARROWEST = 16  # what a column of words may be folded to


class ResultTable:
    """Headings and rows; words are folded, numbers are not: columns without room follow below."""

    def __init__(
        self, *headings: str, title: str = "", caption: str = "", left: Collection[str] = ()
    ) -> None:
        self.headings, self.title, self.caption = headings, title, caption
        self._left = {0, *(place for place, heading in enumerate(headings) if heading in left)}
        self.rows: list[tuple[str, ...]] = []
        self._rules: set[int] = set()

    def add_row(self, *cells: Cell) -> None:
        """Add a row: whole numbers get thousands separators, None is a dash, a float stands as it is."""
        if len(cells) != len(self.headings):
            raise ValueError(f"{len(cells)} cells for {len(self.headings)} columns")
        self.rows.append(tuple(shown(cell) for cell in cells))

    def add_rule(self) -> None:
        """Draw a line below the last row, as above a sum."""
        self._rules.add(len(self.rows) - 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.title:
            yield Text(printable(self.title), style="bold")
        options = options.update(max_width=getattr(console, "table_width", options.max_width))
        for columns in self._blocks(options.max_width):
            yield from console.render(self._block(columns), options)
        if self.caption:
            yield Text(printable(self.caption), style="dim")

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=UNBOUNDED, color_system=None)
        with console.capture() as text:
            console.print(self)
        return "\n".join(line.rstrip() for line in text.get().splitlines())

    def _repr_html_(self) -> str:
        return html_table(self.headings, self.rows, title=self.title, note=self.caption, words=self._left)

    def _blocks(self, width: int) -> Iterator[Sequence[int]]:
        """Columns that stand side by side; the first in every block."""
        needs = [self._need(place) for place in range(len(self.headings))]
        block, used = [0], needs[0]
        for place in range(1, len(needs)):
            if len(block) > 1 and used + _GAP + needs[place] > width:
                yield block
                block, used = [0], needs[0]
            block.append(place)
            used += _GAP + needs[place]
        yield block

    def _need(self, place: int) -> int:
        widest = max(cell_len(cell) for cell in (self.headings[place], *(row[place] for row in self.rows)))
        return min(widest, _NARROWEST) if place in self._left else widest

    def _block(self, columns: Sequence[int]) -> Table:
        table = Table(box=_LOOK, show_edge=False, pad_edge=False, padding=(0, _PAD))
        for place in columns:
            is_words = place in self._left
            table.add_column(
                Text(printable(self.headings[place])),
                justify="left" if is_words else "right",
                no_wrap=not is_words,
                overflow="fold",
            )
        for number, row in enumerate(self.rows):
            cells = [Text(printable(row[place])) for place in columns]
            table.add_row(*cells, end_section=number in self._rules)
        return table
