"""Captions of one image retrieve one another: Flickr30k, five captions an image.

```
DATA_DIR/flickr30k/flickr30k-{test,val}.tsv.gz      image, caption1 … caption5
```

Each image's first caption is the query; the candidates are all captions of the split but the query itself.
Source: arXiv 2309.12871, "Discussion of Text Retrieval". There the query is a candidate too and finds itself
first, so that "the top five are the five references" means here that the first four are the other four.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

from aoe_train._evaluate.resample import Means
from aoe_train._evaluate.tasks import Split, Verdict, check_rows
from aoe_train._evaluate.vectors import Vectors
from aoe_train._similarity import ROUNDING, comparable
from pairkit.errors import ConfigError, DataError
from pairkit.tables import first_row, read_table

_CAPTIONS = tuple(f"caption{number}" for number in range(1, 6))
_FILES: dict[Split, tuple[str, int]] = {
    "test": ("flickr30k/flickr30k-test.tsv.gz", 1000),
    "dev": ("flickr30k/flickr30k-val.tsv.gz", 1014),
}
_RECALL_AT = (1, 5, 10)
_DEPTH = max(_RECALL_AT)  # ranks beyond are all alike to the metrics
_BLOCK = 128  # queries at a time
_NO_FAISS = "retrieval needs faiss: pip install 'aoe-toolkit[eval]'"


@dataclass(frozen=True)
class CaptionTask:
    """Groups of captions that describe the same image.

    Attributes:
        captions: An image's captions together; the first is the query. All images have equally many.
    """

    name: str
    captions: Sequence[tuple[str, ...]]

    @property
    def texts(self) -> Sequence[str]:
        """All captions."""
        return [caption for image in self.captions for caption in image]

    @property
    def rows(self) -> Sequence[tuple[str, ...]]:
        """The captions of each image."""
        return self.captions

    def judge(self, vectors: Vectors) -> Verdict:
        """Means over the queries, all in [0, 1].

        * `strict_accuracy`: the query and its references, and nothing else, are found at the top.
        * `recall@k`: share of the references among the first k; with four, 0.25 at most at k = 1.
        * `ndcg@10`, `mrr@10`: gain of 1 for each reference; 1 / rank of the first, 0 beyond the tenth.

        Raises:
            ConfigError: faiss is missing, or the model compares its vectors by a distance.
        """
        if vectors.similarity not in ("cosine", "dot"):
            raise ConfigError(
                f"the model's vectors are compared by {vectors.similarity}, and retrieval ranks by cosine or"
                " dot; leave this suite out"
            )
        rows = vectors.rows(self.texts).reshape(len(self.captions), -1)
        found = vectors.matrix[rows.ravel()]
        ranks = _ranks(comparable(found, vectors.similarity), rows.shape[1])
        return Verdict(Means(_metrics(ranks)))


class Retrieval:
    """Flickr30k; see `aoe_train._evaluate.tasks.Suite`.

    Raises:
        ConfigError: faiss is missing.
    """

    tasks = ("Flickr30k",)
    extra = ()

    def __init__(self) -> None:
        if find_spec("faiss") is None:  # said before texts are encoded
            raise ConfigError(_NO_FAISS)

    def files(self, task: str, data_dir: Path, split: Split) -> tuple[Path, ...]:  # noqa: ARG002 - there is one
        """Where the captions lie."""
        return (data_dir / _FILES[split][0],)

    def read(self, task: str, files: Sequence[Path]) -> CaptionTask:
        """All images of a split.

        Raises:
            DataError: A column is missing, a caption empty, or not the published number of images.
        """
        (path,) = files
        frame = read_table(path)
        lacking = [name for name in _CAPTIONS if name not in frame.columns]
        if lacking:
            raise DataError(f"no column {', '.join(lacking)}; expected image, caption1 … caption5", path=path)
        captions = frame.select(_CAPTIONS)
        bad = captions.select(
            pl.any_horizontal(pl.all().str.strip_chars().fill_null("") == "").arg_true()
        ).to_series()
        if len(bad):
            raise DataError(
                "an empty caption; expected five an image", path=path, row=bad[0] + first_row(path)
            )
        published = next(images for name, images in _FILES.values() if Path(name).name == path.name)
        check_rows(len(captions), published, path)
        return CaptionTask(task, captions.rows())


def _ranks(vectors: np.ndarray, size: int) -> np.ndarray:
    """The rank of each reference among all candidates, ascending; exact up to `_DEPTH`, then only larger.

    A strange caption as near as a reference goes before it, so that a model which tells no text from another
    finds nothing.

    Args:
        vectors: (image * size, dim), of length one for cosines; an image's captions together.
        size: Captions an image.

    Returns:
        (image, size - 1), from 1.
    """
    found = _nearest(vectors, np.arange(0, len(vectors), size), _DEPTH + 2 * size)
    ranks = np.empty((len(found), size - 1))
    for start in range(0, len(found), _BLOCK):
        nearest = found[start : start + _BLOCK]
        image = np.arange(start, start + len(nearest))
        queries = vectors[image * size]
        references = vectors.reshape(-1, size, vectors.shape[1])[image, 1:]
        near = np.einsum("qd,qcd->qc", queries, vectors[nearest])
        near[nearest // size == image[:, None]] = -np.inf  # the query and its references are no strangers
        own = -np.sort(-np.einsum("qd,qrd->qr", queries, references), axis=1)
        before = (near[:, None, :] >= own[:, :, None] - ROUNDING).sum(axis=2)
        ranks[image] = 1 + before + np.arange(size - 1)
    return ranks


def _nearest(vectors: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """(query, k), the rows with the largest inner products, by exhaustive search in float32.

    Raises:
        ConfigError: faiss is missing.
    """
    try:
        import faiss
    except ImportError as error:
        raise ConfigError(_NO_FAISS) from error
    single = np.ascontiguousarray(vectors, np.float32)
    index = faiss.IndexFlatIP(single.shape[1])
    index.add(single)
    _, rows = index.search(single[queries], min(k, len(single)))
    return np.asarray(rows)


def _metrics(ranks: np.ndarray) -> dict[str, np.ndarray]:
    """Each query's figures from its references' ranks (query, reference), ascending."""
    references = ranks.shape[1]
    gains = np.where(ranks <= _DEPTH, 1 / np.log2(ranks + 1), 0).sum(axis=1)
    ideal = (1 / np.log2(np.arange(min(references, _DEPTH)) + 2)).sum()
    return {
        "strict_accuracy": ranks[:, -1] <= references,
        **{f"recall@{k}": (ranks <= k).mean(axis=1) for k in _RECALL_AT},
        f"ndcg@{_DEPTH}": gains / ideal,
        f"mrr@{_DEPTH}": np.where(ranks[:, 0] <= _DEPTH, 1 / ranks[:, 0], 0),
    }
