"""The languages of texts, and a backbone that knows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl

_TEXTS = 200  # sampled texts
_CHARS = 1000  # characters of each
_ROWS = 2000  # of a dataset, from which texts are sampled
# A language is named if this share of the texts has it, as short texts are often mistaken.
_MIN_SHARE = 0.1
_ENGLISH_BACKBONE = "minilm"
# It needs no prompt.
_MULTILINGUAL_BACKBONE = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"


def train_command(dataset: Path) -> list[str]:
    """A command that trains on a dataset's folder."""
    texts = []
    for table in sorted(dataset.rglob("*.parquet"))[:1]:
        texts = pl.read_parquet(table, columns=[0], n_rows=_ROWS).to_series().to_list()
    backbone = backbone_for(texts)
    return [
        "aoe",
        "train",
        "--data",
        str(dataset),
        "--backbone",
        backbone,
        "--out",
        "model",
    ]


def backbone_for(texts: Sequence[str]) -> str:
    """The backbone for texts: a multilingual one unless they are English."""
    most_frequent = languages(texts)[:1]
    return (
        _ENGLISH_BACKBONE if most_frequent in ([], ["en"]) else _MULTILINGUAL_BACKBONE
    )


def languages(texts: Sequence[str]) -> list[str]:
    """ISO codes of the texts' languages, the most frequent first; empty if they can't be detected."""
    sample = sampled(texts)
    try:
        import py3langid

        counts = Counter(py3langid.classify(text)[0] for text in sample)
    except (ImportError, OSError):
        # py3langid isn't installed, or has no room for its temporary file.
        return []
    min_count = _MIN_SHARE * len(sample)
    return [code for code, count in counts.most_common() if count >= min_count]


def sampled(texts: Sequence[str]) -> list[str]:
    """The beginnings of some of the texts."""
    return [text[:_CHARS] for text in texts[:: max(1, len(texts) // _TEXTS)]]
