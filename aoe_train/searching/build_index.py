"""Builds an index; reuses the vectors of an earlier index in the same folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy import ndarray

from aoe_train.encoding.embedders.cached import PROBE_TEXT, same_model
from aoe_train.encoding.embedders.embedder import Embedder
from aoe_train.encoding.source import joined
from aoe_train.model.collection import RECIPES, WEIGHTS, Collection
from aoe_train.model.quantization import (
    Int8Vectors,
    Vectors,
    quantized,
    value_ranges,
)
from aoe_train.model.run_folder import OutputResult
from aoe_train.model.similarity import scaled_to_one
from aoe_train.searching.index import SearchIndex
from aoe_train.searching.index_rows import (
    ABOUT,
    HASH,
    PROBE,
    RANGES,
    ROWS,
    SEARCHED,
    VECTORS,
    WORDS,
    IndexContent,
    IndexManifest,
    TextRows,
    is_index,
    read_index,
)
from aoe_train.searching.nearest import (
    IndexKind,
    Searcher,
    build_faiss,
    check_kind,
    nearest,
)
from aoe_train.searching.ranking import SearchQuery
from aoe_train.settings.train_settings import Purpose
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import ConfigError, DataError, spoken_notes
from pairkit.base.printable import one_line
from pairkit.base.system.files import whole_folder, write_json
from pairkit.base.system.folders import REPLACE, check_same_run
from pairkit.dataset.frames import as_written
from pairkit.dataset.table_files import write_parquet
from pairkit.similarity.bm25 import Bm25

MANY = 200_000  # rows from which a faiss index is the default
# The recall of an approximate index is measured on this many texts and their nearest ones.
_RECALL_QUERIES = 200
_RECALL_RANK = 10
_SEED = 7
# Examples of texts of which words change the first result, and the texts among which they are looked for.
_EXAMPLES = 10
_EXAMPLE_QUERIES = 100
_SHOWN = 90  # characters of an example
_WORDS_MATTER = "words change the first result of these texts (`--by` and `--weight` of aoe search):"


class IndexOptions(NamedTuple):
    """How to index: the model's recorded name, and the kind and purpose, if they aren't the default."""

    model: str
    kind: IndexKind | None
    quantize: Literal["float32", "int8"]
    purpose: Purpose | Literal["none"] | None


@dataclass(frozen=True)
class FirstResults:
    """A text, and the other texts that are found first by vectors, and by vectors with words."""

    text: str
    by_model: str
    by_both: str


@dataclass(frozen=True)
class Indexed(OutputResult):
    """The result of indexing.

    Attributes:
        out: The folder.
        rows: Number of indexed texts.
        encoded: Number of texts that were encoded now; the other vectors were reused.
        missing: Number of texts that are only in the earlier index; `remove_missing` removes them.
        removed: Number of texts of the earlier index that were removed.
        empty: Number of rows without text, which were left out.
        dim: Dimensions of a vector.
        kind: The index of vectors: flat or hnsw.
        recall: The share of the ten nearest that the index finds for 200 of the rows; 1 if flat.
        bytes: Size of the folder.
        purpose: What it is searched for: group, search, match or None.
        examples: With another purpose than before, up to ten texts of which words change the first result.
    """

    out: Path
    rows: int
    encoded: int
    missing: int
    empty: int
    dim: int
    kind: IndexKind
    recall: float
    bytes: int
    purpose: Purpose | None
    examples: Sequence[FirstResults]
    removed: int

    @spoken_notes
    def notes(self) -> list[str]:
        """Number of texts, size and recall."""
        left_out = f", {self.empty:,} rows without text left out" if self.empty else ""
        purpose = f" for {self.purpose}" if self.purpose else ""
        notes = [
            f"{self.rows:,} texts{purpose}, {self.encoded:,} encoded now{left_out};"
            f" {self.bytes / self.rows:,.0f} bytes per text; {self.kind} finds {self.recall:.1%} of the ten"
            " nearest"
        ]
        if self.missing:
            notes.append(
                f"{self.missing:,} of the texts are not in this input; --remove-missing removes them"
            )
        if self.removed:
            notes.append(f"earlier texts removed: {self.removed:,}")
        if self.examples:
            notes.append(_WORDS_MATTER)
        for example in self.examples:
            notes += [
                f"  text  {one_line(example.text, _SHOWN)}",
                f"  model {one_line(example.by_model, _SHOWN)}",
                f"  both  {one_line(example.by_both, _SHOWN)}",
            ]
        return notes

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to search it, and how to find duplicates."""
        index = str(self.out)
        return [
            ("search it in a browser", ["aoe", "serve", "--index", index]),
            ("find near-duplicates", ["aoe", "duplicates", index]),
        ]


