"""From candidates to negatives: ranking by a model or BM25, range of ranks, rules on scores, sampling."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from aoe_train.encoding.encode_run import cached_vectors
from aoe_train.searching.mining.mined_dataset import (
    Indices,
    KnownPositives,
    Mask,
    MineSettings,
    MiningDataset,
    MiningSplit,
)
from aoe_train.searching.nearest import nearest
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.system.seeded import keyed_hash
from pairkit.similarity.bm25 import Bm25, best

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder

Scores = npt.NDArray[np.float32]
BEFORE_RANGE = "before_range"
KNOWN = "anchor_or_known_positive"
NO_NEGATIVE = "no_negative"
_BLOCK_ANCHORS = 256
_BLOCK_SCORES = 4_000_000


class VectorTable(NamedTuple):
    """Vectors of unit length (row, dim), and the ascending text indices of the rows."""

    matrix: Scores
    indices: Indices

    def numbers(self, indices: Indices) -> Indices:
        """Row numbers of texts."""
        return np.searchsorted(self.indices, indices)

    def rows(self, indices: Indices) -> Scores:
        """Vectors of texts (text, dim)."""
        return np.asarray(self.matrix[self.numbers(indices)])


class MiningVectors(NamedTuple):
    """Vectors of anchors (queries), and of candidates and positives (documents)."""

    queries: VectorTable
    documents: VectorTable


def embed(
    encoder: Encoder,
    identity: Mapping[str, object],
    dataset: MiningDataset,
    work: Path,
    show: Listener,
) -> MiningVectors:
    """Encode texts with the model's prompts for queries and documents; only once if these are equal."""
    parts = dataset.parts.values()
    queries = np.unique(np.concatenate([part.anchors for part in parts]))
    candidates = [part.candidates for part in parts]
    positives = [part.positives for part in parts]
    documents = np.unique(np.concatenate([*candidates, *positives]))

    def encode_table(indices: Indices, prompt: str) -> VectorTable:
        texts = [dataset.texts[index] for index in indices.tolist()]
        matrix = cached_vectors(
            texts,
            identity,
            prompt,
            lambda: encoder,
            normalize=True,
            folder=work,
            show=show,
        )
        return VectorTable(matrix, indices)

    prompts = encoder.settings.named_prompts
    if prompts.query == prompts.document:
        shared_table = encode_table(np.union1d(queries, documents), prompts.query)
        return MiningVectors(shared_table, shared_table)
    query_table = encode_table(queries, prompts.query)
    return MiningVectors(query_table, encode_table(documents, prompts.document))


class ByModel:
    """Exact search by cosine; ties are ordered by index."""

    def __init__(self, vectors: MiningVectors, candidates: Indices) -> None:
        self._vectors = vectors
        self._candidates = vectors.documents.numbers(candidates)

    def best(self, texts: Indices, count: int) -> tuple[Indices, Scores]:
        """The `count` best candidates of each text, padded with -1, and their scores (text, rank)."""
        queries = self._vectors.queries.rows(texts)
        documents = self._vectors.documents
        scores, places = nearest(documents.matrix, queries, count, self._candidates)
        indices = documents.indices[places]
        return np.where(places < 0, -1, indices), scores

    def scores(self, text: int, others: Indices) -> Scores:
        """The scores of candidates or positives."""
        (query,) = self._vectors.queries.rows(np.array([text]))
        scores: Scores = self._vectors.documents.rows(others) @ query
        return scores


class ByWords:
    """BM25, with the methods of `ByModel`; candidates that share no word with the text are left out."""

    def __init__(
        self, texts: Sequence[str], candidates: Indices, positives: Indices
    ) -> None:
        self._texts = texts
        self._indexed = np.union1d(candidates, positives)
        self._is_positive_only = ~np.isin(self._indexed, candidates)
        self._index = Bm25([texts[index] for index in self._indexed.tolist()])

    def best(self, texts: Indices, count: int) -> tuple[Indices, Scores]:
        """The best candidates and their scores."""
        ranked = np.full((len(texts), count), -1, np.int64)
        scores = np.full((len(texts), count), -np.inf, np.float32)
        for row, text in enumerate(texts.tolist()):
            all_scores = self._index.scores(self._texts[text])
            all_scores[self._is_positive_only] = 0
            indices = best(all_scores, count)
            ranked[row, : len(indices)] = self._indexed[indices]
            scores[row, : len(indices)] = all_scores[indices]
        return ranked, scores

    def scores(self, text: int, others: Indices) -> Scores:
        """The scores of candidates or positives."""
        scores = self._index.scores(self._texts[text])
        return scores[np.searchsorted(self._indexed, others)]


