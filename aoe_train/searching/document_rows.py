"""The chunks of documents as rows of an index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import quote

import polars as pl

from aoe_train.encoding.embedders.embedder import Embedder, count_tokens, local_encoder
from aoe_train.encoding.source import joined
from aoe_train.searching.index_rows import TextRows
from pairkit.base.errors import ConfigError, DataError
from pairkit.extracting.chunks import Chunk, split_into_chunks
from pairkit.extracting.documents import Document

TEXT_COLUMNS = ("title", "text")
_MAX_TOKENS = 512  # of a chunk by default; the model may read fewer
_MAX_WORDS = 256  # of a chunk if the model's tokens are unknown
_SHORTEST = "a"  # one token
_COLUMNS = (*TEXT_COLUMNS, "file", "place", "anchor", "url")
_LINK_FIELDS = ("file", "page", "anchor", "line")
_FOLDER_PAGES = frozenset(("index", "readme"))  # found at the address of their folder


def chunk_rows(
    documents: Sequence[Document],
    embedder: Embedder,
    chunk_tokens: int | None,
    link: str | None,
) -> TextRows:
    """A row for each chunk, with title, text, file, lines, anchor and url; `link` was checked."""
    prompt = embedder.prompts.document
    encoder = local_encoder(embedder)
    longest = _MAX_WORDS
    if encoder is not None and encoder.settings.max_length:
        longest = encoder.settings.max_length
    if chunk_tokens is not None and chunk_tokens > longest:
        raise ConfigError(
            f"--chunk-tokens {chunk_tokens}: {embedder.name} reads at most {longest} tokens"
        )
    # The tokens that the model adds to a text: those of the prompt, and special ones.
    added = count_tokens(embedder, [_SHORTEST], prompt).item() - 1
    max_tokens = (chunk_tokens or min(longest, _MAX_TOKENS)) - added

    def count(texts: Sequence[str]) -> Sequence[int]:
        tokens = count_tokens(embedder, list(texts), prompt)
        return [*(tokens - added).tolist()]

    rows = []
    for document in documents:
        for chunk in split_into_chunks(document, count, max_tokens):
            place = _place(document, chunk)
            url = _url(document, chunk, link)
            rows.append(
                (chunk.title, chunk.text, document.name, place, chunk.anchor, url)
            )
    if not rows:
        raise DataError("the documents have no text; expected headings or paragraphs")
    frame = pl.DataFrame(rows, dict.fromkeys(_COLUMNS, pl.String), orient="row")
    if not any(frame["url"]):
        frame = frame.drop("url")
    return TextRows(frame, TEXT_COLUMNS, joined(frame, TEXT_COLUMNS))


def _place(document: Document, chunk: Chunk) -> str:
    """File and lines, such as "guide/install.md:12-30", or pages."""
    numbers = str(chunk.first)
    if chunk.last != chunk.first:
        numbers += f"-{chunk.last}"
    if document.unit == "line":
        return f"{document.name}:{numbers}"
    return f"{document.name}, {document.unit} {numbers}"


def check_link(link: str | None) -> None:
    """Refuse an invalid template of addresses."""
    try:
        (link or "").format(**dict.fromkeys(_LINK_FIELDS, ""))
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        fields = ", ".join(f"{{{name}}}" for name in _LINK_FIELDS)
        raise ConfigError(
            f"--link {link}: expected an address with {fields}"
        ) from error


def _url(document: Document, chunk: Chunk, link: str | None) -> str:
    """The address of a chunk; empty if unknown."""
    if link is None:
        if not document.url:
            return ""
        return f"{document.url}#{quote(chunk.anchor)}".rstrip("#")
    path = PurePosixPath(document.name)
    page = path.with_suffix("")
    if path.stem.lower() in _FOLDER_PAGES:
        page = path.parent
    values = {
        "file": str(path),
        "page": "" if page == PurePosixPath() else str(page),
        "anchor": chunk.anchor,
        "line": str(chunk.first),
    }
    quoted = {name: quote(value) for name, value in values.items()}
    return link.format(**quoted).rstrip("#")
