"""The report as one HTML page that needs nothing else: no script, no request, style and figures inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pairkit._report import sections
from pairkit._report.cards import sample_cards
from pairkit._report.lengths import TokenRule
from pairkit._report.overlap import SAYS
from pairkit._report.plots.canvas import Plot
from pairkit._report.rows import Rows
from pairkit._report.samples import Sample
from pairkit.look import style
from pairkit.notebook import escape
from pairkit.shared_words import COMMON_SHARE
from pairkit.version import __version__

# Were a hole in the escaping found after all, a browser would still neither run nor fetch anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_SAMPLES = (
    "Chosen by the seed alone. Marked are the words of three letters and more that both texts have, but for "
    f"those that more than {100 * COMMON_SHARE:.0f} % of all texts have."
)


def render_page(
    name: str,
    counts: Mapping[str, Any],
    rows: Rows,
    plots: Mapping[str, Plot],
    samples: Sequence[Sample],
    common: frozenset[str],
    rule: TokenRule,
) -> str:
    """The whole page.

    Args:
        name: What the dataset is called.
        counts: The report's counts, see `report.make_report`.
        rows: The dataset.
        plots: The figures by name.
        samples: The pairs to show.
        common: Words that are not marked.
        rule: How tokens were counted.
    """
    parts = [
        ("counts", "Pairs and splits", sections.split_tables(counts, rows)),
        ("scores", "Scores", sections.figure(plots["scores"]) if "scores" in plots else ""),
        ("sources", "Sources", sections.source_table(counts, rows, plots)),
        ("lengths", "Token lengths", sections.figure(plots["lengths"], f"Tokens are {rule.says}.")),
        (
            "overlap",
            "n-gram overlap",
            sections.figure(plots["overlap"], SAYS) + sections.overlap_table(counts, rows),
        ),
        ("kinds", "Kinds of pairs", sections.kind_tables(counts, rows)),
        ("dropped", "What was left out, and why", sections.drop_tables(counts)),
        ("samples", "Sample pairs", f"<p>{_SAMPLES}</p>{sample_cards(samples, rows, common)}"),
    ]
    filled = [part for part in parts if part[2]]
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in filled)
    body = "".join(f'<section id="{key}"><h2>{title}</h2>{inner}</section>' for key, title, inner in filled)
    foot = f"Made by pairs report (aoe-toolkit {__version__}), seed {counts['seed']}."
    return _document(
        name,
        f'<header class="top"><p>Dataset report</p><h1>{escape(name)}</h1>{sections.tiles(counts, rows)}'
        f"<nav>{links}</nav></header><main>{body}</main>"
        f"<footer>{escape(foot)} The texts belong to the people who wrote them.</footer>",
    )


def _document(name: str, body: str) -> str:
    look = style("pairkit._report", "page.css")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{escape(name)}: dataset report</title><style>{look}</style></head>"
        f"<body>{body}</body></html>\n"
    )
