"""Retrieval of captions of the same image: Flickr30k, five captions per image.

```
DATA_DIR/flickr30k/flickr30k-{test,val}.tsv.gz      image, caption1 … caption5
```

The first caption of each image is the query; the candidates are all other captions of the split. Source:
arXiv 2309.12871, "Discussion of Text Retrieval". There the query is also a candidate and ranks first, so its
"top five are the five references" means here that the first four are the other four.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from aoe_train import tasks
from pairkit.base.errors import ConfigError, DataError
from pairkit.dataset.reading.tables import first_row
from papers.suites.published import check_size, read_columns, table_path

_CAPTIONS = tuple(f"caption{number}" for number in range(1, 6))
# The file of each split, with its number of images.
_FILES = {
    "test": ("flickr30k/flickr30k-test.tsv", 1000),
    "validation": ("flickr30k/flickr30k-val.tsv", 1014),
}
_RECALL_AT = (1, 5, 10)
_DEPTH = max(_RECALL_AT)
_ROUNDING = 1e-12  # cosines that differ by less are equal
TASKS = ("Flickr30k",)


@dataclass(frozen=True)
class CaptionTask:
    """Groups of captions that describe the same image."""

    name: str
    rows: Sequence[tuple[str, ...]]

    @property
    def texts(self) -> Sequence[str]:
        """All captions."""
        return [caption for image in self.rows for caption in image]

    def measure(self, vectors: tasks.TaskVectors) -> tasks.MeanMetrics:
        """Means over the queries, in [0, 1].

        * `strict_accuracy`: the first ranks are exactly the references.
        * `recall@k`: share of the references among the first k; with four references at most 0.25 at k = 1.
        * `ndcg@10`, `mrr@10`: gain of 1 for each reference; 1 / rank of the first, 0 beyond the tenth.
        """
        if vectors.similarity not in ("cosine", "dot"):
            raise ConfigError(
                f"the model's similarity is {vectors.similarity}; retrieval needs cosine or dot"
            )
        found = vectors.matrix[vectors.rows(self.texts)].astype(np.float64)
        if vectors.similarity == "cosine":
            lengths = np.linalg.norm(found, axis=1, keepdims=True)
            found /= np.where(lengths > 0, lengths, 1)
        return tasks.MeanMetrics(_metrics(_ranks(found, len(self.rows[0]))))


def files(task: str, data_dir: Path, split: str) -> tuple[Path, ...]:  # noqa: ARG001 - there is one task
    """The file with the captions; it may be without `.gz`."""
    name, _ = _FILES[split]
    return (table_path(data_dir / name),)


def read(task: str, found: Sequence[Path]) -> CaptionTask:
    """All images of a split."""
    (path,) = found
    captions = read_columns(path, *_CAPTIONS)
    texts = pl.all().str.strip_chars().fill_null("")
    is_empty = pl.any_horizontal(texts == "")
    empty = captions.select(is_empty.arg_true()).to_series().to_list()
    if empty:
        raise DataError(
            "an empty caption; expected five", path=path, row=empty[0] + first_row(path)
        )
    images = {Path(name).name: count for name, count in _FILES.values()}
    check_size(path, len(captions), images[path.name.removesuffix(".gz")])
    return CaptionTask(task, captions.rows())


def _ranks(vectors: np.ndarray, size: int) -> np.ndarray:
    """The rank of each reference among all candidates: (query, reference), ascending.

    On a tie, captions of other images rank before a reference, so that a collapsed model finds nothing.
    """
    images = len(vectors) // size
    ranks = np.empty((images, size - 1))
    for image in range(images):
        start = image * size
        end = start + size
        near = vectors @ vectors[start]
        own = -np.sort(-near[start + 1 : end])
        near[start:end] = -np.inf
        is_before = near[None, :] >= own[:, None] - _ROUNDING
        others = is_before.sum(axis=1)
        ranks[image] = 1 + others + np.arange(size - 1)
    return ranks


def _metrics(ranks: np.ndarray) -> dict[str, np.ndarray]:
    references = ranks.shape[1]
    first = ranks[:, 0]
    gains = np.where(ranks <= _DEPTH, 1 / np.log2(ranks + 1), 0)
    best_ranks = 1 + np.arange(min(references, _DEPTH))
    ideal = (1 / np.log2(best_ranks + 1)).sum()
    return {
        "strict_accuracy": ranks[:, -1] <= references,
        **{f"recall@{k}": (ranks <= k).mean(axis=1) for k in _RECALL_AT},
        f"ndcg@{_DEPTH}": gains.sum(axis=1) / ideal,
        f"mrr@{_DEPTH}": np.where(first <= _DEPTH, 1 / first, 0),
    }
