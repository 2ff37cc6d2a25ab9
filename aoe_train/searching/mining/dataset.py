"""Settings of mining, and rows of a dataset as anchors, positives and candidates, each text once."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import BeforeValidator, Field, model_validator

from pairkit.app.errors import DataError
from pairkit.app.settings import Settings, split_at_commas
from pairkit.dataset.in_memory import source_name
from pairkit.dataset.reader import read_pairs, read_rows
from pairkit.dataset.records import with_provenance
from pairkit.similarity.groups import Groups
from pairkit.similarity.near_duplicates import DEFAULT_THRESHOLD, near_identical_to
from pairkit.system.seeded import keyed_unit

if TYPE_CHECKING:
    from pairkit.dataset.in_memory import Source
    from pairkit.dataset.labels import LabelRules
    from pairkit.dataset.records import PairDataset

Places = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
REPEATED, NOT_POSITIVE = "repeated", "not_positive"

_WIDER = 10  # candidates looked at for each negative where some may be turned down


class MineSettings(Settings):
    """Settings of a run of mining.

    A rule on scores that is None is not applied. Scores are cosines where a model takes part, else BM25's.
    """

    by: Literal["bm25", "model", "both"]  # who ranks the candidates; both: in turns
    negatives: int = Field(default=5, ge=1)  # of a row, at most
    # candidates that are skipped, and the place of the last that is looked at
    rank_range: Annotated[tuple[int, int] | None, BeforeValidator(split_at_commas)] = None
    sampling: Literal["top", "random"] = "top"  # the nearest of those that are left, or any
    max_score: float | None = None  # no candidate above it
    min_score: float | None = None  # and none below it
    margin: float | None = None  # how far below the positive's score a candidate has to be
    relative_margin: float | None = Field(default=None, lt=1)  # the same, as a share of that score
    candidates: Literal["all", "positives"] | None = (
        None  # all texts, or those that stand second; None: as the rows are
    )
    transitive: bool = True  # whether positives of positives, and whole clusters, are no negatives either
    threshold: float = Field(default=DEFAULT_THRESHOLD, gt=0, le=1)  # from which texts are near-identical
    scores: bool = False  # write scores, too
    seed: int = 42

    @model_validator(mode="after")
    def _room(self) -> MineSettings:
        low, high = self.window
        if low < 0 or high <= low:
            raise ValueError(
                f"rank_range {low},{high}: expected how many candidates to skip and the last to look at, such"
                " as 10,50"
            )
        if self.negatives > (high - low) * (2 if self.by == "both" else 1):
            raise ValueError(
                f"{self.negatives} negatives of the {high - low} candidates in the range {low},{high}; widen"
                " it or ask for fewer"
            )
        return self

    @property
    def window(self) -> tuple[int, int]:
        """Places of the candidates that are looked at, from the first to before the last, from 0."""
        return self.rank_range or (0, _WIDER * self.negatives)

    @property
    def measures_positives(self) -> bool:
        """Whether the scores of positives matter."""
        return self.scores or self.margin is not None or self.relative_margin is not None


class KnownPositives:
    """Texts in units of equal and near-identical ones, and units in families of those that belong together.

    A family is what positives and clusters tie, also through others.
    """

    def __init__(
        self,
        texts: Sequence[str],
        positives: Iterable[tuple[int, int]],
        ties: Iterable[tuple[int, int]] = (),
        *,
        threshold: float,
        transitive: bool = True,
    ) -> None:
        """Group the texts."""
        self.unit = near_identical_to(texts, threshold).astype(np.int64)
        families: Groups[int] = Groups()
        partners: defaultdict[int, set[int]] = defaultdict(set)
        for one, other in positives:
            first, second = int(self.unit[one]), int(self.unit[other])
            families.join(first, second)
            partners[first].add(second)
            partners[second].add(first)
        for one, other in ties:
            families.join(int(self.unit[one]), int(self.unit[other]))
        self.family = np.fromiter((families.find(unit) for unit in self.unit.tolist()), np.int64, len(texts))
        self._unit_sizes = np.bincount(self.unit, minlength=len(texts))
        self._family_sizes = np.bincount(self.family, minlength=len(texts))
        self._partners, self._transitive = partners, transitive

    def excluded(self, text: int, others: Places) -> Marks:
        """Which of the others are no negatives of a text: it, those like it, and its positives."""
        return (
            self.belong_together(text, others) if self._transitive else self._among(self._ties(text), others)
        )

    def most_excluded(self, text: int) -> int:
        """How many texts there are, at most, that `excluded` would tell."""
        if self._transitive:
            return int(self._family_sizes[self.family[text]])
        return int(self._unit_sizes[self._ties(text)].sum())

    def seen_by_row(self, anchor: int, positive: int, others: Places) -> Marks:
        """What `excluded` would tell of the anchor if a row's two texts were all that is known."""
        return self._among([int(self.unit[anchor]), int(self.unit[positive])], others)

    def belong_together(self, text: int, others: Places) -> Marks:
        """Which of the others are of the text's family, so that as negatives they would be false."""
        return np.asarray(self.family[others] == self.family[text])

    def has_further(self, anchor: int, positive: int) -> bool:
        """Whether the family has other texts than those like the two."""
        own = {int(self.unit[anchor]), int(self.unit[positive])}
        return int(self._family_sizes[self.family[anchor]]) > int(self._unit_sizes[list(own)].sum())

    def _ties(self, text: int) -> list[int]:
        unit = int(self.unit[text])
        return [unit, *(self._partners.get(unit, set()) - {unit})]

    def _among(self, units: list[int], others: Places) -> Marks:
        return np.asarray(np.isin(self.unit[others], units))


