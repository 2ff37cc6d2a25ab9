"""From a pair dataset to the report's folder: figures, page, counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from gis_builder._report.counts import count_kinds, count_overlaps, count_sources, count_splits
from gis_builder._report.drops import drop_reasons
from gis_builder._report.lengths import TokenRule, add_lengths, token_rule
from gis_builder._report.overlap import add_overlaps
from gis_builder._report.page import render_page
from gis_builder._report.plots.canvas import Plot, check_matplotlib, save_plot
from gis_builder._report.plots.lengths import plot_lengths
from gis_builder._report.plots.overlap import plot_overlap
from gis_builder._report.plots.scores import plot_scores
from gis_builder._report.plots.sources import plot_sources
from gis_builder._report.rows import Rows, collect_rows
from gis_builder._report.samples import choose_samples
from gis_builder._report.shared_words import common_words
from pairkit.errors import ConfigError
from pairkit.files import whole_folder, write_json, write_text
from pairkit.folders import check_only, check_place, read_own
from pairkit.records import PairDataset
from pairkit.terminal import progress

COUNTS_FILE = "report.json"
PAGE_FILE = "index.html"
_FIGURES = ("lengths", "overlap", "sources", "scores")
_FILES = {COUNTS_FILE, PAGE_FILE, *(f"{name}.{kind}" for name in _FIGURES for kind in ("png", "svg"))}
_KEYS = {"dataset", "label_kind", "token_rule", "splits", "sources", "kinds", "overlap", "dropped"}
"""Of our counts, in every version."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was written.

    Attributes:
        out: Its folder.
        counts: What report.json holds.
    """

    out: Path
    counts: dict[str, Any]

    @property
    def page(self) -> Path:
        """The page to open."""
        return self.out / PAGE_FILE


def make_report(
    dataset: PairDataset, out: Path | None = None, *, seed: int = 42, quiet: bool = False
) -> Report:
    """Count, draw and write the report of a dataset.

    The folder is whole or absent, and equal input gives equal bytes.

    Args:
        dataset: Any pairs; what `gis` and `label` know of each row is used where it is there.
        out: The folder, by default `report_beside`; an earlier report there is replaced.
        seed: Chooses the sample pairs.
        quiet: No progress on stderr.

    Raises:
        ConfigError: matplotlib is missing, or `out` holds something else or can't be written.
        DataError: the dataset has no rows, or its statistics.json is damaged.
    """
    check_matplotlib()
    home = report_beside(dataset.source) if out is None else out
    check_out(home, dataset.source)
    rule = token_rule()
    rows = collect_rows(dataset)
    with progress(quiet=quiet) as bar:
        frame = add_overlaps(add_lengths(rows.frame, rule, bar), bar)
    rows = Rows(frame, rows.keys, rows.names, rows.cut, rows.named_by)
    counts = _counts(rows, dataset, rule, seed)
    plots = _plots(rows, counts)
    texts = pl.concat([frame["text1"], frame["text2"].alias("text1")]).unique()
    source = Path(dataset.source)
    name = source.resolve().name if source.exists() else dataset.source
    page = render_page(name, counts, rows, plots, choose_samples(rows, seed), common_words(texts), rule)
    with whole_folder(home) as folder:
        for plot in plots.values():
            save_plot(plot, folder)
        write_text(folder / PAGE_FILE, page)
        write_json(folder / COUNTS_FILE, counts)
    return Report(home, counts)


def report_beside(source: str) -> Path:
    """Where a report goes that is given no place: `DATASET.report`, for a hub's dataset right here."""
    path = Path(source)
    if path.exists():
        path = path.resolve()
        return path.with_name(f"{path.name}.report")
    return Path(source.rpartition("/")[2].replace(":", "-") + ".report")


def check_out(out: Path, source: str) -> None:
    """Refuse a folder that holds anything but an earlier report.

    Raises:
        ConfigError: says what is there.
    """
    check_place(out, "a report", "report")
    home = Path(source).resolve()
    if out.resolve() in (home, *home.parents):
        raise ConfigError(f"{out}: the report would replace the dataset {source}; choose another --out")
    check_only(out, _FILES if _is_report(out / COUNTS_FILE) else (), "a report of `gis report`")


def _is_report(counts: Path) -> bool:
    return (read_own(counts) or {}).keys() >= _KEYS


def _counts(rows: Rows, dataset: PairDataset, rule: TokenRule, seed: int) -> dict[str, Any]:
    return {
        "dataset": dataset.source,
        "label_kind": dataset.label_kind,
        "cut": rows.cut,
        "seed": seed,
        "token_rule": rule.key,
        "splits": count_splits(rows),
        "sources": count_sources(rows),
        "kinds": {key: count_kinds(rows, side) for side, key in enumerate(rows.keys)},
        "overlap": count_overlaps(rows),
        "dropped": drop_reasons(dataset.source),
    }


def _plots(rows: Rows, counts: dict[str, Any]) -> dict[str, Plot]:
    """The figures by name; sources are drawn from two on, scores where labels are graded."""
    plots = [plot_lengths(rows), plot_overlap(rows)]
    if len(counts["sources"]) > 1:
        plots.append(plot_sources(rows, counts["sources"]))
    if rows.cut is not None:
        plots.append(plot_scores(rows, rows.cut))
    return {plot.name: plot for plot in plots}
