"""Draws a pair dataset: lengths by split, n-gram overlap by label, rows by source (AoE, Figures 7 to 9)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pairkit.reports.counts import ORDERS, collect_rows, sizes
from pairkit.similarity.measures import LONG_TOKENS
from papers.figures.numbers import density
from papers.figures.style import COLOURS, GREY, WIDTH, fit_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pairkit.dataset.records import PairDataset

_ROW = 1.9  # inches, height of a row of panels
_MAX_NAMES = 60  # more sources are bars without names


@dataclass(frozen=True)
class PairCounts:
    """Logarithms of token counts by split, overlaps in per cent by order and label, and rows by source."""

    lengths: dict[str, np.ndarray]
    overlaps: dict[int, dict[str, np.ndarray]]
    sources: dict[str, int]

    def numbers(self) -> dict[str, Any]:
        """Shares of long texts, means and medians, for figures.json."""
        long = {}
        medians = {}
        for split, lengths in self.lengths.items():
            long[split] = _share_of_long(lengths)
            medians[split] = float(np.exp(np.median(lengths)))
        means = {}
        for order, sides in self.overlaps.items():
            named = {
                name: float(each.mean()) for name, each in sides.items() if len(each)
            }
            means[f"{order}-gram"] = named
        return {
            "long_texts": long,
            "median_tokens": medians,
            "mean_overlap": means,
            "sources": self.sources,
        }


def _share_of_long(lengths: np.ndarray) -> float:
    return float((lengths > math.log(LONG_TOKENS)).mean())


def count_pairs(dataset: PairDataset) -> PairCounts:
    """Measure all texts and pairs of a dataset."""
    rows = collect_rows(dataset, lambda _: None)
    lengths = {}
    for split, part in rows.splits.items():
        counts = np.concatenate(
            [part["tokens1"].to_numpy(), part["tokens2"].to_numpy()]
        )
        lengths[split] = np.log(np.maximum(counts, 1))
    sides = {side.name: rows.of(side) for side in (rows.low, rows.high)}
    overlaps = {}
    for order in ORDERS:
        columns = {name: part[f"overlap{order}"] for name, part in sides.items()}
        overlaps[order] = {
            name: each.drop_nulls().to_numpy() for name, each in columns.items()
        }
    return PairCounts(
        lengths, overlaps, sizes(rows.frame.drop_nulls("source"), "source")
    )


def draw_pairs(counts: PairCounts, data: str) -> Figure:
    """Draw violins of lengths, densities of overlaps, and bars of sources if there are several."""
    from matplotlib.figure import Figure

    rows = 3 if len(counts.sources) > 1 else 2
    figure = Figure(figsize=(WIDTH, rows * _ROW), layout="constrained")
    grid = figure.add_gridspec(rows, len(ORDERS))
    _draw_lengths(figure.add_subplot(grid[0, :]), counts.lengths, data)
    for column, (order, sides) in enumerate(counts.overlaps.items()):
        _draw_overlap(
            figure.add_subplot(grid[1, column]), order, sides, legend=not column
        )
    if rows == 3:
        _draw_sources(figure.add_subplot(grid[2, :]), counts.sources)
    return figure


def _draw_lengths(axes: Axes, lengths: dict[str, np.ndarray], data: str) -> None:
    parts = axes.violinplot([*lengths.values()], showmedians=True, widths=0.8)
    for body in parts["bodies"]:  # type: ignore[attr-defined]
        body.set_facecolor(COLOURS[0])
    axes.axhline(math.log(LONG_TOKENS), color=COLOURS[1], linestyle="--", linewidth=1)
    names = [
        f"{split}\n{100 * _share_of_long(each):.1f} % > {LONG_TOKENS}"
        for split, each in lengths.items()
    ]
    axes.set_xticks(range(1, len(names) + 1), names)
    axes.set_ylabel("ln(tokens)")
    axes.set_title(fit_text(data, 60))


def _draw_overlap(
    axes: Axes, order: int, sides: dict[str, np.ndarray], *, legend: bool
) -> None:
    for (name, each), colour in zip(sides.items(), COLOURS, strict=False):
        if len(each) > 1:
            curve = density(each, (0, 100), bounds=(0, 100))
            axes.plot(
                curve.x, curve.y, color=colour, label=f"{name} (mean {each.mean():.0f})"
            )
    axes.set_xlabel(f"{order}-gram overlap, %")
    axes.set_yticks([])
    if axes.lines:
        axes.legend(fontsize=6)
    if legend:
        axes.set_ylabel("density")


def _draw_sources(axes: Axes, sources: dict[str, int]) -> None:
    axes.bar(range(len(sources)), [*sources.values()], color=GREY)
    names = []
    if len(sources) <= _MAX_NAMES:
        names = [fit_text(name, 40) for name in sources]
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=5)
    axes.set_ylabel("pairs")
