"""The page of a report: its sections and cards of sample pairs; a section without content is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from pairkit.app.result_table import escape, style
from pairkit.app.version import __version__
from pairkit.reports.counts import EVERYTHING, ORDERS, SAYS, TokenRule
from pairkit.reports.plots import Plot, inline_svgs
from pairkit.reports.rows import NOT_RECORDED, ReportRows, ReportSample
from pairkit.similarity.measures import COMMON_SHARE, distinct_words, split_at_words

_MOST_CHARS = 6000  # of each text
_LONGEST_TITLE = 200


def sample_cards(samples: Iterable[ReportSample], rows: ReportRows, common: frozenset[str]) -> str:
    """A group of cards for each side and kind."""
    return "".join(_group(sample, rows, common) for sample in samples)


def _group(sample: ReportSample, rows: ReportRows, common: frozenset[str]) -> str:
    kind = "" if sample.kind == NOT_RECORDED else f": {plain_reason(sample.kind)}"
    cards = "".join(_card(pair, rows, common) for pair in sample.pairs)
    side = _class(sample.side)
    return f'<h3 class="{side}">{escape(rows.names[sample.side].capitalize() + kind)}</h3>{cards}'


def _card(pair: Mapping[str, Any], rows: ReportRows, common: frozenset[str]) -> str:
    side = int(pair["side"])
    label = rows.names[side] if rows.cut is None else f"score {pair['label']:.3g}"
    facts = [str(pair["split"]), _source(pair), _overlaps(pair)]
    spans = "".join(f"<span>{escape(fact)}</span>" for fact in facts if fact)
    marked = (distinct_words(pair["text1"]) & distinct_words(pair["text2"])) - common
    texts = "".join(_text(pair, place, marked) for place in (1, 2))
    header = f"<header><b>{escape(label)}</b>{spans}{_evidence(pair)}</header>"
    return f'<article class="pair {_class(side)}">{header}<div class="sides">{texts}</div></article>'


def _class(side: int) -> str:
    return ("low", "high")[side]


def _source(pair: Mapping[str, Any]) -> str:
    return "" if pair.get("source") is None else str(pair["source"])


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


# ACL 2024, Table 7; the shares of texts over 512 tokens from the section that introduces the dataset.
PAPER_SPLITS: Mapping[str, Mapping[str, float]] = {
    "train": {"positive": 9457, "negative": 9108, "total": 18565, "long_share": 0.6103},
    "validation": {"positive": 774, "negative": 773, "total": 1547, "long_share": 0.6085},
    "test": {"positive": 807, "negative": 741, "total": 1548, "long_share": 0.6050},
}

# ACL 2024, Appendix B: mean overlap of 1-, 2- and 3-grams. Both triples are printed as "non-duplicate"; by
# the sentence before them the higher one must be the duplicates'. How overlap was measured is not said.
PAPER_OVERLAP: Mapping[str, tuple[float, float, float]] = {"negative": (22, 12, 9), "positive": (26, 16, 13)}


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
    """A table; its first column is words, the others numbers. A missing number is a dash."""
    below = f'<p class="note">{escape(note)}</p>' if note else ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    return (
        f'<div><div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f"{below}</div>"
    )


def _row(cells: Sequence[Cell]) -> str:
    first, *rest = cells
    return f'<th scope="row">{shown(first)}</th>' + "".join(f"<td>{shown(cell)}</td>" for cell in rest)


def shown(cell: Cell) -> str:
    """A cell as HTML: `1,234`, `61.0 %` for a share of 0.61, `–` for nothing."""
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return escape(cell)
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:.1%}".replace("%", "&#8239;%")


def plain_reason(key: str) -> str:
    """`text_too_short` as people read it."""
    return key.replace("_", " ")


Counts = Mapping[str, Any]  # what report.json holds

_MOST_SOURCES = 60
_FEW_SOURCES = 15  # more are folded away beside their figure
_REM_AN_INCH = 7.5  # how large a figure may get on a page
_BOTH_LINES = (("pairs", "total"), ("texts over 512 tokens", "long_share"))
_OUR_LINES = (("different texts", "texts"), ("median tokens", "median_tokens"))
_GRAMS = [f"{order}-gram" for order in ORDERS]


def tiles(counts: Counts, rows: ReportRows) -> str:
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


def split_tables(counts: Counts, rows: ReportRows) -> str:
    """The papers' Table 7 for this dataset, beside the papers' own."""
    low, high = rows.keys
    lines = [(rows.names[1], high), (rows.names[0], low), *_BOTH_LINES, *_OUR_LINES]
    gaps = [of["gap_auc"] for of in counts["splits"].values()]
    gap_line = [("AUC of the gap in time", *("–" if gap is None else f"{gap:.2f}" for gap in gaps))]
    knows_gaps = gaps[-1] is not None
    here = _by_split("this dataset", lines, counts["splits"], gap_line if knows_gaps else [])
    lines = [("positive", "positive"), ("negative", "negative"), *_BOTH_LINES]
    there = _by_split("the papers' GIS", lines, PAPER_SPLITS)
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


def _untold(counts: Counts, rows: ReportRows) -> str:
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


def source_table(counts: Counts, rows: ReportRows, plots: Mapping[str, Plot]) -> str:
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


def overlap_table(counts: Counts, rows: ReportRows) -> str:
    """Mean overlaps of either side, here and in the papers."""
    found = counts["overlap"]
    here = [(f"{rows.names[side]}, here", *_percents(found[rows.keys[side]])) for side in (1, 0)]
    papers = [(f"{key}, the papers' GIS", *_percents(PAPER_OVERLAP[key])) for key in ("positive", "negative")]
    note = (
        "Mean overlap. The papers do not say how they measured it, so their figures show the order of things "
        "and not what ours should be."
    )
    return table(["", *_GRAMS], [*here, *papers], note=note)


def kind_tables(counts: Counts, rows: ReportRows) -> str:
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
    plots: Mapping[str, Plot],
    samples: Sequence[ReportSample],
    common: frozenset[str],
    rule: TokenRule,
) -> str:
    """The whole page."""
    parts = [
        ("counts", "Pairs and splits", split_tables(counts, rows)),
        ("scores", "Scores", figure(plots["scores"]) if "scores" in plots else ""),
        ("sources", "Sources", source_table(counts, rows, plots)),
        ("lengths", "Token lengths", figure(plots["lengths"], f"Tokens are {rule.says}.")),
        (
            "overlap",
            "n-gram overlap",
            figure(plots["overlap"], SAYS) + overlap_table(counts, rows),
        ),
        ("kinds", "Kinds of pairs", kind_tables(counts, rows)),
        ("dropped", "What was left out, and why", drop_tables(counts)),
        ("samples", "Sample pairs", f"<p>{_SAMPLES}</p>{sample_cards(samples, rows, common)}"),
    ]
    filled = [part for part in parts if part[2]]
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in filled)
    body = "".join(f'<section id="{key}"><h2>{title}</h2>{inner}</section>' for key, title, inner in filled)
    foot = f"Made by pairs report (aoe-toolkit {__version__}), seed {counts['seed']}."
    return _document(
        name,
        f'<header class="top"><p>Dataset report</p><h1>{escape(name)}</h1>{tiles(counts, rows)}'
        f"<nav>{links}</nav></header><main>{body}</main>"
        f"<footer>{escape(foot)} The texts belong to the people who wrote them.</footer>",
    )


def _document(name: str, body: str) -> str:
    look = style("pairkit.reports", "page.css")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{escape(name)}: dataset report</title><style>{look}</style></head>"
        f"<body>{body}</body></html>\n"
    )
