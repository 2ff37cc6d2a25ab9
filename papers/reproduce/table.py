"""The table of a recipe: means and deviations over seeds, beside the published scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from scipy.stats import ttest_rel

from pairkit.dataset.making.dataset_folder import table

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
    by_row: dict[str, list[Record]] = {}
    for record in records:
        by_row.setdefault(record.row, []).append(record)
    compared = by_row.get(recipe.compare or "", [])
    rows = []
    for row in recipe.runs:
        own = by_row.get(row.name)
        if not own:
            continue
        figures = {}
        for column, values in _columns(own, titles).items():
            figures[column] = {
                "mean": fmean(values),
                "deviation": stdev(values) if len(values) > 1 else None,
                "paper": row.published.get(column),
            }
        rows.append(
            {
                "row": row.name,
                "seeds": len(own),
                "figures": figures,
                "p": _p_value(own, compared, titles),
                "training_s": round(fmean(record.seconds for record in own), 1),
                "overlap": own[0].overlap,
            }
        )
    return rows


def markdown(recipe: Recipe, result: Mapping[str, Any]) -> str:
    """The table as a Markdown page, with scale, backbone and notes."""
    rows = result["rows"]
    # `dev` comes first; untrained rows, which are at the top, don't have it.
    names = dict.fromkeys(column for row in rows for column in row["figures"])
    columns = sorted(names, key=lambda column: column != DEV)
    is_tested = any(row["p"] is not None for row in rows)
    lines = []
    for row in rows:
        line = [row["row"], *(_cell(row["figures"].get(column)) for column in columns)]
        if is_tested:
            line.append("" if row["p"] is None else f"{row['p']:.2g}")
        lines.append([*line, str(row["seeds"]), f"{row['training_s']:,.0f}"])
    about = (
        f"Scale `{result['scale']}`, backbone {result['backbone']}. Times 100, mean ± deviation over seeds;"
        f" in brackets the published score ({recipe.paper}), with the paper's backbone and data."
    )
    if result["about"]:
        about += f" {result['about']}"
    sections = [f"# {recipe.title}", recipe.about.strip(), about]
    if result["changed"]:
        sections.append(f"Changed: {', '.join(result['changed'])}.")
    tests = ["p"] if is_tested else []
    sections.append(table(["run", *columns, *tests, "seeds", "training s"], lines))
    if is_tested:
        sections.append(
            f"p: paired t-test of {columns[-1]} against {recipe.compare} over the seeds."
        )
    sections.append("\n".join(_notes(recipe, result)))
    return "\n\n".join(filter(None, sections)).rstrip() + "\n"


def _notes(recipe: Recipe, result: Mapping[str, Any]) -> list[str]:
    notes = [f"* {row.name}: {row.about}" for row in recipe.runs if row.about]
    for name, reason in result["left_out"].items():
        notes.append(f"* {name} is skipped: {reason}")
    for row in result["rows"]:
        for task, count in row["overlap"].items():
            examples = f"{count:,} examples of {task} (all their texts)"
            notes.append(f"* {row['row']} was trained on {examples}")
    return notes


def _p_value(
    own: Sequence[Record], other: Sequence[Record], titles: Sequence[str]
) -> float | None:
    """The p-value of a paired t-test between two rows; None with fewer than two seeds in common."""
    if own is other:
        return None
    first = {record.seed: record.scores for record in own}
    second = {record.seed: record.scores for record in other}
    seeds = sorted(first.keys() & second.keys())
    if len(seeds) < 2:
        return None
    columns = first[seeds[0]]
    last = max(columns, key=lambda name: _order(name, titles))
    first_scores = [first[seed][last] for seed in seeds]
    second_scores = [second[seed][last] for seed in seeds]
    value = float(ttest_rel(first_scores, second_scores).pvalue)
    return None if isnan(value) else value


def _columns(
    records: Sequence[Record], titles: Sequence[str]
) -> dict[str, list[float]]:
    columns: dict[str, list[float]] = {}
    for record in records:
        scores = dict(record.scores)
        if record.dev is not None:
            scores.setdefault(DEV, record.dev)
        for column, value in scores.items():
            columns.setdefault(column, []).append(100 * value)
    ordered = sorted(columns, key=lambda name: _order(name, titles))
    return {column: columns[column] for column in ordered}


def _order(column: str, titles: Sequence[str]) -> tuple[int, str]:
    """The index of the column's title, or of its whole if the column is a part."""
    last = -1
    for index, title in enumerate(titles):
        if column == title or column.startswith(f"{title} "):
            last = index
    return last, column


def _cell(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return ""
    cell = f"{figure['mean']:.2f}"
    if figure["deviation"] is not None:
        cell += f" ± {figure['deviation']:.2f}"
    if figure["paper"] is not None:
        cell += f" ({figure['paper']:.2f})"
    return cell
