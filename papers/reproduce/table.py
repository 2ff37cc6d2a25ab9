"""The table of a recipe: means and deviations over seeds, beside the published scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from pairkit.dataset.card import table

if TYPE_CHECKING:
    from papers.reproduce.recipe import Recipe
    from papers.reproduce.runner import Record

DEV = "dev"


def summary(recipe: Recipe, records: Sequence[Record], titles: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of the table: name, number of seeds, and for each column mean, deviation and published score.

    Columns are ordered as in `titles`, parts after their whole. Scores are times 100. The deviation is that
    of a sample, None for a single seed.
    """
    return [
        {
            "row": row.name,
            "seeds": len(own),
            "figures": {
                column: {**_spread(values), "paper": row.paper.get(column)}
                for column, values in _columns(own, titles).items()
            },
            "training_s": round(fmean(record.seconds for record in own), 1),
            "overlap": own[0].overlap,
        }
        for row in recipe.runs
        if (own := [record for record in records if record.row == row.name])
    ]


def markdown(recipe: Recipe, result: Mapping[str, Any]) -> str:
    """The table as a Markdown page, with scale, backbone and notes."""
    rows = result["rows"]
    # `dev` comes first; untrained rows, which are at the top, don't have it.
    columns = sorted(
        dict.fromkeys(column for row in rows for column in row["figures"]), key=lambda column: column != DEV
    )
    lines = [
        [
            row["row"],
            *(_cell(row["figures"].get(column)) for column in columns),
            str(row["seeds"]),
            f"{row['training_s']:,.0f}",
        ]
        for row in rows
    ]
    sections = [
        f"# {recipe.title}",
        recipe.about.strip(),
        f"Scale `{result['scale']}`, backbone {result['backbone']}. Times 100, mean ± deviation over seeds;"
        f" in brackets the published score ({recipe.paper}), with the paper's backbone and data."
        + (f" {result['about']}" if result["about"] else ""),
        *([f"Changed: {', '.join(result['changed'])}."] if result["changed"] else []),
        table(["run", *columns, "seeds", "training s"], lines),
        "\n".join(_notes(recipe, result)),
    ]
    return "\n\n".join(sections).rstrip() + "\n"


def _notes(recipe: Recipe, result: Mapping[str, Any]) -> list[str]:
    about = [f"* {row.name}: {row.about}" for row in recipe.runs if row.about]
    skipped = [f"* {row} is skipped: {reason}" for row, reason in result["left_out"].items()]
    overlap = [
        f"* {row['row']} was trained on {count:,} examples of {task} (all their texts)"
        for row in result["rows"]
        for task, count in row["overlap"].items()
    ]
    return [*about, *skipped, *overlap]


def _columns(records: Sequence[Record], titles: Sequence[str]) -> dict[str, list[float]]:
    columns: dict[str, list[float]] = {}
    for record in records:
        scores = {**({} if record.dev is None else {DEV: record.dev}), **record.scores}
        for column, value in scores.items():
            columns.setdefault(column, []).append(100 * value)
    return {column: columns[column] for column in sorted(columns, key=lambda name: _order(name, titles))}


def _order(column: str, titles: Sequence[str]) -> tuple[int, str]:
    """The index of the column's title, or of its whole if the column is a part."""
    wholes = [
        index for index, title in enumerate(titles) if column == title or column.startswith(f"{title} ")
    ]
    return (max(wholes), column) if wholes else (-1, column)


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    return {"mean": fmean(values), "deviation": stdev(values) if len(values) > 1 else None}


def _cell(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return ""
    spread = "" if figure["deviation"] is None else f" ± {figure['deviation']:.2f}"
    paper = "" if figure["paper"] is None else f" ({figure['paper']:.2f})"
    return f"{figure['mean']:.2f}{spread}{paper}"
