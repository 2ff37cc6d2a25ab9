"""The sections of the page; one that the dataset has nothing for is empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pairkit._report import paper
from pairkit._report.counts import EVERYTHING
from pairkit._report.markup import Cell, plain_reason, shown, table
from pairkit._report.overlap import ORDERS
from pairkit._report.plots.canvas import Plot, inline_svgs
from pairkit._report.rows import NOT_RECORDED, Rows
from pairkit.notebook import escape

Counts = Mapping[str, Any]  # what report.json holds

_MOST_SOURCES = 60
_FEW_SOURCES = 15  # more are folded away beside their figure
_REM_AN_INCH = 7.5  # how large a figure may get on a page
_BOTH_LINES = (("pairs", "total"), ("texts over 512 tokens", "long_share"))
_OUR_LINES = (("different texts", "texts"), ("median tokens", "median_tokens"))
_GRAMS = [f"{order}-gram" for order in ORDERS]


def tiles(counts: Counts, rows: Rows) -> str:
    """The figures that one looks for first."""
    everything = counts["splits"][EVERYTHING]
    shown_first: list[tuple[str, Cell]] = [
        ("pairs", everything["total"]),
        (rows.names[1], everything[rows.keys[1]]),
        (rows.names[0], everything[rows.keys[0]]),
        ("different texts", everything["texts"]),
        ("texts over 512 tokens", everything["long_share"]),
    ]
    if rows.named_by:
        number = len(counts["sources"])
        shown_first.append((rows.named_by if number == 1 else _plural(rows.named_by), number))
    inner = "".join(f"<div><dt>{escape(name)}</dt><dd>{shown(n)}</dd></div>" for name, n in shown_first)
    return f'<dl class="tiles">{inner}</dl>'


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def split_tables(counts: Counts, rows: Rows) -> str:
    """The papers' Table 7 for this dataset, beside the papers' own."""
    low, high = rows.keys
    lines = [(rows.names[1], high), (rows.names[0], low), *_BOTH_LINES, *_OUR_LINES]
    gaps = [of["gap_auc"] for of in counts["splits"].values()]
    gap_line = [("AUC of the gap in time", *("–" if gap is None else f"{gap:.2f}" for gap in gaps))]
    knows_gaps = gaps[-1] is not None
    here = _by_split("this dataset", lines, counts["splits"], gap_line if knows_gaps else [])
    lines = [("positive", "positive"), ("negative", "negative"), *_BOTH_LINES]
    there = _by_split("the papers' GIS", lines, paper.SPLITS)
    note = (
        "A text over 512 tokens counts once for every pair that it stands in. The papers' GIS is there for "
        f"comparison (ACL 2024, Table 7).{_untold(counts, rows)}"
    )
    if knows_gaps:
        note += (
            " AUC of the gap: how often a positive's issues were opened nearer to each other than a "
            "negative's; at 0.5 dates don't give the label away."
        )
    return f'<div class="tables wide">{here}{there}</div><p class="note">{escape(note)}</p>'


def _by_split(
    title: str,
    lines: Sequence[tuple[str, str]],
    splits: Mapping[str, Mapping[str, Any]],
    more: Sequence[tuple[Cell, ...]] = (),
) -> str:
    body = [(name, *(s[key] for s in splits.values())) for name, key in lines]
    return table([title, *splits], [*body, *more])


def _untold(counts: Counts, rows: Rows) -> str:
    """One sentence in place of empty sections."""
    told = {
        "where its rows come from": rows.named_by,
        "what kinds of pairs there are": kind_tables(counts, rows),
        "what was left out": counts["dropped"],
    }
    missing = [what for what, found in told.items() if not found]
    return f" This dataset does not say {', nor '.join(missing)}." if missing else ""


def figure(plot: Plot, note: str = "") -> str:
    """A figure, its panels side by side where there is room, with its caption."""
    pictures = "".join(
        f'<div class="panel" role="img" aria-label="{escape(plot.title)}" '
        f'style="max-width:{_REM_AN_INCH * panel.width:.0f}rem">{svg}</div>'
        for panel, svg in zip(plot.panels, inline_svgs(plot), strict=True)
    )
    words = " ".join(part for part in (plot.caption, note) if part)
    caption = f"<figcaption>{escape(words)}</figcaption>" if words else ""
    return f'<figure><div class="panels">{pictures}</div>{caption}</figure>'


def source_table(counts: Counts, rows: Rows, plots: Mapping[str, Plot]) -> str:
    """Pairs by source, as bars too where there are several."""
    if rows.named_by is None:
        return ""
    sources = list(counts["sources"].items())
    body = [(name, c[rows.keys[1]], c[rows.keys[0]], sum(c.values())) for name, c in sources[:_MOST_SOURCES]]
    rest = f"The largest {_MOST_SOURCES} of {len(sources):,}." if len(sources) > _MOST_SOURCES else ""
    listed = table([rows.named_by, rows.names[1], rows.names[0], "pairs"], body, note=rest)
    if "sources" not in plots:
        return listed
    if len(sources) > _FEW_SOURCES:
        listed = f"<details><summary>All of them as a table</summary>{listed}</details>"
    return f'<div class="tables wide">{figure(plots["sources"])}{listed}</div>'


def overlap_table(counts: Counts, rows: Rows) -> str:
    """Mean overlaps of either side, here and in the papers."""
    found = counts["overlap"]
    here = [(f"{rows.names[side]}, here", *_percents(found[rows.keys[side]])) for side in (1, 0)]
    papers = [(f"{key}, the papers' GIS", *_percents(paper.OVERLAP[key])) for key in ("positive", "negative")]
    note = (
        "Mean overlap. The papers do not say how they measured it, so their figures show the order of things "
        "and not what ours should be."
    )
    return table(["", *_GRAMS], [*here, *papers], note=note)


def kind_tables(counts: Counts, rows: Rows) -> str:
    """How negatives were drawn and what made positives, each kind with its mean overlaps."""
    tables = [
        table([f"{rows.names[side]}: kind", "pairs", *_GRAMS], _kinds(kinds))
        for side in (0, 1)
        if (kinds := counts["kinds"][rows.keys[side]]) and set(kinds) != {NOT_RECORDED}
    ]
    note = '<p class="note">Beside the number of pairs: the mean overlap of each kind.</p>'
    return f'<div class="tables wide">{"".join(tables)}</div>{note}' if tables else ""


def _kinds(kinds: Mapping[str, Mapping[str, Any]]) -> list[tuple[Cell, ...]]:
    return [(plain_reason(kind), of["pairs"], *_percents(of["overlap"])) for kind, of in kinds.items()]


def _percents(values: Sequence[float | None]) -> list[str | None]:
    return [None if value is None else f"{value:.1f} %" for value in values]


def drop_tables(counts: Counts) -> str:
    """A table for each stage that left something out, with its reasons."""
    tables = [
        table([title, "number"], [(plain_reason(reason), n) for reason, n in reasons.items()])
        for title, reasons in counts["dropped"].items()
    ]
    return f'<div class="tables">{"".join(tables)}</div>' if tables else ""