class CandidateRanking(NamedTuple):
    """Candidates of one text, best first, with their scores; -1 pads short rankings."""

    indices: Indices
    scores: Scores


@dataclass
class MinedSplit:
    """The result of a split: its rows and counts."""

    rows: pl.DataFrame = field(default_factory=pl.DataFrame)
    negatives: int = 0
    fewer: int = 0  # rows with fewer negatives than requested
    labelled: int = 0  # negatives that the dataset labels 0
    dropped: Counter[str] = field(default_factory=Counter)  # rows by reason
    turned_down: Counter[str] = field(default_factory=Counter)  # candidates by reason
    # Negatives if each row's positive were the only known one: `mined`, `telling` (of anchors with further
    # positives) and `positives`, which are false.
    estimate: Counter[str] = field(default_factory=Counter)


def mine_split(
    dataset: MiningDataset,
    part: MiningSplit,
    settings: MineSettings,
    vectors: MiningVectors | None,
    show: Listener,
    stage: str,
) -> MinedSplit:
    """Mine the negatives of one split."""
    rankers: list[ByModel | ByWords] = []
    if vectors is not None:
        rankers.append(ByModel(vectors, part.candidates))
    if settings.by != "model":
        rankers.append(ByWords(dataset.texts, part.candidates, part.positives))
    positives = defaultdict[int, list[int]](list)
    for anchor, positive in part.pairs:
        positives[anchor].append(positive)
    miner = _Miner(dataset, part, settings, rankers[0].scores, positives)
    num_mined = 0
    anchors = list(positives)
    _, high = settings.window
    for block, count in _blocks(anchors, dataset.known, high, len(part.candidates)):
        block_rankings = [ranker.best(block, count) for ranker in rankers]
        for row, anchor in enumerate(block.tolist()):
            rankings = [
                CandidateRanking(indices[row], scores[row])
                for indices, scores in block_rankings
            ]
            miner.mine(anchor, rankings)
        num_mined += len(block)
        show(Progress(stage, num_mined, len(anchors)))
    show(Progress(stage, ended=True))
    return miner.split()


