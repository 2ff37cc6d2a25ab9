"""From a pair dataset to the report's page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl

from pairkit.app.errors import ConfigError
from pairkit.app.progress import Display, Listener
from pairkit.app.result_table import Printed, ResultTable, escape, html_table, style
from pairkit.app.version import __version__
from pairkit.dataset.records import PairDataset
from pairkit.reports.counts import (
    NOT_RECORDED,
    ORDERS,
    ReportRows,
    ReportSample,
    choose_samples,
    collect_rows,
    count,
)
from pairkit.similarity.measures import COMMON_SHARE, common_words, distinct_words, split_at_words
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


MARKER = '<meta name="generator" content="pairs report">'
_MOST_CHARS = 6000  # of each text
_LONGEST_TITLE = 200


def _group(sample: ReportSample, rows: ReportRows, common: frozenset[str]) -> str:
    kind = "" if sample.kind == NOT_RECORDED else f": {plain_reason(sample.kind)}"
    cards = "".join(_card(pair, rows, common) for pair in sample.pairs)
    side = _class(sample.side)
    return f'<h3 class="{side}">{escape(rows.names[sample.side].capitalize() + kind)}</h3>{cards}'


def _card(pair: Mapping[str, Any], rows: ReportRows, common: frozenset[str]) -> str:
    side = int(pair["side"])
    label = rows.names[side] if rows.cut is None else f"score {pair['label']:.3g}"
    facts = [str(pair["split"]), str(pair.get("source") or ""), _overlaps(pair)]
    spans = "".join(f"<span>{escape(fact)}</span>" for fact in facts if fact)
    marked = (distinct_words(pair["text1"]) & distinct_words(pair["text2"])) - common
    texts = "".join(_text(pair, place, marked) for place in (1, 2))
    header = f"<header><b>{escape(label)}</b>{spans}{_evidence(pair)}</header>"
    return f'<article class="pair {_class(side)}">{header}<div class="sides">{texts}</div></article>'


def _class(side: int) -> str:
    return ("low", "high")[side]


def _overlaps(pair: Mapping[str, Any]) -> str:
    values = [pair[f"overlap{order}"] for order in ORDERS]
    told = " / ".join("–" if value is None else f"{value:.0f}" for value in values)
    return f"1-, 2-, 3-gram overlap {told} %"


def _evidence(pair: Mapping[str, Any]) -> str:
    evidence = pair.get("evidence")
    if not isinstance(evidence, dict) or not evidence.get("url"):
        return ""
    who, when = evidence.get("who") or "an unknown account", str(evidence.get("when") or "")[:10]
    return f"<span>{link(evidence['url'], f'evidence: {who} {when}'.strip())}</span>"


def _text(pair: Mapping[str, Any], place: int, marked: set[str]) -> str:
    text = str(pair[f"text{place}"])
    number, day = pair.get(f"number{place}"), str(pair.get(f"created_at{place}") or "")[:10]
    name = f"#{number}" if number is not None else f"text{place}"
    head = [link(pair.get(f"url{place}"), name), escape(f"{pair[f'tokens{place}']:,} tokens"), escape(day)]
    title, body = _parts(text)
    left_out = len(body) - _MOST_CHARS
    more = f'<p class="more">… {left_out:,} more characters</p>' if left_out > 0 else ""
    # Long texts scroll, and what scrolls has to be reachable from the keyboard.
    return (
        f"<section><h4>{' · '.join(part for part in head if part)}</h4>"
        f'<div class="text" dir="auto" tabindex="0">'
        + (f"<strong>{_marked(title, marked)}</strong>\n" if title else "")
        + f"{_marked(body[:_MOST_CHARS], marked)}{more}</div></section>"
    )


def _parts(text: str) -> tuple[str, str]:
    """Title and body of an issue; a text of one line is all body."""
    title, newline, body = text.partition("\n")
    return (title, body) if newline and len(title) <= _LONGEST_TITLE else ("", text)


def _marked(text: str, marked: set[str]) -> str:
    pieces = split_at_words(text, marked)
    return "".join(
        f"<mark>{escape(piece)}</mark>" if is_marked else escape(piece) for piece, is_marked in pieces
    )


Cell = str | int | float | None


def link(address: object, text: str) -> str:
    """A link if the address is a plain https one, else the text alone."""
    if not (isinstance(address, str) and _is_https(address)):
        return escape(text)
    return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">{escape(text)}</a>'


def _is_https(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return address.startswith("https://") and bool(parts.hostname) and parts.username is None


def table(header: Sequence[str], rows: Iterable[Sequence[Cell]], *, note: str = "") -> str:
    """A table that scrolls if the screen is narrow; its first column is words, the others numbers."""
    return f'<div class="scroll">{html_table(header, rows, note=note)}</div>'


def plain_reason(key: str) -> str:
    """`text_too_short` as people read it."""
    return key.replace("_", " ")


Counts = Mapping[str, Any]  # see `pairkit.reports.counts.count`

_MOST_SOURCES = 60
_LINES = (
    ("pairs", "total"),
    ("different texts", "texts"),
    ("median tokens", "median_tokens"),
)
_GRAMS = [f"{order}-gram" for order in ORDERS]
_OVERLAP = (
    "An n-gram is n neighbouring words. The overlap of a pair is the number of n-grams that both texts have, "
    "as a percentage of those that either has (Jaccard). Pairs without n-grams are left out."
)


def split_table(counts: Counts, rows: ReportRows) -> str:
    """Pairs, texts and lengths by split."""
    splits = counts["splits"]
    lines = [(rows.names[1], rows.keys[1]), (rows.names[0], rows.keys[0]), *_LINES]
    body: list[tuple[Cell, ...]] = [(name, *(s[key] for s in splits.values())) for name, key in lines]
    body.append(("texts over 512 tokens", *(f"{s['long_share']:.1%}" for s in splits.values())))
    note = f"Tokens are estimated without a tokenizer.{_untold(counts, rows)}"
    gaps = [of["gap_auc"] for of in splits.values()]
    if gaps[-1] is not None:
        body.append(("AUC of the gap in time", *("–" if gap is None else f"{gap:.2f}" for gap in gaps)))
        note += (
            " AUC of the gap: how often a positive's issues were opened nearer to each other than a "
            "negative's; at 0.5 dates don't give the label away."
        )
    return table(["", *splits], body, note=note)


def _untold(counts: Counts, rows: ReportRows) -> str:
    """One sentence in place of empty sections."""
    told = {
        "where its rows come from": rows.named_by,
        "what kinds of pairs there are": kind_tables(counts, rows),
        "what was left out": counts["dropped"],
    }
    missing = [what for what, found in told.items() if not found]
    return f" This dataset does not say {', nor '.join(missing)}." if missing else ""


def source_table(counts: Counts, rows: ReportRows) -> str:
    """Pairs by source."""
    if rows.named_by is None:
        return ""
    sources = list(counts["sources"].items())
    body = [(name, c[rows.keys[1]], c[rows.keys[0]], sum(c.values())) for name, c in sources[:_MOST_SOURCES]]
    rest = f"The largest {_MOST_SOURCES} of {len(sources):,}." if len(sources) > _MOST_SOURCES else ""
    return table([rows.named_by, rows.names[1], rows.names[0], "pairs"], body, note=rest)


def overlap_table(counts: Counts, rows: ReportRows) -> str:
    """Mean overlaps of either side."""
    found = counts["overlap"]
    lines = [(rows.names[side], *_percents(found[rows.keys[side]])) for side in (1, 0)]
    return table(["mean overlap", *_GRAMS], lines, note=_OVERLAP)


def kind_tables(counts: Counts, rows: ReportRows) -> str:
    """How negatives were drawn and what made positives, each kind with its mean overlaps."""
    tables = [
        table(
            [f"{rows.names[side]}: kind", "pairs", *_GRAMS],
            [(plain_reason(kind), of["pairs"], *_percents(of["overlap"])) for kind, of in kinds.items()],
        )
        for side in (0, 1)
        if (kinds := counts["kinds"][rows.keys[side]]) and set(kinds) != {NOT_RECORDED}
    ]
    note = '<p class="note">Beside the number of pairs: the mean overlap of each kind.</p>'
    return f'<div class="tables wide">{"".join(tables)}</div>{note}' if tables else ""


def _percents(values: Sequence[float | None]) -> list[str | None]:
    return [None if value is None else f"{value:.1f} %" for value in values]


def drop_tables(counts: Counts) -> str:
    """A table for each stage that left something out, with its reasons."""
    tables = [
        table([title, "number"], [(plain_reason(reason), n) for reason, n in reasons.items()])
        for title, reasons in counts["dropped"].items()
    ]
    return f'<div class="tables">{"".join(tables)}</div>' if tables else ""


# Were a hole in the escaping found after all, a browser would still neither run nor fetch anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_SAMPLES = (
    "Chosen by the seed alone. Marked are the words of three letters and more that both texts have, but for "
    f"those that more than {100 * COMMON_SHARE:.0f} % of all texts have."
)


def render_page(
    name: str,
    counts: Mapping[str, Any],
    rows: ReportRows,
    samples: Sequence[ReportSample],
    common: frozenset[str],
) -> str:
    """The whole page."""
    cut = "" if rows.cut is None else f"<p>Labels are scores. They are cut at {rows.cut:g} on this page.</p>"
    cards = "".join(_group(sample, rows, common) for sample in samples)
    parts = [
        ("counts", "Pairs and splits", cut + split_table(counts, rows)),
        ("sources", "Sources", source_table(counts, rows)),
        ("overlap", "n-gram overlap", overlap_table(counts, rows)),
        ("kinds", "Kinds of pairs", kind_tables(counts, rows)),
        ("dropped", "What was left out, and why", drop_tables(counts)),
        ("samples", "Sample pairs", f"<p>{_SAMPLES}</p>{cards}"),
    ]
    filled = [part for part in parts if part[2]]
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in filled)
    body = "".join(f'<section id="{key}"><h2>{title}</h2>{inner}</section>' for key, title, inner in filled)
    foot = f"Made by pairs report (aoe-toolkit {__version__}), seed {counts['seed']}."
    return _document(
        name,
        f'<header class="top"><p>Dataset report</p><h1>{escape(name)}</h1>'
        f"<nav>{links}</nav></header><main>{body}</main>"
        f"<footer>{escape(foot)} The texts belong to the people who wrote them.</footer>",
    )


def _document(name: str, body: str) -> str:
    look = style("pairkit.reports", "page.css")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'{MARKER}<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{escape(name)}: dataset report</title><style>{look}</style></head>"
        f"<body>{body}</body></html>\n"
    )
