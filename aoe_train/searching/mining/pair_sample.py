"""A sample of pairs of texts, or of queries and results, for people or LLMs to judge two models by.

The pairs that one model finds most similar contain that model's mistakes, which favours the other model. So
pairs are drawn by the mean cosine of all models. Half of them are the most similar pairs, because few texts
of a corpus mean the same; the others are spread over ten bands of lower similarity. No text is in two pairs,
so that the pairs are independent.

Given queries, all candidates search the texts for each. Equal results give equal metrics, so only queries
with different results are judged, and the share of these queries scales the gain to all queries. The sheet
has the rank of each result for each candidate, so that the judgements alone compare the candidates.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy import ndarray

from aoe_train.evaluation.overlap import trained_on, training_hashes
from aoe_train.model.collection import RECIPES, WEIGHTS, Collection
from aoe_train.model.run_folder import digest_of
from aoe_train.searching.index_rows import read_rows
from aoe_train.searching.mining.mining_run import finished, write_with_card
from aoe_train.searching.nearest import nearest
from aoe_train.searching.ranking import fuse, num_candidates
from pairkit import __version__
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.seeded import keyed_hash
from pairkit.dataset.making.dataset_folder import shard_path
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.records import QUERY_COLUMNS, RANK
from pairkit.dataset.table_files import read_parquet
from pairkit.similarity.bm25 import Bm25
from pairkit.similarity.near_duplicates import (
    near_identical_to,
    without_near_duplicates,
)

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.settings.train_settings import Purpose

_CONFIG = "default"
_SPLIT = "test"
_MAX_PAIRS = 400
_MAX_TEXTS = 4000  # all pairs of which are compared
_PAIRS_PER_TEXT = 20  # most similar pairs, from which the sample is drawn
_BANDS = 10  # of similarity
_ROUNDING = 1e-6  # difference of the vectors of equal models in float32
_COMPARED_TEXTS = 256  # of each kind that show whether models are equal
_TOO_FEW = "fewer than two distinct texts; expected at least two"
_BATCH = 256  # queries at a time
_INTRODUCTION = """
Unjudged pairs of texts, sampled by `aoe sample-pairs`. `label` is the mean cosine of the models that took
part. It is not a judgement: do not evaluate a model by it.
"""
_SHEET = """
`text1` is a query and `text2` a result. `query_top` is the number of first results that were compared,
`query_results` the number of pairs of this query, and `query_share` the share of all queries that have
different results. The columns `rank of ...` have the rank of the result for each candidate, and null if it
isn't among these first results.
"""

Results = Mapping[str, list[list[int]]]
"""The places that each candidate finds first, by query."""


def sample_pairs(
    source: Source,
    models: Sequence[tuple[str | Path | Encoder, Encoder]],
    seed: int,
    out: Path | None,
    *,
    fresh: bool,
    columns: Mapping[str, str] | None,
    queries: Source | None,
    purposes: Sequence[Purpose],
    top: int,
    show: Listener,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Sample the pairs and write them to `out`; `models` are pairs of a model's name and its encoder."""
    if queries is None and top != 1:
        raise ConfigError(f"--top {top} needs --queries; leave it out")
    if queries is None and len(purposes) > 1:
        raise ConfigError(
            "several --purpose compare search results; give --queries, or only one"
        )
    name = source_name(source)
    texts = sorted(set(read_rows(source, columns).texts))
    query_texts = [] if queries is None else _query_texts(queries, columns)
    encoders = [encoder for _, encoder in models]
    settings: dict[str, Any] = {"seed": seed}
    inputs: dict[str, Any] = {"data": _digest(texts)}
    if query_texts:
        settings |= {"top": top, "purposes": [*purposes]}
        inputs["queries"] = _digest(query_texts)
    inputs["model"] = [digest_of(encoder.identity()) for encoder in encoders]
    made_by = f"aoe sample-pairs (aoe-toolkit {__version__})"
    run = {"made_by": made_by, "settings": settings, "inputs": inputs}
    earlier = finished(out, run, fresh=fresh)
    if out is not None and earlier is not None:
        return read_parquet(out / shard_path(_CONFIG, _SPLIT)), earlier

    trained = np.concatenate([training_hashes(model) for model, _ in models])
    chosen = _choose_texts(query_texts or texts, trained, seed)
    names = [str(model) for model, _ in models]
    examples = [*chosen[:_COMPARED_TEXTS], *texts[:_COMPARED_TEXTS]]
    _check_different(names, _unit_vectors(encoders, examples, show))
    if query_texts:
        search = CandidateSearch(texts, chosen, top)
        if len(search.documents) < 2:
            raise DataError(_TOO_FEW, path=name)
        for model, encoder in zip(names, encoders, strict=True):
            search.add_model(model, encoder, purposes, show)
        show(Progress("search"))
        pairs, counts = _draw_results(search, name)
    else:
        vectors = _unit_vectors(encoders, chosen, show)
        pairs = _draw_pairs(chosen, vectors, seed, name)
        counts = {"compared_texts": len(chosen)}
    statistics = {"pairs": pairs.height, "texts": len(texts), **counts}
    if out is not None:
        sections = {"": _INTRODUCTION + (_SHEET if query_texts else "")}
        write_with_card(out, _CONFIG, {_SPLIT: pairs}, sections, statistics, run)
    return pairs, statistics


