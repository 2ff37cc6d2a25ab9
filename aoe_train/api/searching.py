"""The functions behind `aoe index`, `aoe search` and `aoe duplicates`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from aoe_train.api.parameters import MODEL, notes, optional, options
from pairkit.base.cli.options import (
    INPUT,
    OUTPUT,
    RUN,
    Option,
    Request,
    parameter,
    takes,
)
from pairkit.base.cli.progress import Display, Listener
from pairkit.base.errors import ConfigError

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.searching.build_index import Indexed
    from aoe_train.searching.index import BatchSearch, SearchHits, SearchIndex
    from aoe_train.searching.similar_texts import NearDuplicates
    from pairkit.dataset.reading.in_memory import Source

_INDEX_MODEL = replace(
    options["model"],
    text="The model that made the index. Default: the one that the index records.",
    panel=MODEL,
    main=False,
)


class IndexRequest(Request, shared=options):
    """The arguments of `index`."""

    texts: Source
    _: KW_ONLY
    model: str | Path | Encoder
    out: str | Path
    columns: Mapping[str, str] | None = None
    purpose: str | None = optional(metavar="NAME", panel=RUN, main=True)
    kind: str | None = optional(metavar="NAME", panel=OUTPUT)
    quantize: str = parameter(default="float32", metavar="NAME", panel=OUTPUT)
    remove_missing: bool = parameter(default=False, panel=OUTPUT)
    chunk_tokens: int | None = optional(panel=INPUT)
    link: str | None = optional(metavar="ADDRESS", panel=INPUT)
    fresh: bool = False
    cache: bool = True
    progress: bool | Listener = True


@takes(IndexRequest)
def index(request: IndexRequest) -> Indexed:
    """Build a search index of texts or documents. Run it again to add some: known texts aren't encoded twice.

    The index is a folder with the texts' rows, vectors and words. The row of a known text is replaced by its
    row in the input. A killed call continues with the cached vectors.

    Documents (Markdown, HTML, reStructuredText, text; PDF and DOCX with the extra `documents`) are indexed in
    chunks with the columns title (path of headings), text, file, place (file and lines), anchor and url. The
    index of a folder has only what the folder has now.

    Args:
        texts: A .txt file (one text per line), a table, a folder of tables or documents, or a Hub id. In
            Python also rows in memory. All columns are stored, and `search` can filter by them.
        out: Folder of the index.
        columns: Columns with the text, as text=NAME, title=NAME,body=NAME or question=NAME,answer=NAME, which
            are joined in this order, and the column that identifies a row, as id=NAME, which is also searched
            as words. Default: recognised; rows without such a column are identified by their number in the
            file.
        purpose: What the texts are searched for: group (texts of one group, such as a topic or an intent),
            search (texts on the same matter), match (the same item, such as a product or a bug) or none (the
            model's vectors as they are). It moves the vectors by those of the other texts, and weights words.
            Another purpose encodes nothing again, except for int8. Default: that of an earlier index in
            `out`, else none.
        kind: Kind of index: flat (compares every vector) or hnsw (approximate, faiss). Default: flat; hnsw
            from 200,000 texts on.
        quantize: Format of the stored vectors: float32 or int8. int8 takes a quarter of the space.
        remove_missing: Remove texts of an earlier index in `out` that are not in this input.
        chunk_tokens: Documents: most tokens of a chunk. Default: what the model reads, at most 512.
        link: Documents: the address of a chunk, such as `https://example.org/{page}#{anchor}`, from its
            {file}, {page} (the file without its ending), {anchor} and {line}. Default: the one that an HTML
            page gives as its own.
        fresh: Replace the index in `out` instead of adding to it.
        cache: Cache vectors in `$AOE_CACHE/vectors`, so that a killed run continues.

    Returns:
        Counts, and the recall of an approximate index.

    Raises:
        ConfigError: `out` is not an index or has one with other settings, unknown model or kind, or faiss is
            missing.
        DataError: Missing column, no text, or a damaged model or index.
        RemoteError: The Hub could not be reached.
    """
    from pydantic import Field

    from aoe_train.encoding.embedders.cached import CachedEmbedder, open_model
    from aoe_train.encoding.embedders.embedder import local_encoder, refuse_options
    from aoe_train.model.tokenizer import language_warning
    from aoe_train.searching.build_index import IndexOptions, build_index, check_place
    from aoe_train.searching.index_rows import check_link, chunk_rows, read_rows
    from aoe_train.searching.nearest import IndexKind
    from aoe_train.settings.train_settings import Purpose
    from pairkit.base.settings import argument
    from pairkit.dataset.reading.tables import is_lines
    from pairkit.extracting.documents import document_files, read_documents

    texts = request.texts
    folder = argument("out", request.out, Path)
    vector_format = argument("quantize", request.quantize, Literal["float32", "int8"])
    kind = argument("kind", request.kind, IndexKind | None)
    purpose = argument("purpose", request.purpose, Purpose | Literal["none"] | None)
    max_tokens = argument(
        "chunk_tokens", request.chunk_tokens, Annotated[int, Field(ge=16)] | None
    )
    link = argument("link", request.link, str | None)
    check_place(folder)
    check_link(link)
    roles = argument("columns", request.columns, dict[str, str] | None)
    has_text_per_line = isinstance(texts, str | Path) and is_lines(Path(texts))
    has_documents = not has_text_per_line and document_files(texts) is not None
    if not has_documents:
        refuse_options("texts in a table", chunk_tokens=max_tokens, link=link)
    with Display(request.progress) as show:
        if has_documents:
            documents, _ = read_documents(texts, roles, show)
        else:
            rows = read_rows(texts, roles)
        opened = open_model(request.model)
        embedder = CachedEmbedder(opened, store=request.cache, show=show)
        if has_documents:
            rows = chunk_rows(documents, embedder, max_tokens, link)
        encoder = local_encoder(embedder)
        if encoder is not None:
            warning = language_warning(encoder.tokenizer, rows.texts, embedder.name)
            if warning:
                notes(request.progress)(warning)
        return build_index(
            rows,
            embedder,
            folder,
            IndexOptions(
                _recorded_name(request.model, folder), kind, vector_format, purpose
            ),
            remove_missing=request.remove_missing or has_documents,
            fresh=request.fresh,
            show=show,
        )


def _recorded_name(model: str | Path | Encoder, index_folder: Path) -> str:
    """The model's name in an index; a relative path is that from the index, which any folder can use."""
    from aoe_train.model.backbones.packaged import PACKAGED
    from aoe_train.searching.index_rows import IN_MEMORY

    if not isinstance(model, str | Path):
        return IN_MEMORY
    path = Path(model)
    if str(model) in PACKAGED or path.is_absolute() or not path.is_dir():
        return str(model)
    return os.path.relpath(path.resolve(), index_folder.resolve())


@options()
def open_index(
    folder: str | Path,
    *,
    model: str | Path | Encoder | None = None,
    words_only: bool = False,
) -> SearchIndex:
    """Open an index for repeated searches.

    Args:
        model: The model that made its vectors. Default: the recorded one.
        words_only: Search by words only, without loading the model.

    Raises:
        ConfigError: No index, no such model, or not the model that made the vectors.
        DataError: A damaged index or model.
        RemoteError: The Hub could not be reached.
    """
    from aoe_train.encoding.embedders.cached import open_model
    from aoe_train.searching.index import SearchIndex
    from pairkit.base.settings import argument

    index = SearchIndex(argument("folder", folder, Path))
    if not words_only:
        index.use(open_model(index.recorded_model() if model is None else model))
    return index


@options(
    text=Option(metavar="TEXT", positional=True, optional=True),
    top=Option(short="-n", panel=OUTPUT, main=True),
    where=Option(metavar="COLUMN=VALUE", panel=INPUT, main=True, repeat=True),
    before=Option(metavar="COLUMN[=VALUE]", panel=INPUT, main=True, repeat=True),
    model=_INDEX_MODEL,
)
def search(
    folder: str | Path,
    text: str,
    *,
    top: int = 10,
    where: Mapping[str, Any] | Sequence[str] | None = None,
    before: Mapping[str, Any] | Sequence[str] | None = None,
    by: str = "both",
    weight: float | None = None,
    model: str | Path | Encoder | None = None,
) -> SearchHits:
    """Find texts of an index by meaning and words.

    Args:
        text: Text to search for; on the command line, - reads it from stdin.
        top: Maximum number of hits.
        where: Only rows with this value, such as state=open; repeatable. In Python a list of these, or a
            mapping such as `{"state": "open"}`.
        before: Only rows with a smaller value, such as created_at=2015; repeatable. In Python a list or a
            mapping. With --every only a column: rows with a smaller value than the searched text's row.

    Raises:
        ConfigError: No such index or column, an unknown `by`; or see `open_index`.
        DataError: A blank text, or a damaged index.
    """
    from aoe_train.searching.ranking import checked_query

    query = checked_query(text, by, top, weight, where, before)
    search_index = open_index(folder, model=model, words_only=query.by == "words")
    (hits,) = search_index.search_together([query])
    return hits


@options()
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
    """Search an index for each of its own texts, with the stored vectors.

    Args:
        before: A column, such as `created_at`: a text finds only rows with a smaller value, as if it were
            searched for when it was written. Default: all other rows.
        top: Maximum number of hits of each text.
        model: The index's model, only needed if it has a separate query prompt; the texts are then encoded
            again with that prompt. Default: none is loaded.

    Raises:
        ConfigError: No such index or column, an unknown `by`, or a number out of range.
        DataError: A damaged index.
    """
    search_index = open_index(folder, model=model, words_only=model is None)
    return search_index.search_every(
        before=before, top=top, by=by, weight=weight, progress=progress
    )


@options(
    min_cosine=Option(panel=RUN, main=True),
    against=Option(metavar="INDEX", panel=INPUT, main=True),
    neighbours=Option(panel=RUN),
)
def duplicates(
    folder: str | Path,
    *,
    min_cosine: float | None = None,
    against: str | Path | None = None,
    neighbours: int = 50,
    progress: bool | Listener = True,
) -> NearDuplicates:
    """Find near-duplicates in an index: pairs of texts with similar vectors, and the groups they form.

    The model's vectors are compared, whatever the purpose of the index. With a purpose, every text is
    compared with every other, also in hnsw.

    Args:
        min_cosine: Minimum cosine of a pair, from -1 to 1. Default: by the cosines of these texts.
        against: Compare with the texts of this index instead. It must have the same model.
        neighbours: Maximum number of neighbours per text.

    Raises:
        ConfigError: No index, indexes of different models, or a number out of range.
        DataError: A damaged index.
    """
    from pydantic import Field, PositiveInt

    from aoe_train.encoding.embedders.cached import same_model
    from aoe_train.searching.index import SearchIndex
    from aoe_train.searching.nearest import Searcher, TextComparison
    from aoe_train.searching.similar_texts import NearDuplicates
    from pairkit.base.settings import argument

    minimum = argument(
        "min_cosine", min_cosine, Annotated[float, Field(ge=-1, le=1)] | None
    )
    argument("neighbours", neighbours, PositiveInt)
    index = SearchIndex(argument("folder", folder, Path))
    queries = index
    if against is not None:
        queries = SearchIndex(argument("against", against, Path))
    if not same_model(index.probe, queries.probe):
        raise ConfigError(
            f"{queries.folder}: made with another model than {index.folder}"
        )
    if index.about.purpose is None:
        searcher = index.ranker.searcher
    else:  # the index searches moved vectors
        searcher = Searcher(index.vectors)
    texts = TextComparison(searcher, queries.vectors, within=against is None)
    if minimum is None:
        minimum = texts.usual_minimum()
    with Display(progress) as show:
        pairs, full = texts.similar_pairs(minimum, neighbours=neighbours, show=show)
    return NearDuplicates(
        pairs=pairs,
        queries=queries,
        index=index,
        full=full,
        min_cosine=minimum,
        chosen=min_cosine is None,
        highest=None if pairs.height else texts.highest_cosine(),
    )