@dataclass(frozen=True)
class MiningSplit:
    """A split, by the places of its texts."""

    anchors: Places
    positives: Places
    candidates: Places
    negatives: frozenset[tuple[int, int]]
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class MiningDataset:
    """All splits of a dataset."""

    texts: list[str]
    known: KnownPositives
    parts: Mapping[str, MiningSplit]

    def digest(self) -> str:
        """Tells other material from this."""
        found = hashlib.sha256()
        for text in self.texts:
            found.update(blake2b(text.encode("utf-8", "replace")).digest())
        found.update(self.known.family.tobytes())
        for name, part in self.parts.items():
            found.update(f"{name} {len(part.anchors)} {sorted(part.negatives)}".encode())
            for places in (part.anchors, part.positives, part.candidates):
                found.update(places.tobytes())
        return found.hexdigest()


def read_mining_dataset(
    source: Source,
    settings: MineSettings,
    *,
    columns: Mapping[str, str] | None = None,
    rules: LabelRules,
    split: str | None = None,
    corpus: Source | None = None,
    text_column: str | None = None,
) -> MiningDataset:
    """Read what is to be mined for, and from.

    Without a corpus each split's candidates are its own texts: with labels both texts of each pair, else
    those that stand second, unless `settings.candidates` says otherwise. The texts of a corpus are dealt to
    the splits, near-identical ones to the same, in proportion to their rows; those that stand in a split,
    or are near-identical to one that does, belong to that split.
    """
    pairs = with_provenance(read_pairs(source, columns=columns, split=split, rules=rules))
    if pairs.label_kind != "binary":
        raise DataError(
            "its labels are scores, so that nobody knows which pairs are positives; keep the rows with high"
            " scores in a file of anchor and positive",
            path=pairs.source,
        )
    texts = _TextNumbers()
    rows = {name: _rows(frame, texts) for name, frame in pairs.splits.items()}
    own = len(texts.places)
    further = [] if corpus is None else _corpus(corpus, texts, text_column)
    positives = [
        pair for one, other, label in rows.values() for pair in _pairs_labelled(one, other, label, 1)
    ]
    if not positives:
        raise DataError("has no positive to mine negatives for", path=pairs.source)
    listed = list(texts.places)
    known = KnownPositives(
        listed,
        positives,
        _clusters(pairs, rows) if settings.transitive else (),
        threshold=settings.threshold,
        transitive=settings.transitive,
    )
    everyone = (settings.candidates or ("positives" if pairs.labels is None else "all")) == "all"
    candidates = {
        name: np.unique(np.concatenate([one, other] if everyone else [other]))
        for name, (one, other, _) in rows.items()
    }
    if corpus is not None:
        candidates = _corpus_by_split(further, own, known, rows, settings.seed)
    parts = {name: _part(one, other, label, candidates[name]) for name, (one, other, label) in rows.items()}
    return MiningDataset(listed, known, parts)


