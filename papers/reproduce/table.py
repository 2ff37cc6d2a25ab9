"""The table of a recipe: mean and deviation over seeds, beside the published figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from pairkit.dataset.card import table

if TYPE_CHECKING:
    from papers.reproduce.bench import Record
    from papers.reproduce.recipe import Recipe

DEV = "dev"


def summary(recipe: Recipe, records: Sequence[Record], titles: Sequence[str]) -> list[dict[str, Any]]:
    """A row of the table as values: name, seeds, and for each column mean, deviation and published figure.

    Columns stand as in `titles`, parts behind their whole. Figures are times 100, as in the papers.
    The deviation is that of a sample; None for a single seed.
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


def markdown(recipe: Recipe, found: Mapping[str, Any]) -> str:
    """The table as Markdown, with a heading and what it rests on."""
    rows = found["rows"]
    found_in = dict.fromkeys(column for row in rows for column in row["figures"])
    columns = sorted(
        found_in, key=lambda column: column != DEV
    )  # untrained rows, which come first, have none
    lines = [
        [
            row["row"],
            *(_cell(row["figures"].get(column)) for column in columns),
            str(row["seeds"]),
            f"{row['training_s']:,.0f}",
        ]
        for row in rows
    ]
    return (
        "\n\n".join(
            [
                f"# {recipe.title}",
                recipe.about.strip(),
                f"Scale `{found['scale']}`, backbone {found['backbone']}. Times 100, mean ± deviation over"
                f" the seeds; in brackets what the paper prints ({recipe.paper}), with its own backbone"
                " and data." + (f" {found['about']}" if found["about"] else ""),
                *([f"Changed: {', '.join(found['changed'])}."] if found["changed"] else []),
                table(["run", *columns, "seeds", "training s"], lines),
                "\n".join(_notes(recipe, found)),
            ]
        ).rstrip()
        + "\n"
    )


def _notes(recipe: Recipe, found: Mapping[str, Any]) -> list[str]:
    about = [f"* {row.name}: {row.about}" for row in recipe.runs if row.about]
    skipped = [f"* {row} is left out: {reason}" for row, reason in found["left_out"].items()]
    seen = [
        f"* {row['row']} was trained on {count:,} examples of {task} (all their texts)"
        for row in found["rows"]
        for task, count in row["overlap"].items()
    ]
    return [*about, *skipped, *seen]


def _columns(records: Sequence[Record], titles: Sequence[str]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for record in records:
        figures = {**({} if record.dev is None else {DEV: record.dev}), **record.scores}
        for column, value in figures.items():
            found.setdefault(column, []).append(100 * value)
    return {column: found[column] for column in sorted(found, key=lambda column: _place(column, titles))}


def _place(column: str, titles: Sequence[str]) -> tuple[int, str]:
    wholes = [
        place for place, title in enumerate(titles) if column == title or column.startswith(f"{title} ")
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
