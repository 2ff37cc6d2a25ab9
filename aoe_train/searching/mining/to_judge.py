"""Pairs of bare texts for people or LLMs to judge, by which two models are then compared.

Pairs that one model finds near hold its own mistakes, which flatters the other one; so pairs are drawn by the
mean of the models' cosines, which treats both alike. Half of them are the nearest pairs of all, since few
texts of a corpus say the same; the others are spread over ten bands of that mean. Each text is in one pair
only, since pairs that share a text tell less.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from aoe_train.evaluation.overlap import read_digests, trained_on
from aoe_train.model.backbones.load import find_folder
from aoe_train.searching.mining.run import RunPaths, digest_of, finished
from aoe_train.searching.text_rows import read_rows
from pairkit import __version__
from pairkit.app.errors import DataError
from pairkit.dataset.card import dataset_card
from pairkit.dataset.in_memory import source_name
from pairkit.dataset.records import card_files, shard, write_dataset
from pairkit.similarity.near_duplicates import near_identical_to
from pairkit.system.seeded import keyed_hash

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from pairkit.dataset.in_memory import Source

PAIRS = 400
_TEXTS = 4000  # at most, of which all pairs are compared
_NEAREST = 20  # pairs to choose from, for each text
_BANDS = 10
_INTRODUCTION = """
Pairs of texts to be judged, as `aoe mine` drew them. `label` is the mean cosine of the models that took part.
It is not a judgement, and a model must not be measured by it.
"""


def is_texts(source: Source) -> bool:
    """Whether a source is bare texts: a text file, or a list of them."""
    if isinstance(source, str | Path):
        return str(source).lower().endswith((".txt", ".txt.gz"))
    return isinstance(source, list) and all(isinstance(text, str) for text in source)


def pairs_to_judge(
    source: Source, models: Sequence[tuple[str | Path | Encoder, Encoder]], seed: int, places: RunPaths
) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """Draw the pairs, and write them if there is a place; `models` are as they were named, and loaded."""
    every, name = sorted(set(read_rows(source).texts)), source_name(source)
    run = {
        "made_by": f"aoe mine (aoe-toolkit {__version__})",
        "settings": {"to_judge": True, "seed": seed},
        "inputs": {
            "data": hashlib.sha256("\0".join(every).encode("utf-8", "replace")).hexdigest(),
            "model": [digest_of(encoder.identity()) for _, encoder in models],
        },
    }
    out = places.out
    if out is not None and (before := finished(out, run, fresh=places.fresh)) is not None:
        return {"test": pl.read_parquet(out / shard("default", "test"))}, before
    known = [read_digests(find_folder(named)) for named, _ in models if isinstance(named, str | Path)]
    texts = _chosen_texts(every, [each for each in known if each is not None], seed)
    vectors = [encoder.encode(texts, normalize=True, progress=False) for _, encoder in models]
    rows = {"test": _drawn_pairs(texts, vectors, seed, name)}
    statistics = {"pairs": rows["test"].height, "texts": len(every), "compared_texts": len(texts)}
    if out is not None:
        configs = {"default": rows}
        sections = [("", _INTRODUCTION)]
        card = dataset_card(
            out.name, configs=card_files(configs), rows=statistics["pairs"], sections=sections
        )
        write_dataset(out, configs, card=card, statistics=statistics, run=run)
    return rows, statistics


def _chosen_texts(texts: Sequence[str], trained: Sequence[np.ndarray], seed: int) -> list[str]:
    """Some of the distinct texts, near-identical ones once; those that no model was trained on come first."""
    seen = trained_on(texts, trained)
    order = sorted(zip(seen, (keyed_hash(seed, text) for text in texts), texts, strict=True))
    some = [text for _, _, text in order[:_TEXTS]]
    return [some[place] for place in np.unique(near_identical_to(some)).tolist()]


def _drawn_pairs(texts: Sequence[str], vectors: Sequence[np.ndarray], seed: int, source: str) -> pl.DataFrame:
    """text1, text2, and the mean cosine as `label`; `vectors` are each model's, of length 1 (text, dim)."""
    if len(texts) < 2:
        raise DataError("fewer than two different texts, so there are no pairs to judge", path=source)
    one, other = np.triu_indices(len(texts), 1)
    near = np.stack([(matrix @ matrix.T)[one, other] for matrix in vectors]).mean(axis=0)
    some = np.argsort(-near, kind="stable")[: _NEAREST * len(texts)]
    one, other, near = one[some], other[some], near[some]
    bands = np.digitize(near, np.linspace(near[-1], near[0], _BANDS + 1)[1:-1])
    shuffled = np.random.default_rng(seed).permutation(len(near))
    of_band = [shuffled[bands[shuffled] == band].tolist() for band in reversed(range(_BANDS))]
    kept = list(_in_turns(range(len(near)), of_band, one, other))[:PAIRS]
    columns = {
        "text1": [texts[place] for place in one[kept]],
        "text2": [texts[place] for place in other[kept]],
    }
    return pl.DataFrame({**columns, "label": near[kept]})


def _in_turns(
    nearest: Sequence[int], bands: Sequence[Sequence[int]], one: np.ndarray, other: np.ndarray
) -> Iterator[int]:
    """In turns the nearest pair and one of each band, of those whose texts no pair before has."""
    used, first = set[int](), iter(nearest)
    remaining = [queue for band in bands for queue in (first, iter(band))]
    while remaining:
        for queue in [*remaining]:
            pair = next((pair for pair in queue if used.isdisjoint((one[pair], other[pair]))), None)
            if pair is None:
                remaining.remove(queue)
            else:
                used |= {one[pair], other[pair]}
                yield pair