def _unit_vectors(
    encoders: Iterable[Encoder], texts: list[str], show: Listener
) -> list[ndarray]:
    """Each model's vectors of length 1, (text, dim)."""
    return [
        encoder.encode(texts, normalize=True, progress=show) for encoder in encoders
    ]


def _query_texts(source: Source, columns: Mapping[str, str] | None) -> list[str]:
    """Distinct queries: of the columns of the texts, or without these as in a text file, of the usual one."""
    try:
        rows = read_rows(source, columns)
    except DataError:
        rows = read_rows(source)
    return sorted(set(rows.texts))


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()


def _check_different(names: Sequence[str], vectors: Sequence[ndarray]) -> None:
    """Raise ConfigError for models with equal vectors, which nobody can judge, or with one name."""
    named = zip(names, vectors, strict=True)
    for (name1, vectors1), (name2, vectors2) in combinations(named, 2):
        has_same_shape = vectors1.shape == vectors2.shape
        if has_same_shape and np.allclose(vectors1, vectors2, rtol=0, atol=_ROUNDING):
            raise ConfigError(
                f"{name1} and {name2} give equal vectors, so there is no difference to judge; if training"
                " kept the backbone, there is no new model"
            )
        if name1 == name2:
            raise ConfigError(
                f"--model: two models are called {name1}; save them in folders of other names"
            )


def _choose_texts(
    texts: Sequence[str],
    trained: ndarray,
    seed: int,
) -> list[str]:
    """A random sample without near-duplicates; texts that no model was trained on come first."""
    seen = trained_on(texts, trained)
    shuffled = [keyed_hash(seed, text) for text in texts]
    order = sorted(zip(seen, shuffled, texts, strict=True))
    return without_near_duplicates([text for _, _, text in order[:_MAX_TEXTS]])


def _draw_pairs(
    texts: Sequence[str],
    vectors: Sequence[ndarray],
    seed: int,
    source: str,
) -> pl.DataFrame:
    """text1, text2 and the mean cosine as `label`; `vectors` are each model's, of unit length (text, dim)."""
    if len(texts) < 2:
        raise DataError(_TOO_FEW, path=source)
    first, second = np.triu_indices(len(texts), 1)
    cosines = [(matrix @ matrix.T)[first, second] for matrix in vectors]
    cosine = np.mean(cosines, axis=0)
    top = np.argsort(-cosine, kind="stable")[: _PAIRS_PER_TEXT * len(texts)]
    first = first[top]
    second = second[top]
    cosine = cosine[top]
    edges = np.linspace(cosine[-1], cosine[0], _BANDS + 1)
    bands = np.digitize(cosine, edges[1:-1])
    shuffled = np.random.default_rng(seed).permutation(len(cosine))
    shuffled_bands = bands[shuffled]
    by_band = [
        shuffled[shuffled_bands == band].tolist() for band in reversed(range(_BANDS))
    ]
    drawn = list(_alternate(range(len(cosine)), by_band, first, second))[:_MAX_PAIRS]
    columns = {
        "text1": [texts[index] for index in first[drawn]],
        "text2": [texts[index] for index in second[drawn]],
    }
    return pl.DataFrame({**columns, "label": cosine[drawn]})


def _alternate(
    by_cosine: Sequence[int],
    by_band: Sequence[Sequence[int]],
    first: ndarray,
    second: ndarray,
) -> Iterator[int]:
    """Alternate between the most similar pair and one of each band, skipping pairs with a used text."""
    used = set[int]()
    nearest = iter(by_cosine)
    queues = []
    for band in by_band:
        queues += [nearest, iter(band)]
    while queues:
        for queue in [*queues]:
            for pair in queue:
                texts = {first[pair], second[pair]}
                if used.isdisjoint(texts):
                    used |= texts
                    yield pair
                    break
            else:
                queues.remove(queue)


