"""Tell cheaply which texts and sentences are worth reading: a "no" is certain, a "yes" is not."""

from __future__ import annotations

import re

from gis_builder.detection.references import could_refer
from gis_builder.detection.tokens import REFERENCE_MARK

# Beginnings of words; those of a claim may do without a reference beside them.
_CLAIM_STEMS = (
    *("dup", "dubl", "dpu", "dulp", "deup", " favo", "favuo", "in lieu"),
    *("doublon", "doppelt", "dobbel", "дубл", "重复", "重複", "중복"),
)
_REFERRING_STEMS = (
    "same", "already", "supers", "superc", "subsum", "absorb", "encompass", "obsoleted", "replac", "track",
    "cover", "captur", "merg", "fold", "rolled", "rolling", "consolidat", "mov", "punt", "continu",
    "equivalent", "instance", "manifestation", "case of", "variant of", "repost", "re-post", "handling",
    "subset", "redundant", "duplication", "been reported", "been filed", "reported ", "filed", "known issue",
    "known bug", "known problem", "existing ", "outstanding ", "open issue", "open bug", "open ticket",
    "open about", "open for", "known limitation", "part of", "section of", "portion of", "aspect of",
    "piece of", "sub-", "subissue", "subbug", "fall under", "falls under", "falling under", "direct ",
    "discuss ", "closing for", "closed for", "double", "twice", "follow #", "follow http", "now under",
    "now at", "meant", "correction", "make that", "should be", "should read", "同一", "同じ", "相同", "같은",
    " is #", "'s #", "’s #", " is http", "'s http", "just #", "just http", "is issue", "is bug", "really #",
    "be #", "is basically", "is really", "is just", "is essentially", "similar", "identical", "exactly like",
    "exactly as", "a better ", "differ", "let's", "lets ", "instead", "一样", "已有", "已经有", "已存在",
    "既に", "이미", "because #", "because http", "since #", "since http", "as #", "as http", "that one",
    "the other",
)  # fmt: skip
# These bear on a claim that was made before.
_ANSWERING_STEMS = ("open", "clos", "fix", "works", "repro", "different", "unrelated", "resolved", "^")
_BACK_STEMS = ("that", "those", "the other", "above", "^")  # stand for a reference
_POINTING = re.compile(rf"\b(?:is|it's|just|really)\b[^.]{{0,30}}{REFERENCE_MARK}|^{REFERENCE_MARK}")


def might_matter(text: str) -> bool:
    """Whether a comment could claim anything; costs microseconds."""
    lower = text.lower()
    return has_any(lower, _CLAIM_STEMS) or (could_refer(lower) and has_any(lower, _REFERRING_STEMS))


def might_guess(body: str) -> bool:
    """Whether the body of an issue could call it a duplicate."""
    return has_any(body.lower(), _CLAIM_STEMS)


def is_worth_reading(sentence: str) -> bool:
    """Whether a sentence, in lower case and with its references hidden, could bear on duplicates."""
    if has_any(sentence, _CLAIM_STEMS) or has_any(sentence, _ANSWERING_STEMS):
        return True
    if REFERENCE_MARK in sentence:
        return has_any(sentence, _REFERRING_STEMS) or _POINTING.search(sentence) is not None
    return has_any(sentence, _BACK_STEMS) and has_any(sentence, _REFERRING_STEMS)


def has_any(text: str, stems: tuple[str, ...]) -> bool:
    """Whether one of the stems stands in the text."""
    for stem in stems:  # noqa: SIM110 - a generator would take twice the time
        if stem in text:
            return True
    return False
