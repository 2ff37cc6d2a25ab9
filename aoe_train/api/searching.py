"""Indexes of texts, as `aoe index`, `aoe search` and `aoe duplicates` use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aoe_train.evaluation.embedders.embedder import Embedder
    from aoe_train.model.encoder import Encoder
    from aoe_train.searching.batch_search import BatchSearch
    from aoe_train.searching.build import Indexed
    from aoe_train.searching.index import IndexHit, SearchIndex
    from aoe_train.searching.near_duplicates import NearDuplicates
    from pairkit.app.progress import Listener
    from pairkit.dataset.in_memory import Source


def index(
    texts: Source,
    *,
    model: str | Path | Encoder,
    out: str | Path,
    text_column: str | Sequence[str] | None = None,
    kind: str | None = None,
    quantize: str = "float32",
    cache: bool = True,
    progress: bool | Listener = True,
) -> Indexed:
    """Make texts searchable: a folder with their rows, vectors and words.

    Where `out` is such an index already, only texts that it lacks are encoded. A killed call continues
    with the vectors that the cache has.

    Args:
        texts: A file (one text per line, csv, tsv, jsonl, parquet), a folder or a Hub id, or rows in memory.
            All columns are kept, and can be filtered by.
        model: What makes the vectors: what `evaluate` takes, a static model among them.
        out: The index's folder.
        text_column: What makes a text, a column or several; by default `text`, else title and body (or
            summary and description), else the only column.
        kind: flat looks at every vector; hnsw looks at some, by faiss. By default flat, and hnsw from 200,000
            texts on.
        quantize: float32, or int8: a quarter of the bytes.
        cache: Keep vectors below `$AOE_CACHE/vectors`, and take those that are there.
        progress: Shown on stderr, or not, or told to a function.

    Returns:
        What was indexed, with the recall of the kind.

    Raises:
        ConfigError: `out` is no index, no such model or kind, or faiss is missing.
        DataError: No such column, no text, or a damaged model or index.
        RemoteError: The Hub could not be reached.
    """
    from aoe_train.model.quantization import named_quantize
    from aoe_train.searching.build import check_place, make
    from aoe_train.searching.nearest import KINDS
    from aoe_train.searching.text_rows import read_rows
    from pairkit.app.errors import ConfigError
    from pairkit.app.progress import Display
    from pairkit.app.settings import argument, between_commas

    folder, codes = argument("out", out, Path), named_quantize(quantize)
    if codes not in ("float32", "int8"):
        raise ConfigError(f"quantize {quantize}: an index has float32 or int8")
    found = next((known for known in KINDS if known == kind), None)
    if kind is not None and found is None:
        raise ConfigError(f"kind {kind!r}: expected {', '.join(KINDS)}")
    check_place(folder)
    rows = read_rows(texts, between_commas(text_column))
    with Display(progress) as show:
        embedder = _embedder(model, cache=cache, progress=show)
        return make(rows, embedder, folder, model=_named(model), kind=found, quantize=codes, show=show)


def open_index(
    folder: str | Path, *, model: str | Path | Encoder | None = None, words_only: bool = False
) -> SearchIndex:
    """Open an index to search it any number of times.

    Args:
        folder: What `index` made.
        model: The model that made its vectors; by default where it was then.
        words_only: Open it without its model, to search by words.

    Raises:
        ConfigError: No index, no such model, or another model than that of its vectors.
        DataError: A damaged index or model.
        RemoteError: The Hub could not be reached.
    """
    from aoe_train.searching.folder import read_manifest
    from aoe_train.searching.index import SearchIndex
    from pairkit.app.settings import argument

    home = argument("folder", folder, Path)
    if words_only:
        return SearchIndex(home, None)
    named = read_manifest(home).model if model is None else model
    return SearchIndex(home, _embedder(named, cache=False, progress=False))


def search(
    folder: str | Path,
    text: str,
    *,
    top: int = 10,
    where: Mapping[str, Any] | None = None,
    before: Mapping[str, Any] | None = None,
    by: str = "both",
    weight: float | None = None,
    model: str | Path | Encoder | None = None,
) -> list[IndexHit]:
    """The texts of an index that fit best; `open_index` for more than one search.

    Args:
        folder: What `index` made.
        text: What is searched for.
        top: How many, at most.
        where: Columns with the value that a row has to have, such as `{"state": "open"}`.
        before: Columns with a value that a row's has to be smaller than, such as `{"created_at": "2024"}`.
        by: both: vectors and BM25; or model, or words alone.
        weight: How much vectors count beside words, from 0 to 1.
        model: See `open_index`.

    Raises:
        ConfigError: No index, column or way; or see `open_index`.
        DataError: A text of blanks, or a damaged index.
    """
    opened = open_index(folder, model=model, words_only=by == "words")
    return opened.search(text, top=top, where=where, before=before, by=by, weight=weight)


def search_every(
    folder: str | Path,
    *,
    before: str | None = None,
    top: int = 20,
    by: str = "both",
    weight: float | None = None,
    model: str | Path | Encoder | None = None,
    progress: bool | Listener = True,
) -> BatchSearch:
    """Search for every text of an index in the index itself, by the vectors that it has.

    Only a model with a prompt of its own for what is searched for has to be given, and encodes texts anew.

    Args:
        folder: What `index` made.
        before: A column, such as `created_at`: a text finds only rows with a smaller value, so that the
            search is the one that was possible when the text was written. By default all other rows.
        top: Hits of each text, at most.
        by: both: vectors and BM25; or model, or words alone.
        weight: How much vectors count beside words, from 0 to 1.
        model: One with such a prompt; by default none is loaded.
        progress: Shown on stderr, or not, or told to a function.

    Raises:
        ConfigError: No index, column or way, or a number out of its range.
        DataError: A damaged index.
    """
    opened = open_index(folder, model=model, words_only=model is None)
    return opened.search_every(before=before, top=top, by=by, weight=weight, progress=progress)


def duplicates(
    folder: str | Path,
    *,
    least: float | None = None,
    against: str | Path | None = None,
    neighbours: int | None = None,
    progress: bool | Listener = True,
) -> NearDuplicates:
    """Texts of an index that say nearly the same: pairs whose vectors are near, and the groups they make.

    Args:
        folder: What `index` made.
        least: The lowest cosine of a pair, from -1 to 1; by default 0.9.
        against: Another index of the same model, for each of whose texts near ones in `folder` are looked
            for; by default the index is compared with itself.
        neighbours: How many neighbours of a text are looked at; by default 50.
        progress: Shown on stderr, or not, or told to a function.

    Raises:
        ConfigError: No index, indexes of two models, a number out of its range.
        DataError: A damaged index.
    """
    import polars as pl

    from aoe_train.evaluation.embedders.cached import same_model
    from aoe_train.searching.folder import read_probe
    from aoe_train.searching.index import SearchIndex
    from aoe_train.searching.near_duplicates import LEAST, NEIGHBOURS, NearDuplicates, alike
    from pairkit.app.errors import ConfigError
    from pairkit.app.progress import Display
    from pairkit.app.settings import argument

    if least is not None and not -1 <= least <= 1:
        raise ConfigError(f"least {least}: a cosine is from -1 to 1")
    if neighbours is not None and neighbours < 1:
        raise ConfigError(f"neighbours {neighbours}: expected at least 1")
    whole = SearchIndex(argument("folder", folder, Path), None)
    other = None if against is None else SearchIndex(argument("against", against, Path), None)
    if other is not None and not same_model(
        read_probe(whole.folder, whole.about), read_probe(other.folder, other.about)
    ):
        raise ConfigError(f"{other.folder}: its vectors are another model's than those of {whole.folder}")
    with Display(progress) as show:
        found, full = alike(
            whole.vectors,
            whole.searcher(),
            None if other is None else other.vectors,
            LEAST if least is None else least,
            neighbours=neighbours or NEIGHBOURS,
            show=show,
        )
    return NearDuplicates(pl.DataFrame(dict(found)), whole if other is None else other, whole, full)


def _embedder(model: str | Path | Encoder, *, cache: bool, progress: bool | Listener) -> Embedder:
    from aoe_train.evaluation.embedders.open import open_embedder

    named = str(model) if isinstance(model, str | Path) else model
    return open_embedder(named, cache=cache, progress=progress)


def _named(model: str | Path | Encoder) -> str:
    return str(model) if isinstance(model, str | Path) else "an Encoder in memory"
