"""Settings of mining, and a dataset's rows as indices of anchors, positives and candidates."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import BeforeValidator, model_validator

from pairkit.base.errors import DataError
from pairkit.base.settings import Settings, setting, split_at_commas
from pairkit.base.system.seeded import keyed_unit
from pairkit.dataset.making.group_splits import NOWHERE, draw_splits
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.reading.reader import read_pairs, read_rows
from pairkit.dataset.records import PairDataset, report_bad_rows, with_provenance
from pairkit.similarity.groups import connected
from pairkit.similarity.near_duplicates import DEFAULT_THRESHOLD, near_identical_to

if TYPE_CHECKING:
    from pairkit.dataset.labels import LabelRules

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
REPEATED = "repeated"
NOT_POSITIVE = "not_positive"
_CANDIDATES_PER_NEGATIVE = 10


class MineSettings(Settings):
    """Settings of a run of mining; a rule on scores that is None is not applied."""

    by: Literal["bm25", "model", "both"] = setting(
        ...,
        "What ranks the candidates: bm25, model or both (alternating). Default: model if one is given, else"
        " bm25.",
    )
    num_negatives: int = setting(5, "Maximum number of negatives per row.", ge=1)
    rank_range: Annotated[tuple[int, int] | None, BeforeValidator(split_at_commas)] = (
        setting(
            None,
            "Number of candidates to skip, and the last rank to consider, such as 10,50. Known positives "
            "have no rank. Default: 0,10N.",
        )
    )
    sampling: Literal["top", "random"] = setting(
        "top",
        "Which candidates of the range become negatives: top (the most similar) or random.",
    )
    margin: float | None = setting(
        None,
        "Minimum difference between a negative's score and the positive's. Scores are cosines if there "
        "is a model, else BM25's.",
    )
    relative_margin: float | None = setting(
        None,
        "Minimum difference as a share of the positive's score; 0.05 is NV-Retriever's 95 %.",
        lt=1,
    )
    candidates: Literal["all", "positives"] | None = setting(
        None,
        "Texts that can become negatives: all, or positives (second texts only). Default: all if pairs "
        "have labels, else positives.",
    )
    transitive: bool = setting(
        True, "Also exclude positives of positives, and texts of the same cluster."
    )
    duplicate_threshold: float = setting(
        DEFAULT_THRESHOLD,
        "Jaccard similarity of word triples that makes texts near-duplicates.",
        gt=0,
        le=1,
    )
    scores: bool = setting(
        False, "Add the scores of the positive and of each negative."
    )
    seed: int = setting(42, "Seed of every random choice.")

    @model_validator(mode="after")
    def _check_range(self) -> MineSettings:
        low, high = self.window
        if low < 0 or high <= low:
            raise ValueError(
                f"rank_range {low},{high}: expected the number of candidates to skip and the last rank, such"
                " as 10,50"
            )
        rankings = 2 if self.by == "both" else 1
        if self.num_negatives > (high - low) * rankings:
            raise ValueError(
                f"{self.num_negatives} negatives from {high - low} candidates in the range {low},{high};"
                " widen the range, or lower num_negatives"
            )
        return self

    @property
    def window(self) -> tuple[int, int]:
        """The considered ranks as a half-open range, from 0."""
        return self.rank_range or (0, _CANDIDATES_PER_NEGATIVE * self.num_negatives)

    @property
    def measures_positives(self) -> bool:
        """Whether the scores of positives are needed."""
        return (
            self.scores or self.margin is not None or self.relative_margin is not None
        )


class KnownPositives:
    """Texts by unit (near-duplicates) and by family: units connected by positives or clusters.

    `positives` and `clustered` are pairs of texts, (pair, 2).
    """

    def __init__(
        self,
        texts: Sequence[str],
        positives: Indices,
        clustered: Indices,
        *,
        threshold: float,
        transitive: bool,
    ) -> None:
        self.unit = near_identical_to(texts, threshold).astype(np.int64)
        pairs = self.unit[positives]
        ties = np.concatenate([pairs, self.unit[clustered]])
        families = connected(np.arange(len(texts)), *ties.T)
        self.family = families[self.unit]
        self._transitive = transitive
        self._partners = defaultdict[int, set[int]](set)
        for first, second in pairs.tolist():
            self._partners[first].add(second)
            self._partners[second].add(first)
        self._unit_sizes = np.bincount(self.unit, minlength=len(texts))
        self._family_sizes = np.bincount(self.family, minlength=len(texts))

    def excluded(self, text: int, others: Indices) -> Mask:
        """Which of the others can't be negatives of a text: its near-duplicates and positives."""
        if self._transitive:
            return self.belong_together(text, others)
        return self._among(self._positive_units(text), others)

    def most_excluded(self, text: int) -> int:
        """Upper bound of the number of texts that `excluded` can mark."""
        if self._transitive:
            return int(self._family_sizes[self.family[text]])
        return int(self._unit_sizes[self._positive_units(text)].sum())

    def seen_by_row(self, anchor: int, positive: int, others: Indices) -> Mask:
        """What `excluded` would mark if this row's positive were the anchor's only known one."""
        units = [int(self.unit[anchor]), int(self.unit[positive])]
        return self._among(units, others)

    def belong_together(self, text: int, others: Indices) -> Mask:
        """Which of the others are in the text's family, so that they would be false negatives."""
        return np.asarray(self.family[others] == self.family[text])

    def has_further(self, anchor: int, positive: int) -> bool:
        """Whether the family has texts other than near-duplicates of these two."""
        units = {int(self.unit[anchor]), int(self.unit[positive])}
        family_size = self._family_sizes[self.family[anchor]]
        return bool(family_size > self._unit_sizes[list(units)].sum())

    def _positive_units(self, text: int) -> list[int]:
        """The units of a text and of its positives."""
        unit = int(self.unit[text])
        partners = self._partners.get(unit, set())
        return [unit, *(partners - {unit})]

    def _among(self, units: list[int], others: Indices) -> Mask:
        return np.asarray(np.isin(self.unit[others], units))


