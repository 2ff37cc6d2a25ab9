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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy import ndarray

from aoe_train.evaluation.overlap import trained_on, training_hashes
from aoe_train.model.model_folder import digest_of
from aoe_train.searching.index_rows import read_rows
from aoe_train.searching.mining.candidates import CandidateSearch, differing_queries
from aoe_train.searching.mining.mining_run import finished
from pairkit import __version__
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.seeded import keyed_hash
from pairkit.dataset.making.dataset_folder import (
    card_files,
    dataset_card,
    shard_path,
    write_dataset,
)
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.similarity.near_duplicates import without_near_duplicates

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.settings.train_settings import Purpose

_MAX_PAIRS = 400
_MAX_TEXTS = 4000  # all pairs of which are compared
_PAIRS_PER_TEXT = 20  # most similar pairs, from which the sample is drawn
_BANDS = 10  # of similarity
_ROUNDING = 1e-6  # difference of the vectors of equal models in float32
_COMPARED_TEXTS = 256  # of each kind that show whether models are equal
_TOO_FEW = "fewer than two distinct texts; expected at least two"
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
        return pl.read_parquet(out / shard_path("default", "test")), earlier

    known_hashes = [training_hashes(model) for model, _ in models]
    trained = [hashes for hashes in known_hashes if hashes is not None]
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
        introduction = _INTRODUCTION + (_SHEET if query_texts else "")
        _write_sample(out, pairs, introduction, statistics, run)
    return pairs, statistics


def _write_sample(
    out: Path,
    pairs: pl.DataFrame,
    introduction: str,
    statistics: Mapping[str, Any],
    run: Mapping[str, Any],
) -> None:
    configs = {"default": {"test": pairs}}
    card = dataset_card(
        out.name,
        configs=card_files(configs),
        rows=pairs.height,
        sections=[("", introduction)],
    )
    write_dataset(out, configs, card=card, statistics=statistics, run=run)


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
    trained: Sequence[ndarray],
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
