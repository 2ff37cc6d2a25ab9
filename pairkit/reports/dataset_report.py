"""The report on a pair dataset: counts, and the HTML page with tables and sample pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pairkit.base.cli.progress import Display, Listener
from pairkit.base.cli.result_table import (
    Printed,
    ResultTable,
    escape,
    generator,
    html_page,
    html_table,
)
from pairkit.base.errors import ConfigError
from pairkit.base.system.address import origin_of
from pairkit.base.system.files import write_text
from pairkit.base.system.folders import base_name, check_file, path_beside
from pairkit.dataset.records import PairDataset, all_texts
from pairkit.reports.counts import (
    NOT_RECORDED,
    ORDERS,
    ReportRows,
    SampledPairs,
    choose_samples,
    collect_rows,
    count,
)
from pairkit.similarity.terms import (
    COMMON_SHARE,
    common_words,
    distinct_words,
    split_at_words,
)

# Counts that are not whole numbers, with their headings and formats.
_FORMATS = {
    "long_share": ("> 512 tokens", ".0%"),
    "gap_auc": ("AUC of the gap in time", ".4f"),
}
_COMMAND = "pairs report"
_MARKER = generator(_COMMAND)
_MAX_CHARS = 6000  # of each text
_MAX_TITLE = 200
_MAX_SOURCES = 60

_COUNTS = (
    "Tokens are estimated without a tokenizer. AUC of the gap: the probability that a positive's issues were"
    " opened closer in time than a negative's. At 0.5, dates do not reveal the label."
)
_OVERLAP = (
    "An n-gram is n neighbouring words. The overlap of a pair is the number of n-grams in both texts, as a"
    " percentage of those in either (Jaccard). The table has means; pairs without n-grams are left out."
)
_SAMPLES = (
    "A random sample. Marked words are in both texts, have three or more letters and are in at most"
    f" {100 * COMMON_SHARE:.0f} % of all texts."
)


@dataclass(frozen=True, slots=True, repr=False)
class Report(Printed):
    """A written report.

    Attributes:
        page: The HTML file.
        counts: The counts on the page, as plain data.
    """

    page: Path
    counts: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The page and the counts."""
        return {"page": str(self.page), **self.counts}

    def next_steps(self) -> list[tuple[str, str]]:
        """Where the page is."""
        return [("open the page in a browser", str(self.page))]

    def table(self) -> ResultTable:
        """The counts by split."""
        return _split_table(self.counts, str(self.page))


def _split_table(
    counts: Mapping[str, Any], title: str = "", note: str = ""
) -> ResultTable:
    splits = counts["splits"]
    shown = ResultTable("pairs", *splits, title=title, caption=note)
    for key in next(iter(splits.values())):
        name, form = _FORMATS.get(key, (key.replace("_", " "), ","))
        values = [split[key] for split in splits.values()]
        shown.add_row(
            name, *(None if value is None else f"{value:{form}}" for value in values)
        )
    return shown


def make_report(
    dataset: PairDataset,
    out: Path | None,
    *,
    seed: int,
    fresh: bool,
    progress: bool | Listener,
) -> Report:
    """Count and write the page; equal input gives equal bytes."""
    page = out or path_beside(dataset.source, "report.html")
    is_page = page.is_file() and _MARKER in page.read_text("utf-8", errors="replace")
    if page.exists() and not is_page:
        raise ConfigError(
            f"{page}: is not a page of `pairs report`; choose another file, such as report.html"
        )
    with Display(progress) as show:
        rows = collect_rows(dataset, show)
    counts = count(rows, dataset, seed)
    html = _render(base_name(dataset.source), counts, rows)
    check_file(page, html.encode(errors="backslashreplace"), fresh=fresh)
    write_text(page, html)
    return Report(page, counts)


def _render(name: str, counts: Mapping[str, Any], rows: ReportRows) -> str:
    cut = ""
    if rows.cut is not None:
        cut = f"<p>Labels are scores, divided at {rows.cut:g} on this page.</p>"
    splits = _split_table(counts, note=_COUNTS)
    common = common_words(all_texts(rows.frame).unique())
    samples = ""
    for sample in choose_samples(rows, counts["seed"]):
        samples += _sample(sample, rows, common)
    sections = {
        "Pairs and splits": f'{cut}<div class="scroll">{splits._repr_html_()}</div>',
        "Sources": _source_table(counts, rows),
        "Kinds of pairs": _kind_table(counts, rows),
        "What was left out, and why": _drop_tables(counts),
        "Sample pairs": f"<p>{_SAMPLES}</p>{samples}",
    }
    foot = f", seed {counts['seed']}. The texts belong to their authors."
    return html_page(_COMMAND, "Dataset report", name, sections, foot)


def _html_table_of(
    header: Sequence[str], rows: Iterable[Sequence[object]], note: str = ""
) -> str:
    return f'<div class="scroll">{html_table(header, rows, note=note)}</div>'


