"""From a pair dataset to the report's page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pairkit.app.errors import ConfigError
from pairkit.app.progress import Display, Listener
from pairkit.app.result_table import Printed, ResultTable
from pairkit.dataset.records import PairDataset
from pairkit.reports.counts import choose_samples, collect_rows, count
from pairkit.reports.page import MARKER, render_page
from pairkit.similarity.measures import common_words
from pairkit.system.files import write_text
from pairkit.system.folders import beside, own_name

# Counts that are not whole numbers: what the table calls them, and how it writes them.
_FORMS = {"long_share": ("> 512 tokens", ".0%"), "gap_auc": ("AUC of the gap in time", ".4f")}


@dataclass(frozen=True, slots=True, repr=False)
class Report(Printed):
    """A report that was written.

    Attributes:
        page: The page to open.
        counts: What it shows, as plain data.
    """

    page: Path
    counts: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Its page and the counts."""
        return {"page": str(self.page), **self.counts}

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


def make_report(
    dataset: PairDataset, out: Path | None = None, *, seed: int = 42, progress: bool | Listener = True
) -> Report:
    """Count and write the page; equal input gives equal bytes."""
    page = beside(dataset.source, "report.html") if out is None else out
    _check_out(page)
    with Display(progress) as tell:
        rows = collect_rows(dataset, tell)
    counts = count(rows, dataset, seed)
    texts = pl.concat([rows.frame["text1"], rows.frame["text2"].alias("text1")]).unique()
    name = own_name(dataset.source)
    write_text(page, render_page(name, counts, rows, choose_samples(rows, seed), common_words(texts)))
    return Report(page, counts)


def _check_out(page: Path) -> None:
    """Refuse to replace anything but an earlier report."""
    if page.is_dir() or (page.exists() and MARKER not in page.read_text(encoding="utf-8", errors="replace")):
        raise ConfigError(
            f"{page}: is not a page of `pairs report`; choose another file, such as report.html"
        )