class _TextNumbers:
    """Distinct texts, numbered as they come."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def numbered(self, texts: Iterable[str]) -> Places:
        number = self.places.setdefault
        return np.fromiter((number(text, len(self.places)) for text in texts), np.int64)


_Rows = tuple[Places, Places, Places]


def _rows(frame: pl.DataFrame, texts: _TextNumbers) -> _Rows:
    return (
        texts.numbered(frame["text1"]),
        texts.numbered(frame["text2"]),
        frame["label"].cast(pl.Int64).to_numpy(),
    )


def _corpus(source: Source, texts: _TextNumbers, column: str | None) -> list[int]:
    rows = read_rows(source, columns=None if column is None else {"text": column})
    found: list[int] = []
    for frame in rows.splits.values():
        if frame.columns != ["text"]:
            raise DataError(
                f"holds {', '.join(frame.columns)}; expected single texts: give a text file, or the column by"
                " --text-column",
                path=source_name(source),
            )
        found += texts.numbered(frame["text"]).tolist()
    return found


def _pairs_labelled(one: Places, other: Places, label: Places, wanted: int) -> Iterator[tuple[int, int]]:
    chosen = label == wanted
    return zip(one[chosen].tolist(), other[chosen].tolist(), strict=True)


def _clusters(pairs: PairDataset, rows: Mapping[str, _Rows]) -> Iterator[tuple[int, int]]:
    """Texts of one cluster; what a cluster says of a pair that is no positive is not believed."""
    first: dict[str, int] = {}
    for name, frame in pairs.splits.items():
        if "cluster" not in frame.columns:
            continue
        one, _, label = rows[name]
        for text, is_positive, cluster in zip(
            one.tolist(), label.tolist(), frame["cluster"].to_list(), strict=True
        ):
            if is_positive and cluster:
                yield first.setdefault(cluster, text), text


def _corpus_by_split(
    corpus: list[int], own: int, known: KnownPositives, rows: Mapping[str, _Rows], seed: int
) -> dict[str, Places]:
    """The texts of a corpus by the split that may use them."""
    home = {
        unit: name
        for name, (one, other, _) in rows.items()
        for unit in known.unit[np.concatenate([one, other])].tolist()
    }
    names = list(rows)
    shares = np.cumsum([len(rows[name][0]) for name in names], dtype=np.float64)
    dealt: dict[str, list[int]] = {name: [] for name in names}
    for text in dict.fromkeys(corpus):
        unit = int(known.unit[text])
        if unit not in home:
            drawn = keyed_unit(seed, "split", unit - own) * shares[-1]
            home[unit] = names[int(np.searchsorted(shares, drawn, side="right"))]
        dealt[home[unit]].append(text)
    return {name: np.array(sorted(found), np.int64) for name, found in dealt.items()}


def _part(one: Places, other: Places, label: Places, candidates: Places) -> MiningSplit:
    rows = list(_pairs_labelled(one, other, label, 1))
    distinct = list(dict.fromkeys(rows))
    negatives = frozenset((min(pair), max(pair)) for pair in _pairs_labelled(one, other, label, 0))
    counts = Counter({NOT_POSITIVE: len(label) - len(rows), REPEATED: len(rows) - len(distinct)})
    places = np.array(distinct, np.int64).reshape(-1, 2)
    return MiningSplit(
        places[:, 0], places[:, 1], candidates, negatives, {k: n for k, n in counts.items() if n}
    )
