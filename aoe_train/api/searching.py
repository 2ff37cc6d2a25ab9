"""Index and search texts: the functions behind `aoe index`, `aoe search` and `aoe duplicates`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from aoe_train.api.parameters import Index, IndexModel, Model, Number, RankBy, TextColumn, Weight
from pairkit.app.errors import ConfigError
from pairkit.app.flag import INPUT, OUTPUT, RUN, Flag
from pairkit.dataset.flags import Out

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
    texts: Annotated[Source, Flag(metavar="INPUT", positional=True)],
    *,
    model: Annotated[str | Path | Encoder, Model],
    out: Annotated[str | Path, Out],
    text_column: Annotated[str | Sequence[str] | None, TextColumn] = None,
    kind: Annotated[str | None, Flag(metavar="NAME", panel=OUTPUT)] = None,
    quantize: Annotated[str, Flag(metavar="NAME", panel=OUTPUT)] = "float32",
    cache: Annotated[bool, Flag(panel=RUN)] = True,
    progress: bool | Listener = True,
) -> Indexed:
    """Make texts searchable. Run it again to add new texts: known texts are not encoded twice.

    The index is a folder with the texts' rows, vectors and words. A killed call continues with the cached
    vectors.

    Args:
        texts: Texts: a txt, csv, tsv, jsonl or parquet file, or a folder. Also a Hub id; in Python also rows
            in memory. A txt file has one text per line. All columns are kept, and can be filtered by.
        model: A folder, a Hub id, minilm or smollm2. A static model too; in Python also an `Encoder`.
        out: The index's folder.
        text_column: A table's column, or a,b for several. Default: text, or title and body, or the only one.
        kind: flat or hnsw. flat compares every vector; hnsw is approximate (faiss). Default: flat; hnsw from
            200,000 texts on.
        quantize: Store vectors as float32 or int8. int8 takes a quarter of the bytes.
        cache: Keep vectors on disk, so that a killed run continues. They are in `$AOE_CACHE/vectors`.
        progress: Whether to show progress on stderr, or a function to be told of it.

    Returns:
        What was indexed, with the recall of the kind.

    Raises:
        ConfigError: `out` is not an index, unknown model or kind, or faiss is missing.
        DataError: No such column, no text, or a damaged model or index.
        RemoteError: The Hub could not be reached.
    """
    from aoe_train.model.quantization import named_quantize
    from aoe_train.searching.build import check_place, make
    from aoe_train.searching.nearest import KINDS
    from aoe_train.searching.text_rows import read_rows
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
        model: The model that made its vectors. Default: the recorded one.
        words_only: Search by words only, without loading the model.

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
    folder: Annotated[str | Path, Index],
    text: Annotated[str, Flag(metavar="TEXT", positional=True, optional=True)],
    *,
    top: Annotated[int, Flag("--top -n", metavar="N", panel=OUTPUT, main=True)] = 10,
    where: Annotated[
        Mapping[str, Any] | None, Flag(metavar="COLUMN=VALUE", panel=INPUT, main=True, repeat=True)
    ] = None,
    before: Annotated[
        Mapping[str, Any] | None, Flag(metavar="COLUMN[=VALUE]", panel=INPUT, main=True, repeat=True)
    ] = None,
    by: RankBy = "both",
    weight: Weight = None,
    model: IndexModel = None,
) -> list[IndexHit]:
    """Find texts of an index by meaning and words.

    For more than one search in Python, `open_index` loads the index once.

    Args:
        folder: What `aoe index` made.
        text: What to search for; on a command line - reads it from stdin.
        top: Number of hits.
        where: Only rows with this value, such as state=open; repeatable. In Python a mapping such as
            `{"state": "open"}`.
        before: Only rows with a smaller value, such as created_at=2015; repeatable. In Python a mapping. With
            --every a column only: smaller than the text's own value.
        by: both, model or words. model is by vectors, words is by BM25.
        weight: Weight of vectors beside words, from 0 to 1. Default: 0.65.
        model: The model that made the index. Default: the one that the index records.

    Raises:
        ConfigError: No such index or column, an unknown `by`; or see `open_index`.
        DataError: A blank text, or a damaged index.
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

    `model` is only needed if it has a separate query prompt; the texts are then encoded again with it.

    Args:
        folder: What `index` made.
        before: A column, such as `created_at`: a text finds only rows with a smaller value, so that the
            search is the one that was possible when the text was written. By default all other rows.
        top: Hits of each text, at most.
        by: both (vectors and BM25), model or words.
        weight: Weight of vectors beside words, from 0 to 1.
        model: The index's model, to apply its query prompt. Default: none is loaded.
        progress: Whether to show progress on stderr, or a function to be told of it.

    Raises:
        ConfigError: No such index or column, an unknown `by`, or a number out of range.
        DataError: A damaged index.
    """
    opened = open_index(folder, model=model, words_only=model is None)
    return opened.search_every(before=before, top=top, by=by, weight=weight, progress=progress)


def duplicates(
    folder: Annotated[str | Path, Index],
    *,
    least: Annotated[float | None, Flag(metavar="X", panel=RUN, main=True)] = None,
    against: Annotated[str | Path | None, Flag(metavar="INDEX", panel=INPUT, main=True)] = None,
    neighbours: Annotated[int | None, Number] = None,
    progress: bool | Listener = True,
) -> NearDuplicates:
    """Find near-duplicates in an index: pairs of texts with similar vectors, and the groups they form.

    Args:
        folder: What `aoe index` made.
        least: Minimum cosine of a pair, from -1 to 1. Default: 0.9.
        against: Look for the texts of this index instead of its own. It must have the same model.
        neighbours: Number of nearest texts to keep for each text. Default: 50.
        progress: Whether to show progress on stderr, or a function to be told of it.

    Raises:
        ConfigError: No index, indexes of two models, a number out of its range.
        DataError: A damaged index.
    """
    import polars as pl

    from aoe_train.evaluation.embedders.cached import same_model
    from aoe_train.searching.folder import read_probe
    from aoe_train.searching.index import SearchIndex
    from aoe_train.searching.near_duplicates import LEAST, NEIGHBOURS, NearDuplicates, alike
    from pairkit.app.progress import Display
    from pairkit.app.settings import argument

    if least is not None and not -1 <= least <= 1:
        raise ConfigError(f"least {least}: a cosine is from -1 to 1")
    if neighbours is not None and neighbours < 1:
        raise ConfigError(f"neighbours {neighbours}: expected at least 1")
    whole = SearchIndex(argument("folder", folder, Path), None)
    other = None if against is None else SearchIndex(argument("against", against, Path), None)
    if other is not None and not same_model(read_probe(whole.folder), read_probe(other.folder)):
        raise ConfigError(f"{other.folder}: made with another model than {whole.folder}")
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
