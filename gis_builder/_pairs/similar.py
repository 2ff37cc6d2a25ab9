"""Issues whose texts are nearly the same."""

from __future__ import annotations

from collections.abc import Mapping

from gis_builder._records import IssueRef, IssueText
from pairkit.similar import near_identical


def tie_similar(texts: Mapping[IssueRef, IssueText], threshold: float) -> list[list[IssueRef]]:
    """Groups of two or more issues tied by near-identical texts, over all repositories; each ascending.

    Args:
        texts: Every usable text, those of issues without a duplicate included.
        threshold: Jaccard similarity of word triples, see `pairkit.similar`.
    """
    refs = sorted(texts)
    groups = near_identical([texts[ref].text for ref in refs], threshold)
    return [[refs[place] for place in members] for members in groups]
