"""A sample of pairs of texts for people or LLMs to judge, by which two models are then compared.

The pairs that one model finds most similar contain that model's mistakes, which favours the other model. So
pairs are drawn by the mean cosine of all models. Half of them are the most similar pairs, because few texts
of a corpus mean the same; the others are spread over ten bands of lower similarity. No text is in two pairs,
so that the pairs are independent.
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
from aoe_train.searching.mining.run import digest_of, finished
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

_MAX_PAIRS = 400
_MAX_TEXTS = 4000  # all pairs of them are compared
_PAIRS_PER_TEXT = 20  # the most similar pairs, from which the sample is drawn
_BANDS = 10
_INTRODUCTION = """
Unjudged pairs of texts, sampled by `aoe sample`. `label` is the mean cosine of the models that took part. It
is not a judgement: do not evaluate a model by it.
"""


def sample_pairs(
    source: Source,
    models: Sequence[tuple[str | Path | Encoder, Encoder]],
    seed: int,
    out: Path | None,
    *,
    fresh: bool,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Sample the pairs and write them to `out`; `models` are pairs of a model's name and its encoder."""
    texts, name = sorted(set(read_rows(source).texts)), source_name(source)
    run = {
        "made_by": f"aoe sample (aoe-toolkit {__version__})",
        "settings": {"seed": seed},
        "inputs": {
            "data": hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest(),
            "model": [digest_of(encoder.identity()) for _, encoder in models],
        },
    }
    if out is not None and (statistics := finished(out, run, fresh=fresh)) is not None:
        return pl.read_parquet(out / shard("default", "test")), statistics
    hashes = [read_digests(find_folder(model)) for model, _ in models if isinstance(model, str | Path)]
    compared = _choose_texts(texts, [each for each in hashes if each is not None], seed)
    vectors = [encoder.encode(compared, normalize=True, progress=False) for _, encoder in models]
    pairs = _draw_pairs(compared, vectors, seed, name)
    statistics = {"pairs": pairs.height, "texts": len(texts), "compared_texts": len(compared)}
    if out is not None:
        configs = {"default": {"test": pairs}}
        sections = [("", _INTRODUCTION)]
        card = dataset_card(out.name, configs=card_files(configs), rows=pairs.height, sections=sections)
        write_dataset(out, configs, card=card, statistics=statistics, run=run)
    return pairs, statistics


def _choose_texts(texts: Sequence[str], training_hashes: Sequence[np.ndarray], seed: int) -> list[str]:
    """A random sample without near-duplicates; texts that no model was trained on come first."""
    seen = trained_on(texts, training_hashes)
    order = sorted(zip(seen, (keyed_hash(seed, text) for text in texts), texts, strict=True))
    chosen = [text for _, _, text in order[:_MAX_TEXTS]]
    return [chosen[index] for index in np.unique(near_identical_to(chosen)).tolist()]


def _draw_pairs(texts: Sequence[str], vectors: Sequence[np.ndarray], seed: int, source: str) -> pl.DataFrame:
    """text1, text2 and the mean cosine as `label`; `vectors` are each model's, of unit length (text, dim)."""
    if len(texts) < 2:
        raise DataError("fewer than two distinct texts; expected enough to form pairs", path=source)
    first, second = np.triu_indices(len(texts), 1)
    cosine = np.stack([(matrix @ matrix.T)[first, second] for matrix in vectors]).mean(axis=0)
    top = np.argsort(-cosine, kind="stable")[: _PAIRS_PER_TEXT * len(texts)]
    first, second, cosine = first[top], second[top], cosine[top]
    bands = np.digitize(cosine, np.linspace(cosine[-1], cosine[0], _BANDS + 1)[1:-1])
    shuffled = np.random.default_rng(seed).permutation(len(cosine))
    by_band = [shuffled[bands[shuffled] == band].tolist() for band in reversed(range(_BANDS))]
    drawn = list(_alternate(range(len(cosine)), by_band, first, second))[:_MAX_PAIRS]
    columns = {
        "text1": [texts[index] for index in first[drawn]],
        "text2": [texts[index] for index in second[drawn]],
    }
    return pl.DataFrame({**columns, "label": cosine[drawn]})


def _alternate(
    by_cosine: Sequence[int], by_band: Sequence[Sequence[int]], first: np.ndarray, second: np.ndarray
) -> Iterator[int]:
    """Alternate between the most similar pair and one of each band, skipping pairs with a used text."""
    used, nearest = set[int](), iter(by_cosine)
    queues = [queue for band in by_band for queue in (nearest, iter(band))]
    while queues:
        for queue in [*queues]:
            pair = next((pair for pair in queue if used.isdisjoint((first[pair], second[pair]))), None)
            if pair is None:
                queues.remove(queue)
            else:
                used |= {first[pair], second[pair]}
                yield pair
