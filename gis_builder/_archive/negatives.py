"""The last task of a partition: its negatives, drawn within one repository and split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gis_builder._archive.judged import Drawn, Judged, JudgedRepo, Placed, pack, unpack
from gis_builder._archive.objects import Location
from gis_builder._pairs.negatives import Negatives, make_negatives
from gis_builder._records import IssueRef
from gis_builder._settings import ArchiveSettings


def draw_negatives(judged: Location, placed: Location, settings: str) -> bytes:
    """The negatives of a partition.

    Each repository draws its share, which the driver reckons from all positives. What it can't give is
    counted, and no other gives it: else a few large ones would have the negatives of many small ones.

    Args:
        judged: The partition, see `judge`.
        placed: What it is told of the splits, see `settle`.
        settings: `ArchiveSettings` as JSON.
    """
    drawing = _Drawing(unpack(placed, Placed), ArchiveSettings.model_validate_json(settings))
    for repo in unpack(judged, Judged).repos:
        drawing.take(repo)
    return pack(drawing.result())


class _Drawing:
    """Draws in one repository after the other."""

    def __init__(self, placed: Placed, settings: ArchiveSettings) -> None:
        self._placed, self._settings = placed, settings
        self._own = set(placed.repos)
        self._group = dict(placed.group)
        self._split_of = dict(placed.split_of)
        self._made: list[Negatives] = []

    def take(self, repo: JudgedRepo) -> None:
        """Draw in a repository, unless another has taken over its name."""
        if repo.repo_id not in self._own:
            return
        positives = {
            split: [pair for pair in pairs if pair.first.repo == repo.name]
            for split, pairs in self._placed.positives.items()
        }
        if not any(positives.values()):
            return
        texts = {text.ref: text for text in repo.texts}
        made = make_negatives(
            positives,
            {split: wanted.get(repo.name, 0) for split, wanted in self._placed.wanted.items()},
            {ref: self._split_of[ref] for ref in texts if ref in self._split_of},
            {ref: self._group[ref] for ref in texts},
            repo.clusters,
            texts,
            _linked(repo.links),
            self._settings.pair,
            self._settings.seed,
        )
        self._made.append(made)

    def result(self) -> Drawn:
        """All of it."""
        missing: Counter[str] = Counter()
        for made in self._made:
            missing.update(made.missing)
        return Drawn(
            {
                split: [pair for made in self._made for pair in made.pairs[split]]
                for split in self._placed.positives
            },
            [drop for made in self._made for drop in made.dropped],
            dict(missing),
            sum(made.with_single for made in self._made),
        )


def _linked(links: Iterable[tuple[IssueRef, IssueRef]]) -> set[frozenset[IssueRef]]:
    return {frozenset(link) for link in links}
