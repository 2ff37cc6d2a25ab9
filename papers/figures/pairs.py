"""Draws a pair dataset: lengths by split, n-gram overlap by label, rows by source (AoE, Figures 7 to 9)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pairkit.reports.counts import ORDERS, collect_rows, sizes
from pairkit.similarity.measures import LONG_TOKENS
from papers.figures.densities import density
from papers.figures.style import COLOURS, GREY, fit_text, new_figure

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
        for order, by_label in self.overlaps.items():
            means[f"{order}-gram"] = {
                label: float(overlaps.mean())
                for label, overlaps in by_label.items()
                if len(overlaps)
            }
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
    for split, frame in rows.splits.items():
        tokens = pl.concat([frame["tokens1"], frame["tokens2"]])
        lengths[split] = np.log(tokens.clip(1).to_numpy())
    overlaps: dict[int, dict[str, np.ndarray]] = {order: {} for order in ORDERS}
    for side in (rows.low, rows.high):
        for order in ORDERS:
            column = rows.of(side)[f"overlap{order}"]
            overlaps[order][side.name] = column.drop_nulls().to_numpy()
    sources = sizes(rows.frame.drop_nulls("source"), "source")
    return PairCounts(lengths, overlaps, sources)


def draw_pairs(counts: PairCounts, data: str) -> Figure:
    """Draw violins of lengths, densities of overlaps, and bars of sources if there are several."""
    rows = 3 if len(counts.sources) > 1 else 2
    figure = new_figure(rows * _ROW)
    grid = figure.add_gridspec(rows, len(ORDERS))
    _draw_lengths(figure.add_subplot(grid[0, :]), counts.lengths, data)
    for column, (order, by_label) in enumerate(counts.overlaps.items()):
        axes = figure.add_subplot(grid[1, column])
        _draw_overlap(axes, order, by_label)
        if column == 0:
            axes.set_ylabel("density")
    if rows == 3:
        _draw_sources(figure.add_subplot(grid[2, :]), counts.sources)
    return figure


def _draw_lengths(axes: Axes, lengths: dict[str, np.ndarray], data: str) -> None:
    violins = axes.violinplot(
        [*lengths.values()],
        showmedians=True,
        widths=0.8,
    )
    for body in violins["bodies"]:  # type: ignore[attr-defined]
        body.set_facecolor(COLOURS[0])
    axes.axhline(
        math.log(LONG_TOKENS),
        color=COLOURS[1],
        linestyle="--",
        linewidth=1,
    )
    names = []
    for split, logarithms in lengths.items():
        share = 100 * _share_of_long(logarithms)
        names.append(f"{split}\n{share:.1f} % > {LONG_TOKENS}")
    axes.set_xticks(range(1, len(names) + 1), names)
    axes.set_ylabel("ln(tokens)")
    axes.set_title(fit_text(data, 60))


def _draw_overlap(axes: Axes, order: int, by_label: dict[str, np.ndarray]) -> None:
    for (label, overlaps), colour in zip(by_label.items(), COLOURS, strict=False):
        if len(overlaps) > 1:
            curve = density(overlaps, (0, 100), bounds=(0, 100))
            named = f"{label} (mean {overlaps.mean():.0f})"
            axes.plot(
                curve.x,
                curve.y,
                color=colour,
                label=named,
            )
    axes.set_xlabel(f"{order}-gram overlap, %")
    axes.set_yticks([])
    if axes.lines:
        axes.legend(fontsize=6)


def _draw_sources(axes: Axes, sources: dict[str, int]) -> None:
    places = range(len(sources))
    axes.bar(places, [*sources.values()], color=GREY)
    names = []
    if len(sources) <= _MAX_NAMES:
        names = [fit_text(name, 40) for name in sources]
    axes.set_xticks(
        range(len(names)),
        names,
        rotation=90,
        fontsize=5,
    )
    axes.set_ylabel("pairs")
