"""A suite's figures as a page of Markdown, beside what the papers report."""

from __future__ import annotations

import math
from collections.abc import Mapping

from aoe_train._evaluate.published import PUBLISHED, PublishedTable
from aoe_train._evaluate.score import Draws, Score
from aoe_train._evaluate.table import Grid, comparisons, figures
from pairkit.card import table


def markdown(
    suite: str, scores: Mapping[str, Score], model: str, rival: str | None = None, *, draws: Draws
) -> str:
    """A page: the model's figures, its rival's, the papers', and what the model was trained on.

    Args:
        suite: Its name, by which the papers' tables are found.
        scores: By task.
        model: Its name.
        rival: The name of the model that it is compared with.
        draws: What intervals and tests rest on.
    """
    parts = [f"# {model} on {suite}", _table(figures(scores, subsets=True)), _legend(draws)]
    against = comparisons(scores, model, rival or "")
    if against is not None:
        parts += [f"## Against {rival}", _table(against)]
    for published in PUBLISHED.get(suite, ()):
        parts += [f"## Beside {published.source}", _beside(published, scores, model)]
    leaks = [f"- {name}: {found.overlap}" for name, found in scores.items() if _is_leak(found)]
    if leaks:
        parts += ["## What the model was trained on", "\n".join(leaks)]
    return "\n\n".join(parts) + "\n"


def rankings_markdown(grids: Mapping[str, Grid], *, draws: Draws) -> str:
    """A page of tables by title."""
    parts = [part for title, grid in grids.items() for part in (f"## {title}", _table(grid))]
    return "\n\n".join([*parts, _legend(draws)]) + "\n"


def _table(grid: Grid) -> str:
    return table(tuple(grid.headings), [tuple(row) for row in grid.rows])


def _legend(draws: Draws) -> str:
    told = "All figures are times 100."
    if not draws.number:
        return told
    return f"{told} In brackets: 95 % bootstrap intervals ({draws.number:,} resamples, seed {draws.seed})."


def _beside(published: PublishedTable, scores: Mapping[str, Score], model: str) -> str:
    """The paper's rows under the model's own; the average only where the model has all tasks of it."""
    own = [
        scores[task].result.scores.get(published.metric) if task in scores else None
        for task in published.tasks
    ]
    known = [100 * value for value in own if value is not None]
    average = sum(known) / len(known) if len(known) == len(own) else None
    mine = [None if value is None else 100 * value for value in own]
    rows = [(f"**{model}**", *(_figure(value) for value in (*mine, average)))]
    rows += [(name, *map(_figure, row)) for name, row in published.rows.items()]
    return table((published.metric, *published.tasks, "Avg."), rows)


def _figure(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.2f}"


def _is_leak(score: Score) -> bool:
    return score.overlap is not None and score.overlap.texts > 0