@dataclass(frozen=True)
class MiningSplit:
    """A split as indices of texts."""

    anchors: Indices
    positives: Indices
    candidates: Indices
    negatives: frozenset[tuple[int, int]]
    dropped: Mapping[str, int]

    @property
    def pairs(self) -> Iterator[tuple[int, int]]:
        """The anchor and the positive of each row."""
        return zip(self.anchors.tolist(), self.positives.tolist(), strict=True)


@dataclass(frozen=True)
class MiningDataset:
    """All splits of a dataset."""

    texts: list[str]
    known: KnownPositives
    parts: Mapping[str, MiningSplit]

    def digest(self) -> str:
        """A hash of the texts, families and splits."""
        hasher = hashlib.sha256()
        for text in self.texts:
            hasher.update(blake2b(text.encode("utf-8", "replace")).digest())
        hasher.update(self.known.family.tobytes())
        for name, part in self.parts.items():
            hasher.update(
                f"{name} {len(part.anchors)} {sorted(part.negatives)}".encode()
            )
            for indices in (part.anchors, part.positives, part.candidates):
                hasher.update(indices.tobytes())
        return hasher.hexdigest()


def read_mining_dataset(
    source: Source,
    settings: MineSettings,
    *,
    columns: Mapping[str, str] | None,
    rules: LabelRules,
    split: str | None,
    corpus: Source | None,
    corpus_columns: Mapping[str, str] | None,
) -> MiningDataset:
    """Read rows and candidates; raises DataError without positives.

    Without a corpus, each split's candidates are its own texts: both texts of each pair if pairs have labels,
    else the second ones (`settings.candidates` overrides this). The texts of a corpus are distributed over
    the splits in proportion to their rows; near-duplicates go to the same split, and texts of a split, or
    near-duplicates of them, to that split.
    """
    pairs = with_provenance(
        read_pairs(source, columns=columns, split=split, rules=rules)
    )
    if pairs.label_kind != "binary":
        raise DataError(
            "labels are scores, expected 0 and 1; write the rows with high scores to a file with the columns"
            " anchor and positive",
            path=pairs.source,
        )
    numbers: dict[str, int] = {}  # of the distinct texts, in order of appearance
    rows = {
        name: _LabelledPairs.of(frame, numbers) for name, frame in pairs.splits.items()
    }
    corpus_texts = []
    if corpus is not None:
        corpus_texts = _read_corpus(corpus, numbers, corpus_columns)
    positives = np.concatenate([of_split.labelled(1) for of_split in rows.values()])
    if not len(positives):
        raise DataError(
            "no positives; expected pairs labelled 1, or the columns anchor and positive",
            path=pairs.source,
        )
    distinct = list(numbers)
    clustered = list(_clusters(pairs, rows)) if settings.transitive else []
    known = KnownPositives(
        distinct,
        positives,
        np.array(clustered, np.int64).reshape(-1, 2),
        threshold=settings.duplicate_threshold,
        transitive=settings.transitive,
    )
    candidate_texts = settings.candidates or (
        "positives" if pairs.labels is None else "all"
    )
    candidates = {}
    for name, split_pairs in rows.items():
        candidates[name] = np.unique(split_pairs.second)
        if candidate_texts == "all":
            candidates[name] = np.union1d(split_pairs.first, split_pairs.second)
    if corpus is not None:
        candidates = _corpus_by_split(
            corpus_texts, distinct, known, rows, settings.seed
        )
    parts = {
        name: _mining_split(split_pairs, candidates[name])
        for name, split_pairs in rows.items()
    }
    return MiningDataset(distinct, known, parts)


