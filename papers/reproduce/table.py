"""The table of a recipe: means and deviations over seeds, beside the published scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from scipy.stats import ttest_rel

from pairkit.dataset.making.dataset_card import table

if TYPE_CHECKING:
    from papers.reproduce.recipe import Recipe
    from papers.reproduce.runner import Record

DEV = "dev"


def summary(
    recipe: Recipe, records: Sequence[Record], titles: Sequence[str]
) -> list[dict[str, Any]]:
    """The rows of the table: name, number of seeds, and for each column mean, deviation and published score.

    Columns are ordered as in `titles`, parts after their whole. Scores are times 100. The deviation is that
    of a sample, None for a single seed. `p` is that of a paired t-test of the last column against the row
    `recipe.compare`, over the seeds of both.
    """
    by_row = {
        row.name: [record for record in records if record.row == row.name] for row in recipe.runs
    }
    return [
        {
            "row": row.name,
            "seeds": len(own),
            "figures": {
                column: {**_spread(values), "paper": row.published.get(column)}
                for column, values in _columns(own, titles).items()
            },
            "p": _p_value(own, by_row.get(recipe.compare or "", []), titles),
            "training_s": round(fmean(record.seconds for record in own), 1),
            "overlap": own[0].overlap,
        }
        for row in recipe.runs
        if (own := by_row[row.name])
    ]


def markdown(recipe: Recipe, result: Mapping[str, Any]) -> str:
    """The table as a Markdown page, with scale, backbone and notes."""
    rows = result["rows"]
    # `dev` comes first; untrained rows, which are at the top, don't have it.
    columns = sorted(
        dict.fromkeys(column for row in rows for column in row["figures"]),
        key=lambda column: column != DEV,
    )
    tested = recipe.compare if any(row["p"] is not None for row in rows) else None
    lines = [
        [
            row["row"],
            *(_cell(row["figures"].get(column)) for column in columns),
            *([] if tested is None else ["" if row["p"] is None else f"{row['p']:.2g}"]),
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
        table(["run", *columns, *([] if tested is None else ["p"]), "seeds", "training s"], lines),
        ""
        if tested is None
        else f"p: paired t-test of {columns[-1]} against {tested} over the seeds.",
        "\n".join(_notes(recipe, result)),
    ]
    return "\n\n".join(filter(None, sections)).rstrip() + "\n"


def _notes(recipe: Recipe, result: Mapping[str, Any]) -> list[str]:
    about = [f"* {row.name}: {row.about}" for row in recipe.runs if row.about]
    skipped = [f"* {row} is skipped: {reason}" for row, reason in result["left_out"].items()]
    overlap = [
        f"* {row['row']} was trained on {count:,} examples of {task} (all their texts)"
        for row in result["rows"]
        for task, count in row["overlap"].items()
    ]
    return [*about, *skipped, *overlap]


def _p_value(own: Sequence[Record], other: Sequence[Record], titles: Sequence[str]) -> float | None:
    """The p-value of a paired t-test between two rows; None with fewer than two seeds in common."""
    first, second = ({record.seed: record.scores for record in records} for records in (own, other))
    seeds = sorted(first.keys() & second.keys()) if own is not other else []
    if len(seeds) < 2:
        return None
    last = max(first[seeds[0]], key=lambda name: _order(name, titles))
    value = float(
        ttest_rel([first[s][last] for s in seeds], [second[s][last] for s in seeds]).pvalue
    )
    return None if isnan(value) else value


def _columns(records: Sequence[Record], titles: Sequence[str]) -> dict[str, list[float]]:
    columns: dict[str, list[float]] = {}
    for record in records:
        scores = {**({} if record.dev is None else {DEV: record.dev}), **record.scores}
        for column, value in scores.items():
            columns.setdefault(column, []).append(100 * value)
    return {
        column: columns[column] for column in sorted(columns, key=lambda name: _order(name, titles))
    }


def _order(column: str, titles: Sequence[str]) -> tuple[int, str]:
    """The index of the column's title, or of its whole if the column is a part."""
    wholes = [
        index
        for index, title in enumerate(titles)
        if column == title or column.startswith(f"{title} ")
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