def check_place(out: Path) -> None:
    """Raise ConfigError if `out` is anything but an index or empty, before the input is read."""
    is_free = is_index(out) or (out.is_dir() and not any(out.iterdir()))
    if out.exists() and not is_free:
        raise ConfigError(
            f"{out}: exists, but isn't an index of `aoe index`; choose another folder"
        )


def build_index(
    rows: TextRows,
    embedder: Embedder,
    out: Path,
    options: IndexOptions,
    *,
    remove_missing: bool,
    fresh: bool,
    show: Listener,
) -> Indexed:
    """Write an index; the folder is complete or absent.

    Raises ConfigError if the index in `out` has other settings or another model, and `fresh` is false.
    """
    frame = _with_hashes(rows)
    probe = embedder.encode([PROBE_TEXT], embedder.prompts.document)
    earlier = None if fresh else _read_earlier(out, rows.columns, options, probe)
    absent = 0
    if earlier is not None:
        absent_rows = earlier.rows.join(
            frame, on=HASH, how="anti", maintain_order="left"
        )
        absent = absent_rows.height
        if not remove_missing:
            frame = _add_absent_rows(absent_rows, frame, out)
    before = earlier and earlier.about
    about = _manifest(frame, rows, options, before, dim=probe.shape[1])
    check_kind(about.kind)
    texts = joined(frame, rows.columns)
    matrix, encoded = _reuse_or_encode(texts, frame[HASH], embedder, earlier)
    with whole_folder(out) as folder:
        recall = _write_index(folder, about, frame, texts, matrix, show)
        np.save(folder / PROBE, probe, allow_pickle=False)
        files = filter(Path.is_file, folder.rglob("*"))
        size = sum(path.stat().st_size for path in files)
    examples: list[FirstResults] = []
    if about.purpose not in (None, before and before.purpose):
        examples = list(islice(_word_examples(SearchIndex(out)), _EXAMPLES))
    return Indexed(
        out,
        rows=about.rows,
        encoded=encoded,
        missing=0 if remove_missing else absent,
        empty=rows.empty,
        dim=about.dim,
        kind=about.kind,
        recall=recall,
        bytes=size,
        purpose=about.purpose,
        examples=examples,
        removed=absent if remove_missing else 0,
    )


def _read_earlier(
    out: Path, columns: Sequence[str], options: IndexOptions, probe: ndarray
) -> IndexContent | None:
    """The index in `out`, if any; raises ConfigError if its settings or its model differ from those requested."""
    if not (out / ABOUT).is_file():
        return None
    earlier = read_index(out)
    requested: dict[str, object] = {"text": [*columns], "vectors": options.quantize}
    if options.kind is not None:
        requested["kind"] = options.kind
    if not same_model(probe, earlier.probe):
        requested["model"] = f"other weights than {options.model}"
    check_same_run(out, earlier.about.model_dump(), requested, requested.keys())
    return earlier


def _manifest(
    frame: pl.DataFrame,
    rows: TextRows,
    options: IndexOptions,
    earlier: IndexManifest | None,
    *,
    dim: int,
) -> IndexManifest:
    """The manifest of an index of all rows; what the options leave open is as in the earlier index, if any."""
    kind: IndexKind = "flat"
    key = rows.key
    purpose = options.purpose
    if earlier is not None:
        kind = earlier.kind
        key = key or earlier.key
        purpose = purpose or earlier.purpose
    if frame.height >= MANY:
        kind = "hnsw"
    if key not in frame.columns:  # the rows that had it were removed
        key = None
    searched_for = None if purpose == "none" else purpose
    weight = WEIGHTS["bm25"]
    if searched_for is not None:
        weight = RECIPES[searched_for].weight
    return IndexManifest(
        model=options.model,
        text=[*rows.columns],
        rows=frame.height,
        dim=dim,
        vectors=options.quantize,
        kind=options.kind or kind,
        weight=weight,
        purpose=searched_for,
        key=key,
    )


def _write_index(
    folder: Path,
    about: IndexManifest,
    frame: pl.DataFrame,
    texts: list[str],
    matrix: ndarray,
    show: Listener,
) -> float:
    """Write the rows, vectors, words and manifest of an index; returns its recall."""
    write_parquet(folder / ROWS, frame)
    vectors = _save_vectors(matrix, about.vectors, folder, VECTORS)
    searched = vectors
    if about.purpose is not None:
        show(Progress(f"compare texts ({about.purpose})"))
        transformed = Collection(vectors, about.purpose).transform(matrix)
        searched = _save_vectors(transformed, about.vectors, folder, SEARCHED)
    show(Progress("index words"))
    (folder / WORDS).mkdir()
    if about.key is not None:  # keys are also searched as words
        keys = as_written(frame[about.key]).fill_null("")
        texts = [f"{key} {text}" for key, text in zip(keys, texts, strict=True)]
    Bm25(texts).save(folder / WORDS)
    show(Progress(f"index vectors ({about.kind})"))
    recall = 1.0
    if about.kind != "flat":
        index = build_faiss(searched, folder)
        recall = measured_recall(searched, Searcher(searched, index))
    about = about.model_copy(update={"recall": recall})
    write_json(folder / ABOUT, about.model_dump(mode="json"))
    return recall


