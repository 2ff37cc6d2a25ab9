"""Tables of results for terminals of any width, plain text and notebooks."""

from __future__ import annotations

import html
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from pairkit.base.cli.terminal import CommandResult
from pairkit.base.printable import printable

PAGE_HEAD = (
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
)

Cell = str | int | float | None

UNBOUNDED = 1 << 16  # columns
# It has a line below the headings and one for `add_rule`.
_BOX = Box("    \n    \n ── \n    \n ── \n    \n    \n    \n")
_PAD = 1  # on either side of a cell
_GAP = 2 * _PAD + 1  # between two columns
_MIN_WORDS_WIDTH = 16  # to which a column of words may be folded

# In case that escaping fails: the browser neither runs nor loads anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def html_table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str = "",
    note: str = "",
    words: Collection[int] = (0,),
) -> str:
    """An HTML table with escaped cells; the columns `words` are left-aligned."""
    sides = [
        f"text-align:{'left' if column in words else 'right'}"
        for column in range(len(header))
    ]
    caption = ""
    if title:
        caption = f'<caption style="text-align:left"><b>{escape(title)}</b></caption>'
    head = ""
    for side, name in zip(sides, header, strict=True):
        head += f'<th style="{side}">{escape(name)}</th>'
    body = ""
    for row in rows:
        body += "<tr>"
        for side, cell in zip(sides, row, strict=True):
            body += f'<td style="{side}">{escape(shown(cell))}</td>'
        body += "</tr>"
    below = f"<p><small>{escape(note)}</small></p>" if note else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def escape(text: str) -> str:
    """Escape text for HTML and quoted attributes; control and direction characters are replaced."""
    return html.escape(printable(text), quote=True)


def shown(cell: object) -> str:
    """A cell as text: `1,234` for an integer, `–` for None."""
    if cell is None:
        return "–"
    is_whole = isinstance(cell, int) and not isinstance(cell, bool)
    return f"{cell:,}" if is_whole else str(cell)


def resource(package: str, name: str) -> str:
    """A text file of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def style(package: str, sheet: str) -> str:
    """The common style sheet of all pages and that of one page."""
    return resource("pairkit.base.cli", "page_style.css") + resource(package, sheet)


class Printed(CommandResult):
    """A result that is displayed as tables on a terminal and in a notebook."""

    def table(self) -> ResultTable:
        """The only table."""
        raise NotImplementedError

    def tables(self) -> Sequence[ResultTable | str]:
        """All tables."""
        return [self.table()]

    def __repr__(self) -> str:
        tables = "\n\n".join(map(str, self.tables()))
        return "\n".join(filter(None, [tables, *self.lines()]))

    def _repr_html_(self) -> str:
        parts = [
            escape(part) if isinstance(part, str) else part._repr_html_()
            for part in self.tables()
        ]
        lines = "<br>".join(map(escape, self.lines()))
        return "".join(parts) + (f"<p><small>{lines}</small></p>" if lines else "")


class ResultTable:
    """Headings and rows; words are folded, and number columns that don't fit follow below."""

    def __init__(
        self,
        *headings: str,
        title: str = "",
        caption: str = "",
        left: Collection[str] = (),
    ) -> None:
        self.headings = headings
        self.title = title
        self.caption = caption
        self._left = {0}
        for column, heading in enumerate(headings):
            if heading in left:
                self._left.add(column)
        self.rows: list[tuple[str, ...]] = []
        self._rules: set[int] = set()

    def add_row(self, *cells: Cell) -> None:
        """Add a row: integers get thousands separators, None is a dash, floats are unchanged."""
        self.rows.append(tuple(shown(cell) for cell in cells))

    def add_rule(self) -> None:
        """Draw a line below the last row."""
        self._rules.add(len(self.rows) - 1)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        if self.title:
            yield Text(printable(self.title), style="bold")
        options = options.update(
            max_width=getattr(console, "table_width", options.max_width)
        )
        for columns in self._blocks(options.max_width):
            yield from console.render(self._block(columns), options)
        if self.caption:
            yield Text(printable(self.caption), style="dim")

    def __repr__(self) -> str:
        console = Console(file=io.StringIO(), width=UNBOUNDED, color_system=None)
        with console.capture() as text:
            console.print(self)
        return "\n".join(line.rstrip() for line in text.get().splitlines())

    def _repr_html_(self) -> str:
        return html_table(
            self.headings,
            self.rows,
            title=self.title,
            note=self.caption,
            words=self._left,
        )

    def _blocks(self, width: int) -> Iterator[Sequence[int]]:
        """Groups of columns that fit side by side; each has the first column."""
        needs = []
        for column, cells in enumerate(zip(self.headings, *self.rows, strict=True)):
            widest = max(map(cell_len, cells))
            is_words = column in self._left
            needs.append(min(widest, _MIN_WORDS_WIDTH) if is_words else widest)

        block = [0]
        used = needs[0]
        for column in range(1, len(needs)):
            if len(block) > 1 and used + _GAP + needs[column] > width:
                yield block
                block = [0]
                used = needs[0]
            block.append(column)
            used += _GAP + needs[column]
        yield block

    def _block(self, columns: Sequence[int]) -> Table:
        table = Table(box=_BOX, show_edge=False, pad_edge=False, padding=(0, _PAD))
        for column in columns:
            is_words = column in self._left
            table.add_column(
                Text(printable(self.headings[column])),
                justify="left" if is_words else "right",
                no_wrap=not is_words,
                overflow="fold",
            )
        for number, row in enumerate(self.rows):
            cells = [Text(printable(row[column])) for column in columns]
            table.add_row(*cells, end_section=number in self._rules)
        return table


def html_page(
    command: str,
    kind: str,
    name: str,
    sections: Mapping[str, str],
    foot: str,
) -> str:
    """A page of the command, with links to its sections; empty ones are left out."""
    from pairkit.base.extras import __version__

    shown = [
        (f"section{place}", title, body)
        for place, (title, body) in enumerate(sections.items())
        if body
    ]
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in shown)
    body = "".join(
        f'<section id="{key}"><h2>{title}</h2>{inner}</section>'
        for key, title, inner in shown
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'{generator(command)}<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"{PAGE_HEAD}<title>{escape(name)}: {kind.lower()}</title>"
        f"<style>{style('pairkit.base.cli', 'report.css')}</style></head>"
        f'<body><header class="top"><p>{kind}</p><h1>{escape(name)}</h1><nav>{links}</nav></header>'
        f"<main>{body}</main>"
        f"<footer>Made by {command} (aoe-toolkit {__version__}){escape(foot)}</footer></body></html>\n"
    )


def generator(command: str) -> str:
    """The tag by which a page of a command is recognised."""
    return f'<meta name="generator" content="{command}">'
