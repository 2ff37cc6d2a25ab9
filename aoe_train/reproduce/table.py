"""The table of a recipe: mean and deviation over seeds, beside the published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from pairkit.card import table

if TYPE_CHECKING:
    from aoe_train.reproduce.execute import Record
    from aoe_train.reproduce.recipe import Recipe

DEV = "dev"


def summary(recipe: Recipe, records: Sequence[Record]) -> list[dict[str, Any]]:
    """A row of the table as values: name, seeds, and for each column mean, deviation and published figure.

    Figures are times 100, as in the papers. The deviation is that of a sample; None for a single seed.
    """
    return [
        {
            "row": row.name,
            "seeds": len(own),
            "figures": {
                column: {**_spread(values), "paper": row.paper.get(column)}
                for column, values in _columns(own).items()
            },
            "training_s": round(fmean(record.seconds for record in own), 1),
        }
        for row in recipe.runs
        if (own := [record for record in records if record.row == row.name])
    ]


def markdown(recipe: Recipe, rows: Sequence[Mapping[str, Any]], scale: str, backbone: str) -> str:
    """The table as Markdown, with a heading and what it rests on."""
    columns = list(dict.fromkeys(column for row in rows for column in row["figures"]))
    heading = ["run", *columns, "seeds", "training s"]
    lines = [
        [
            row["row"],
            *(_cell(row["figures"].get(column)) for column in columns),
            str(row["seeds"]),
            f"{row['training_s']:,.0f}",
        ]
        for row in rows
    ]
    return "\n".join(
        [
            f"# {recipe.title}",
            "",
            recipe.about.strip(),
            "",
            f"Scale `{scale}`, backbone {backbone}. Times 100, mean ± deviation over the seeds; in brackets"
            f" what the paper prints ({recipe.paper}), with its own backbone and data.",
            "",
            table(heading, lines),
            "",
        ]
    )


def _columns(records: Sequence[Record]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for record in records:
        figures = {**({} if record.dev is None else {DEV: record.dev}), **record.scores}
        for column, value in figures.items():
            found.setdefault(column, []).append(100 * value)
    return found


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    return {"mean": fmean(values), "deviation": stdev(values) if len(values) > 1 else None}


def _cell(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return ""
    spread = "" if figure["deviation"] is None else f" ± {figure['deviation']:.2f}"
    paper = "" if figure["paper"] is None else f" ({figure['paper']:.2f})"
    return f"{figure['mean']:.2f}{spread}{paper}"
