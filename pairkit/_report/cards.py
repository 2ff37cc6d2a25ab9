"""Sample pairs as HTML: both texts side by side, the words that they share marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pairkit._report.markup import link, plain_reason
from pairkit._report.overlap import ORDERS
from pairkit._report.rows import NOT_RECORDED, Rows
from pairkit._report.samples import Sample
from pairkit.notebook import escape
from pairkit.shared_words import distinct_words, split_at_words

_MOST_CHARS = 6000  # of each text
_LONGEST_TITLE = 200


def sample_cards(samples: Iterable[Sample], rows: Rows, common: frozenset[str]) -> str:
    """A group of cards for each side and kind."""
    return "".join(_group(sample, rows, common) for sample in samples)


def _group(sample: Sample, rows: Rows, common: frozenset[str]) -> str:
    kind = "" if sample.kind == NOT_RECORDED else f": {plain_reason(sample.kind)}"
    cards = "".join(_card(pair, rows, common) for pair in sample.pairs)
    side = _class(sample.side)
    return f'<h3 class="{side}">{escape(rows.names[sample.side].capitalize() + kind)}</h3>{cards}'


def _card(pair: Mapping[str, Any], rows: Rows, common: frozenset[str]) -> str:
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
    who, when = evidence.get("who") or "an account that is gone", str(evidence.get("when") or "")[:10]
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