@dataclass
class _Miner:
    """Chooses negatives by anchor; margins are measured from the lowest score of the anchor's positives."""

    dataset: MiningDataset
    part: MiningSplit
    settings: MineSettings
    scores: Callable[[int, Indices], Scores]
    positives: Mapping[int, list[int]]
    chosen: dict[int, CandidateRanking] = field(default_factory=dict)
    positive_scores: dict[tuple[int, int], float] = field(default_factory=dict)
    result: MinedSplit = field(default_factory=MinedSplit)

    def mine(self, anchor: int, rankings: list[CandidateRanking]) -> None:
        """Choose the negatives of an anchor, and those that each of its rows would get alone."""
        known = self.dataset.known
        positives = self.positives[anchor]
        scores = [0.0] * len(positives)
        if self.settings.measures_positives:
            scores = self.scores(anchor, np.array(positives)).tolist()
        excluded = [known.excluded(anchor, ranking.indices) for ranking in rankings]
        chosen, turned_down = self._choose(anchor, rankings, excluded, min(scores))
        self.chosen[anchor] = chosen
        self.result.turned_down += turned_down
        estimate = self.result.estimate
        for positive, score in zip(positives, scores, strict=True):
            self.positive_scores[anchor, positive] = score
            seen = [
                known.seen_by_row(anchor, positive, ranking.indices)
                for ranking in rankings
            ]
            (negatives, _), _ = self._choose(anchor, rankings, seen, score)
            is_false = known.belong_together(anchor, negatives)
            estimate["mined"] += len(negatives)
            estimate["positives"] += int(is_false.sum())
            if known.has_further(anchor, positive):
                estimate["telling"] += len(negatives)

    def _choose(
        self,
        text: int,
        rankings: Sequence[CandidateRanking],
        excluded: Sequence[Mask],
        positive_score: float,
    ) -> tuple[CandidateRanking, Counter[str]]:
        """The negatives of a text, and the numbers of candidates turned down by reason."""
        low, high = self.settings.window
        windows = []
        counts = Counter[str]()
        for (indices, scores), marks in zip(rankings, excluded, strict=True):
            ranked = int((indices >= 0).sum())
            remaining = np.flatnonzero(~marks[:ranked])[:high]
            end = remaining[-1] if len(remaining) == high else ranked
            counts[BEFORE_RANGE] += min(low, len(remaining))
            counts[KNOWN] += int(marks[:end].sum())
            within = remaining[low:]
            windows.append(CandidateRanking(indices[within], scores[within]))
        indices, scores = windows[0]
        if len(windows) > 1:
            indices, scores = self._alternate(text, windows)
        rules = {}  # the candidates turned down by each, in sentence-transformers' order
        if (margin := self.settings.margin) is not None:
            rules["margin"] = scores + margin > positive_score
        if (share := self.settings.relative_margin) is not None:
            least = positive_score - abs(positive_score) * share
            rules["relative_margin"] = scores > least
        fits = np.ones(len(indices), bool)
        for reason, turned_down in rules.items():
            counts[reason] += int((fits & turned_down).sum())
            fits &= ~turned_down
        kept = self._sample(text, indices, np.flatnonzero(fits))
        return CandidateRanking(indices[kept], scores[kept]), counts

    def _alternate(
        self, text: int, windows: Sequence[CandidateRanking]
    ) -> CandidateRanking:
        """Merge rankings alternately without repeats, with the scores that the rules use."""
        by_rank = zip_longest(*(window.indices.tolist() for window in windows))
        merged = dict.fromkeys(chain.from_iterable(by_rank))
        merged.pop(None, None)  # the padding of shorter rankings
        candidates = np.array([*merged], np.int64)
        return CandidateRanking(candidates, self.scores(text, candidates))

    def _sample(self, text: int, indices: Indices, fits: Indices) -> Indices:
        """The candidates of `fits` that become negatives, in order of rank."""
        count = self.settings.num_negatives
        texts = self.dataset.texts
        if self.settings.sampling == "top" or len(fits) <= count:
            return fits[:count]
        keys = [
            keyed_hash(self.settings.seed, texts[text], texts[index])
            for index in indices[fits].tolist()
        ]
        order = np.argsort(np.array(keys, np.uint64), kind="stable")
        return np.sort(fits[order[:count]])

    def split(self) -> MinedSplit:
        """The rows with at least one negative, in the order of the input; counts the others as dropped."""
        split = self.result
        split.dropped.update(self.part.dropped)
        count = self.settings.num_negatives
        rows = []
        for anchor, positive in self.part.pairs:
            indices = self.chosen[anchor].indices.tolist()
            if not indices:
                split.dropped[NO_NEGATIVE] += 1
                continue
            split.negatives += len(indices)
            split.fewer += len(indices) < count
            for index in indices:
                pair = (min(anchor, index), max(anchor, index))
                split.labelled += pair in self.part.negatives
            rows.append(self._row(anchor, positive))
        names = [f"negative_{number}" for number in range(1, count + 1)]
        schema: dict[str, Any] = dict.fromkeys(
            ("anchor", "positive", *names), pl.String
        )
        if self.settings.scores:
            schema["scores"] = pl.List(pl.Float32)
        split.rows = pl.DataFrame(rows, schema=schema)
        return split

    def _row(self, anchor: int, positive: int) -> dict[str, object]:
        """The texts of a row, and their scores if requested."""
        chosen = self.chosen[anchor]
        texts = self.dataset.texts
        row: dict[str, object] = {"anchor": texts[anchor], "positive": texts[positive]}
        for number, index in enumerate(chosen.indices.tolist(), 1):
            row[f"negative_{number}"] = texts[index]
        if self.settings.scores:
            score = self.positive_scores[anchor, positive]
            row["scores"] = [score, *chosen.scores.tolist()]
        return row


def _blocks(
    anchors: list[int],
    known: KnownPositives,
    high: int,
    most: int,
) -> Iterator[tuple[Indices, int]]:
    """Blocks of anchors, and the number of candidates that surely fills the range of each."""
    needed = {
        anchor: min(most, high + known.most_excluded(anchor)) for anchor in anchors
    }
    ordered = sorted(anchors, key=lambda anchor: (needed[anchor], anchor))
    start = 0
    while start < len(ordered):
        block = ordered[start : start + _BLOCK_ANCHORS]
        size = _BLOCK_ANCHORS
        while size > 1 and size * needed[block[-1]] > _BLOCK_SCORES:
            size //= 2
            block = block[:size]
        yield np.array(block, np.int64), max(1, needed[block[-1]])
        start += size
