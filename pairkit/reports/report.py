"""From a pair dataset to the report's folder: figures, page, counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pairkit.app.errors import ConfigError
from pairkit.app.progress import Display, Listener
from pairkit.app.result_table import ResultTable
from pairkit.dataset.records import PairDataset
from pairkit.reports.counts import (
    TokenRule,
    add_lengths,
    add_overlaps,
    count_kinds,
    count_overlaps,
    count_sources,
    count_splits,
    token_rule,
)
from pairkit.reports.page import render_page
from pairkit.reports.pictures import check_matplotlib
from pairkit.reports.plots import Plot, plot_lengths, plot_overlap, plot_scores, plot_sources, save_plot
from pairkit.reports.rows import ReportRows, choose_samples, collect_rows, drop_reasons, skipped_labels
from pairkit.similarity.measures import common_words
from pairkit.system.files import whole_folder, write_json, write_text
from pairkit.system.folders import beside, check_only, check_place, own_name, read_own

COUNTS_FILE = "report.json"
PAGE_FILE = "index.html"
_FIGURES = ("lengths", "overlap", "sources", "scores")
_FILES = {COUNTS_FILE, PAGE_FILE, *(f"{name}.{kind}" for name in _FIGURES for kind in ("png", "svg"))}
_KEYS = {"dataset", "label_kind", "token_rule", "splits", "sources", "kinds", "overlap", "dropped"}
"""Of our counts, in every version."""
# Counts that are no whole numbers: what the table calls them, and how it writes them.
_FORMS = {"long_share": ("> 512 tokens", ".0%"), "gap_auc": ("AUC of the gap in time", ".4f")}


@dataclass(frozen=True, slots=True, repr=False)
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

    def to_dict(self) -> dict[str, Any]:
        """Its folder, its page and the counts."""
        return {"out": str(self.out), "page": str(self.page), **self.counts}

    def next_steps(self) -> list[tuple[str, str]]:
        """How to see it."""
        return [("open the page in a browser", str(self.page))]

    def table(self) -> ResultTable:
        """The counts by split, as the page begins with them."""
        splits = self.counts["splits"]
        shown = ResultTable("pairs", *splits, title=str(self.page))
        for key in next(iter(splits.values())):
            name, form = _FORMS.get(key, (key.replace("_", " "), ","))
            values = [split[key] for split in splits.values()]
            shown.add_row(name, *(None if value is None else f"{value:{form}}" for value in values))
        return shown

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def make_report(
    dataset: PairDataset, out: Path | None = None, *, seed: int = 42, progress: bool | Listener = True
) -> Report:
    """Count, draw and write the report of a dataset.

    The folder is whole or absent, and equal input gives equal bytes.
    """
    check_matplotlib("the report")
    home = beside(dataset.source, "report") if out is None else out
    check_out(home, dataset.source)
    rule = token_rule()
    rows = collect_rows(dataset)
    with Display(progress) as tell:
        frame = add_overlaps(add_lengths(rows.frame, rule, tell), tell)
    rows = ReportRows(frame, rows.keys, rows.names, rows.cut, rows.named_by)
    counts = _counts(rows, dataset, rule, seed)
    plots = _plots(rows, counts)
    texts = pl.concat([frame["text1"], frame["text2"].alias("text1")]).unique()
    name = own_name(dataset.source)
    page = render_page(name, counts, rows, plots, choose_samples(rows, seed), common_words(texts), rule)
    with whole_folder(home) as folder:
        for plot in plots.values():
            save_plot(plot, folder)
        write_text(folder / PAGE_FILE, page)
        write_json(folder / COUNTS_FILE, counts)
    return Report(home, counts)


def check_out(out: Path, source: str) -> None:
    """Refuse a folder that holds anything but an earlier report."""
    check_place(out, "a report", "report")
    home = Path(source).resolve()
    if out.resolve() in (home, *home.parents):
        raise ConfigError(f"{out}: the report would replace the dataset {source}; choose another folder")
    check_only(out, _FILES if _is_report(out / COUNTS_FILE) else (), "a report of `pairs report`")


def _is_report(counts: Path) -> bool:
    return (read_own(counts) or {}).keys() >= _KEYS


def _counts(rows: ReportRows, dataset: PairDataset, rule: TokenRule, seed: int) -> dict[str, Any]:
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
        "dropped": drop_reasons(dataset.source) | skipped_labels(dataset.labels),
    }


def _plots(rows: ReportRows, counts: dict[str, Any]) -> dict[str, Plot]:
    """The figures by name; sources are drawn from two on, scores where labels are graded."""
    plots = [plot_lengths(rows), plot_overlap(rows)]
    if len(counts["sources"]) > 1:
        plots.append(plot_sources(rows, counts["sources"]))
    if rows.cut is not None:
        plots.append(plot_scores(rows, rows.cut))
    return {plot.name: plot for plot in plots}