def _source_table(counts: Mapping[str, Any], rows: ReportRows) -> str:
    if rows.named_by is None:
        return ""
    sources = counts["sources"]
    lines = []
    for name, pairs in islice(sources.items(), _MAX_SOURCES):
        high = pairs[rows.high.key]
        low = pairs[rows.low.key]
        lines.append((name, high, low, high + low))
    note = ""
    if len(sources) > _MAX_SOURCES:
        note = f"The largest {_MAX_SOURCES} of {len(sources):,}."
    header = [rows.named_by, rows.high.name, rows.low.name, "pairs"]
    return _html_table_of(header, lines, note)


def _kind_table(counts: Mapping[str, Any], rows: ReportRows) -> str:
    """The mean overlaps of each side and of its kinds."""
    lines = []

    def add_line(name: str, pairs: int, overlaps: Sequence[float | None]) -> None:
        shares = (
            None if overlap is None else f"{overlap:.1f} %" for overlap in overlaps
        )
        lines.append((name, pairs, *shares))

    for side in (rows.high, rows.low):
        kinds = counts["kinds"][side.key]
        total = sum(kind["pairs"] for kind in kinds.values())
        add_line(side.name, total, counts["overlap"][side.key])
        for name, kind in kinds.items():
            if name != NOT_RECORDED:
                add_line(f"{side.name}: {_words(name)}", kind["pairs"], kind["overlap"])
    header = ["kind", "pairs", *(f"{order}-gram" for order in ORDERS)]
    return _html_table_of(header, lines, _OVERLAP)


def _drop_tables(counts: Mapping[str, Any]) -> str:
    tables = ""
    for title, reasons in counts["dropped"].items():
        lines = [(_words(reason), number) for reason, number in reasons.items()]
        tables += _html_table_of([title, "number"], lines)
    return tables and f'<div class="tables">{tables}</div>'


def _words(key: str) -> str:
    return key.replace("_", " ")


def _sample(sample: SampledPairs, rows: ReportRows, common: frozenset[str]) -> str:
    side = sample.side
    heading = side.name.capitalize()
    if sample.kind != NOT_RECORDED:
        heading += f": {_words(sample.kind)}"
    css_class = "low" if side == rows.low else "high"
    html = f'<h3 class="{css_class}">{escape(heading)}</h3>'
    for pair in sample.pairs:
        label = side.name if rows.cut is None else f"score {pair['label']:.3g}"
        html += (
            f'<article class="pair {css_class}">{_card(pair, label, common)}</article>'
        )
    return html


def _card(pair: Mapping[str, Any], label: str, common: frozenset[str]) -> str:
    shares = (pair[f"overlap{order}"] for order in ORDERS)
    overlaps = " / ".join("–" if share is None else f"{share:.0f}" for share in shares)
    facts = (pair["split"], pair["source"], f"1-, 2-, 3-gram overlap {overlaps} %")
    spans = "".join(f"<span>{escape(fact)}</span>" for fact in facts if fact)
    header = f"<header><b>{escape(label)}</b>{spans}{_evidence(pair)}</header>"
    shared = distinct_words(pair["text1"]) & distinct_words(pair["text2"])
    texts = "".join(_marked_text(pair, number, shared - common) for number in (1, 2))
    return f'{header}<div class="sides">{texts}</div>'


def _evidence(pair: Mapping[str, Any]) -> str:
    evidence = pair.get("evidence")
    if not evidence or not evidence["url"]:
        return ""
    who = evidence["who"] or "an unknown account"
    when = (evidence["when"] or "")[:10]
    text = f"evidence: {who} {when}".strip()
    return f"<span>{link(evidence['url'], text)}</span>"


def _marked_text(pair: Mapping[str, Any], number: int, marked: set[str]) -> str:
    issue = pair.get(f"number{number}")
    name = f"text{number}" if issue is None else f"#{issue}"
    day = str(pair.get(f"created_at{number}") or "")[:10]
    facts = [
        link(pair.get(f"url{number}"), name),
        f"{pair[f'tokens{number}']:,} tokens",
    ]
    if day:
        facts.append(escape(day))

    text = pair[f"text{number}"]
    title, newline, body = text.partition("\n")
    if not newline or len(title) > _MAX_TITLE:
        title = ""
        body = text
    html = f"<strong>{_marked(title, marked)}</strong>\n" if title else ""
    html += _marked(body[:_MAX_CHARS], marked)
    left_out = len(body) - _MAX_CHARS
    if left_out > 0:
        html += f'<p class="more">… {left_out:,} more characters</p>'
    # Long texts scroll; tabindex makes them reachable from the keyboard.
    return (
        f"<section><h4>{' · '.join(facts)}</h4>"
        f'<div class="text" dir="auto" tabindex="0">{html}</div></section>'
    )


def _marked(text: str, marked: set[str]) -> str:
    return "".join(
        f"<mark>{escape(piece)}</mark>" if is_marked else escape(piece)
        for piece, is_marked in split_at_words(text, marked)
    )


def link(address: object, text: str) -> str:
    """A link if the address is a plain https URL, otherwise only the text."""
    url = str(address)
    origin = origin_of(url)
    if origin is None or origin.scheme != "https":
        return escape(text)
    return (
        f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">{escape(text)}</a>'
    )