def _indices(texts: Iterable[str], numbers: dict[str, int]) -> Indices:
    """The numbers of texts; adds those of new texts to `numbers`."""
    indices = [numbers.setdefault(text, len(numbers)) for text in texts]
    return np.array(indices, np.int64)


class _LabelledPairs(NamedTuple):
    """The pairs of a split, as indices of texts, with their labels."""

    first: Indices
    second: Indices
    labels: Indices

    @classmethod
    def of(cls, frame: pl.DataFrame, numbers: dict[str, int]) -> _LabelledPairs:
        """The rows of a table; `numbers` of its new texts are added."""
        first = _indices(frame["text1"], numbers)
        second = _indices(frame["text2"], numbers)
        return cls(first, second, frame["label"].cast(pl.Int64).to_numpy())

    def labelled(self, label: int) -> Indices:
        """The pairs with a label, (pair, 2)."""
        is_chosen = self.labels == label
        return np.stack([self.first[is_chosen], self.second[is_chosen]], axis=1)


def _read_corpus(
    source: Source,
    numbers: dict[str, int],
    columns: Mapping[str, str] | None,
) -> list[int]:
    """The indices of the texts of a corpus; adds new texts to `numbers`, and reports unusable rows."""
    rows = read_rows(source, columns=columns)
    report_bad_rows(rows.bad_rows)
    indices = []
    for frame in rows.splits.values():
        if frame.columns != ["text"]:
            raise DataError(
                f"has the columns {', '.join(frame.columns)}; expected single texts: use a text file, or name"
                " the column with --corpus-columns text=NAME",
                path=source_name(source),
            )
        indices += _indices(frame["text"], numbers).tolist()
    return indices


def _clusters(
    pairs: PairDataset, rows: Mapping[str, _LabelledPairs]
) -> Iterator[tuple[int, int]]:
    """Pairs of texts of one cluster; only positives count as members."""
    first: dict[str, int] = {}
    for name, frame in pairs.splits.items():
        if "cluster" not in frame.columns:
            continue
        texts, _, labels = rows[name]
        clusters = frame["cluster"].to_list()
        members = zip(texts.tolist(), labels.tolist(), clusters, strict=True)
        for text, is_positive, cluster in members:
            if is_positive and cluster:
                yield first.setdefault(cluster, text), text


def _corpus_by_split(
    corpus: list[int],
    texts: Sequence[str],
    known: KnownPositives,
    rows: Mapping[str, _LabelledPairs],
    seed: int,
) -> dict[str, Indices]:
    """The texts of a corpus by split."""
    split_of = np.full(len(texts), NOWHERE)  # by unit
    for number, (first, second, _) in enumerate(rows.values()):
        split_of[known.unit[np.concatenate([first, second])]] = number

    indices = np.unique(corpus)
    units = known.unit[indices]
    new_units = np.unique(units[split_of[units] == NOWHERE])
    draws = [keyed_unit(seed, "split", texts[unit]) for unit in new_units.tolist()]
    sizes = [len(split_pairs.first) for split_pairs in rows.values()]
    split_of[new_units] = draw_splits(np.array(draws, np.float64), sizes)
    return {
        name: indices[split_of[units] == number] for number, name in enumerate(rows)
    }


def _mining_split(rows: _LabelledPairs, candidates: Indices) -> MiningSplit:
    """A split with each positive once."""
    pairs = rows.labelled(1)
    distinct = list(dict.fromkeys(map(tuple, pairs.tolist())))
    negatives = frozenset(map(tuple, np.sort(rows.labelled(0)).tolist()))
    counts = {
        NOT_POSITIVE: len(rows.labels) - len(pairs),
        REPEATED: len(pairs) - len(distinct),
    }
    dropped = {reason: count for reason, count in counts.items() if count}
    anchors, positives = np.array(distinct, np.int64).reshape(-1, 2).T
    return MiningSplit(anchors, positives, candidates, negatives, dropped)