def _word_examples(index: SearchIndex) -> Iterator[FirstResults]:
    """Texts of which words change the first result."""
    shuffled = np.random.default_rng(_SEED).permutation(len(index))
    for place in shuffled[:_EXAMPLE_QUERIES]:
        (text,) = index.texts([place])
        (vector,) = index.searched[place : place + 1]
        # If the text itself were ranked, it would set the scale of the scores by words.
        others = np.delete(np.arange(len(index)), place)
        by_both = SearchQuery(text, vector, 1, "both", allowed=others)
        by_model = by_both._replace(by="model")
        ranked = index.ranker.ranked([by_model, by_both])
        first = index.texts([place for rows in ranked for place in rows.places])
        if len(set(first)) == 2:
            yield FirstResults(text, *first)


def _save_vectors(
    matrix: ndarray,
    quantize: Literal["float32", "int8"],
    folder: Path,
    name: str,
) -> Vectors:
    """Write vectors in this format; returns them as they will be read."""
    if quantize == "float32":
        np.save(folder / name, matrix, allow_pickle=False)
        return matrix
    ranges = value_ranges([matrix])
    codes = quantized(matrix, "int8", ranges)
    np.save(folder / name, codes, allow_pickle=False)
    np.save(folder / RANGES[name], ranges, allow_pickle=False)
    return Int8Vectors(codes, ranges)


def measured_recall(vectors: Vectors, searcher: Searcher) -> float:
    """A searcher's recall of the ten nearest, for a sample of the vectors."""
    sample = np.random.default_rng(_SEED).permutation(len(vectors))[:_RECALL_QUERIES]
    queries = vectors[np.sort(sample)]
    # The first neighbour is the query itself.
    exact = nearest(vectors, queries, _RECALL_RANK + 1).places[:, 1:]
    approximate = searcher.nearest(queries, _RECALL_RANK + 1).places
    is_found = (exact[:, :, None] == approximate[:, None]).any(axis=2)
    is_row = exact >= 0
    return float((is_found & is_row).sum() / max(is_row.sum(), 1))


def _with_hashes(rows: TextRows) -> pl.DataFrame:
    """The rows with the hash of each text; raises DataError if they have another column of this name."""
    encoded = (text.encode("utf-8", "surrogatepass") for text in rows.texts)
    digests = [sha256(text).hexdigest() for text in encoded]
    # The rows of an index have this column, with the same hashes.
    if HASH in rows.frame.columns and rows.frame[HASH].to_list() != digests:
        raise DataError(f"the column {HASH} is reserved for hashes of texts; rename it")
    return rows.frame.with_columns(pl.Series(HASH, digests))


def _add_absent_rows(
    absent_rows: pl.DataFrame, frame: pl.DataFrame, out: Path
) -> pl.DataFrame:
    """The rows that only an earlier index has, then the new rows; raises ConfigError for other types."""
    try:
        return pl.concat([absent_rows, frame], how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        raise ConfigError(
            f"{out}: has columns of other types ({one_line(str(error))}); {REPLACE}"
        ) from error


def _reuse_or_encode(
    texts: Sequence[str],
    hashes: pl.Series,
    embedder: Embedder,
    earlier: IndexContent | None,
) -> tuple[ndarray, int]:
    """Vectors of length 1, float32 (text, dim), and the number of newly encoded ones.

    int8 vectors of an earlier index are not reused: they would be rounded twice.
    """
    vector_of: dict[str, ndarray] = {}
    if earlier is not None and earlier.about.vectors == "float32":
        vector_of = dict(zip(earlier.rows[HASH], earlier.vectors[:], strict=True))
    new_texts = {
        digest: text
        for digest, text in zip(hashes, texts, strict=True)
        if digest not in vector_of
    }
    if new_texts:
        encoded = embedder.encode([*new_texts.values()], embedder.prompts.document)
        if not np.isfinite(encoded).all():
            raise DataError(
                f"{embedder.name}: some vectors contain NaN or infinity; check the model"
            )
        encoded = scaled_to_one(encoded)
        if len(encoded) == len(texts):
            return encoded, len(encoded)
        vector_of |= zip(new_texts, encoded, strict=True)
    return np.stack([vector_of[digest] for digest in hashes]), len(new_texts)
