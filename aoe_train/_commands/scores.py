"""What `aoe evaluate` shows and writes for people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.printable import printable
from pairkit.terminal import out as stdout

if TYPE_CHECKING:
    from rich.table import Table

    from aoe_train._evaluate import Draws, Score
    from aoe_train._evaluate.table import Grid


def show_mteb(scored: Mapping[str, dict[str, Any]]) -> None:
    """The main score of each task of mteb."""
    from aoe_train._evaluate.table import mteb_figures

    stdout.print(_table(mteb_figures(scored), "mteb, times 100"))


def show_side_by_side(found: Mapping[str, Mapping[str, Mapping[str, Score]]]) -> None:
    """Several models, a table a suite."""
    from aoe_train._evaluate.table import side_by_side

    for suite in next(iter(found.values())):
        scores = {model: by_suite[suite] for model, by_suite in found.items()}
        stdout.print(_table(side_by_side(scores), f"{suite}, times 100"))


def show_scores(
    suite: str, scores: Mapping[str, Score], model: str, rival: str | None, *, subsets: bool
) -> None:
    """One model's figures in a suite, and how far it is ahead of its rival if there is one."""
    from aoe_train._evaluate.table import comparisons, figures

    stdout.print(_table(figures(scores, subsets=subsets), f"{suite}, times 100"))
    against = comparisons(scores, model, rival or "")
    if against is not None:
        stdout.print(_table(against, f"{suite}: {model} less {rival}, times 100"))


def _table(grid: Grid, title: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    def plain(text: str) -> Text:
        """As it is: names are others' words, whose brackets are no markup and whose controls no commands."""
        return Text(printable(text))

    table = Table(title=plain(title), box=None)
    for place, heading in enumerate(grid.headings):
        table.add_column(plain(heading), justify="right" if place else "left")
    for row in grid.rows:
        table.add_row(*map(plain, row))
    return table


def write_pages(
    path: Path, found: Mapping[str, Mapping[str, Score]], names: tuple[str, str | None], draws: Draws
) -> None:
    """One model's figures as Markdown, suite by suite."""
    from aoe_train._evaluate.table_markdown import markdown
    from pairkit.files import write_text

    write_text(
        path, "\n".join(markdown(suite, scores, *names, draws=draws) for suite, scores in found.items())
    )