def _draw_results(
    search: CandidateSearch, source: str
) -> tuple[pl.DataFrame, dict[str, int]]:
    """The results of queries on which candidates differ, as far as they fit."""
    results = search.results()
    differing = differing_queries(results)
    if not differing:
        raise DataError(
            f"all {len(results)} candidates find the same first {search.top} for all {len(search.queries):,}"
            " queries; give more queries, other models or a --purpose",
            path=source,
        )
    rows: list[dict[str, Any]] = []
    for of_query in search.rows(results, differing):
        if rows and len(rows) + len(of_query) > _MAX_PAIRS:
            break
        rows += of_query
    pairs = pl.DataFrame(rows, infer_schema_length=None)
    counts = {
        "compared_texts": len(search.documents),
        "queries": len(search.queries),
        "differing_queries": len(differing),
        "sampled_queries": pairs["text1"].n_unique(),
    }
    return pairs, counts


class CandidateVectors(NamedTuple):
    """The vectors of a model as it is or for a purpose, of length 1, and their weight against words."""

    name: str
    documents: ndarray
    queries: ndarray
    weight: float


class CandidateSearch:
    """A search of all candidates for the same queries; near-duplicates of a query are not results.

    Each model is a candidate as it is and for each purpose (see `model/collection.py`), by vectors only and
    together with words (BM25). It encodes texts and queries once.

    Attributes:
        queries: The queries.
        documents: The searched texts, without near-duplicates.
        top: The number of first results of each query that are compared.
    """

    def __init__(self, texts: Sequence[str], queries: list[str], top: int) -> None:
        groups = near_identical_to([*texts, *queries])
        self._query_groups = groups[len(texts) :]
        self._document_groups = np.unique(groups[: len(texts)])
        self.queries = queries
        self.documents = [texts[place] for place in self._document_groups]
        self.top = top
        self._candidates: list[CandidateVectors] = []

    def add_model(
        self,
        name: str,
        encoder: Encoder,
        purposes: Sequence[Purpose],
        show: Listener,
    ) -> None:
        """Add a model as it is and for each purpose."""
        options: dict[str, Any] = {"normalize": True, "progress": show}
        queries = encoder.encode_query(self.queries, **options)
        documents = encoder.encode_document(self.documents, **options)
        as_it_is = CandidateVectors(name, documents, queries, WEIGHTS["bm25"])
        self._candidates.append(as_it_is)
        for purpose in purposes:
            collection = Collection(documents, purpose)
            candidate = CandidateVectors(
                f"{name}, {purpose}",
                collection.transform(documents),
                collection.transform(queries),
                RECIPES[purpose].weight,
            )
            self._candidates.append(candidate)

    def results(self) -> Results:
        """The first results of each candidate."""
        words = Bm25(self.documents)
        count = min(num_candidates("both", self.top) + 1, len(self.documents))
        results = defaultdict(list)
        for start in range(0, len(self.queries), _BATCH):
            batch = slice(start, start + _BATCH)
            nearest_of = {}
            for candidate in self._candidates:
                queries = candidate.queries[batch]
                neighbours = nearest(candidate.documents, queries, count)
                nearest_of[candidate.name] = neighbours.places
            for query in range(len(self.queries))[batch]:
                is_same = self._document_groups == self._query_groups[query]
                by_words = np.where(is_same, 0, words.scores(self.queries[query]))
                for candidate in self._candidates:
                    places = nearest_of[candidate.name][query - start]
                    others = places[~is_same[places]]
                    fused = fuse(
                        candidate.documents,
                        candidate.queries[query],
                        others,
                        by_words,
                        candidate.weight,
                        self.top,
                    )
                    results[candidate.name].append(others[: self.top].tolist())
                    results[f"{candidate.name}, words"].append(fused.places.tolist())
        return results

    def rows(
        self, results: Results, queries: Sequence[int]
    ) -> Iterator[list[dict[str, object]]]:
        """The rows of each of these queries: a row for each result of a candidate, with its ranks."""
        share = len(queries) / len(self.queries)
        for query in queries:
            found = {name: by_query[query] for name, by_query in results.items()}
            places = list(dict.fromkeys(chain.from_iterable(found.values())))
            values = (self.top, len(places), share)
            # The mean cosine of all candidates between the query and its results.
            cosines = [
                candidate.documents[places] @ candidate.queries[query]
                for candidate in self._candidates
            ]
            mean_cosines = np.mean(cosines, axis=0).tolist()
            rows = []
            for place, cosine in zip(places, mean_cosines, strict=True):
                row: dict[str, Any] = {
                    "text1": self.queries[query],
                    "text2": self.documents[place],
                    "label": cosine,
                    **dict(zip(QUERY_COLUMNS, values, strict=True)),
                }
                for name, ranked in found.items():
                    rank = ranked.index(place) + 1 if place in ranked else None
                    row[RANK + name] = rank
                rows.append(row)
            yield rows


def differing_queries(results: Results) -> list[int]:
    """The queries for which candidates have another first result or other results."""
    differing = []
    for query, by_candidate in enumerate(zip(*results.values(), strict=True)):
        distinct = {(*ranked[:1], frozenset(ranked)) for ranked in by_candidate}
        if len(distinct) > 1:
            differing.append(query)
    return differing
