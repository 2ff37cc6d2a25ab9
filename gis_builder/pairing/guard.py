"""Keep likely duplicates that nobody marked out of the negatives."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from gis_builder.store.records import IssueRef

_WORD = re.compile(r"\w+")

Link = frozenset[IssueRef]  # two issues of which one mentions the other


class Guard:
    """Says why two issues of one repository may not be a negative, or None if they may.

    `same_cluster` and `near_identical`: one group of the split stage, by verdict or by text. `linked`: one
    mentions the other. `same_title`: equal but for case and punctuation. `too_similar`: the BM25 score of one
    for the other is at least `limit` of its score for itself.
    """

    def __init__(
        self,
        *,
        cluster: Mapping[IssueRef, str],
        group: Mapping[IssueRef, IssueRef],
        titles: Mapping[IssueRef, str],
        linked: Collection[Link],
        share: Callable[[IssueRef, IssueRef], float],
        limit: float,
    ) -> None:
        self._cluster, self._group, self._titles = cluster, group, titles
        self._linked, self._share, self._limit = linked, share, limit

    def why_not(self, one: IssueRef, other: IssueRef) -> str | None:
        """The reason code, cheapest check first."""
        if one == other or (one in self._cluster and self._cluster[one] == self._cluster.get(other)):
            return "same_cluster"
        if self._group.get(one, one) == self._group.get(other, other):
            return "near_identical"
        if frozenset((one, other)) in self._linked:
            return "linked"
        if self._titles[one] and self._titles[one] == self._titles[other]:
            return "same_title"
        return "too_similar" if self._share(one, other) >= self._limit else None


def plain_title(text: str) -> str:
    """The words of a rendered text's first line in lower case."""
    return " ".join(_WORD.findall(text.partition("\n")[0].lower()))
