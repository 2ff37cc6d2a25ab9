"""Read documents from rows of a table, or from the files of a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.text_lines import read_text
from pairkit.dataset.negative_columns import ROW
from pairkit.dataset.reading.columns import as_text, document_roles
from pairkit.dataset.reading.in_memory import Source, contents_of, source_name
from pairkit.dataset.reading.parts import parts_of
from pairkit.dataset.reading.tables import is_table
from pairkit.extracting.documents import Document, html_blocks, markdown_blocks, plain_blocks

MOST_BYTES = 4 << 20  # of a file; a book has about 1 MiB
_MARKDOWN, _HTML, _PLAIN = (".md", ".markdown", ".mdx"), (".html", ".htm", ".xhtml"), (".txt", ".text")
_CARD = "README.md"  # describes a folder of tables and isn't a document


def read_documents(
    source: Source, columns: Mapping[str, str] | None, show: Listener
) -> tuple[list[Document], Counter[str]]:
    """Read all documents; also count dropped files by reason."""
    dropped: Counter[str] = Counter()
    files = _files(source, dropped)
    parsed = _of_table(source, columns) if files is None else _of_files(files, source, columns, dropped, show)
    documents = list(parsed)
    if not documents:
        why = ", ".join(f"{reason} {count:,}" for reason, count in sorted(dropped.items()))
        raise DataError(
            f"no documents ({why or 'nothing in it'}); give a table, or Markdown, HTML or text files",
            path=source_name(source),
        )
    return documents, dropped


def _files(source: Source, dropped: Counter[str]) -> list[Path] | None:
    """The documents in a folder, or a single file; None for tables."""
    source = contents_of(source)
    if not isinstance(source, str | Path):
        return None
    path = Path(source)
    if path.is_file():
        return [path] if path.suffix.lower() in (*_MARKDOWN, *_HTML, *_PLAIN) else None
    if not path.is_dir():
        return None
    files: list[Path] = []
    others = Counter[str]()
    has_tables = False
    for file in sorted(path.rglob("*")):
        is_hidden = any(part.startswith(".") for part in file.relative_to(path).parent.parts)
        if is_hidden or (file.is_dir() and not file.is_symlink()):
            continue
        if file.suffix.lower() in (*_MARKDOWN, *_HTML, *_PLAIN) and file.is_file():
            files.append(file)
        else:
            others["another_kind_of_file"] += 1
            has_tables = has_tables or is_table(file)
    if has_tables and all(file == path / _CARD for file in files):
        return None
    dropped.update(others)
    return files


def _of_files(
    files: list[Path],
    source: Source,
    columns: Mapping[str, str] | None,
    dropped: Counter[str],
    show: Listener,
) -> Iterator[Document]:
    if columns:
        raise ConfigError(f"{source_name(source)}: --columns is only for tables; leave it out")
    home = Path(str(source)) if Path(str(source)).is_dir() else Path(str(source)).parent
    for done, file in enumerate(files):
        show(Progress("read documents", done, len(files)))
        if file.stat().st_size > MOST_BYTES:
            dropped["too_large"] += 1
            continue
        try:
            text = read_text(file, MOST_BYTES)
        except DataError:
            dropped["not_utf8"] += 1
            continue
        # A file name may be invalid Unicode.
        name = file.relative_to(home).as_posix().encode(errors="backslashreplace").decode()
        yield read_document(name, text)
    show(Progress("read documents", len(files), len(files), ended=True))


def read_document(name: str, text: str) -> Document:
    """Parse a document by its file name's suffix."""
    suffix = Path(name).suffix.lower()
    if suffix in _PLAIN:
        return Document(name, tuple(plain_blocks(text)))
    title, blocks = html_blocks(text) if suffix in _HTML else markdown_blocks(text)
    return Document(name, tuple(blocks), title)


def _of_table(source: Source, columns: Mapping[str, str] | None) -> Iterator[Document]:
    for part in (part for parts in parts_of(source).values() for part in parts):
        where = part.table.name if isinstance(part.table, Path) else part.where
        yield from _of_rows(part.numbered(columns), where, columns)


def _of_rows(frame: pl.DataFrame, where: str, columns: Mapping[str, str] | None) -> Iterator[Document]:
    roles = document_roles(frame.drop(ROW).columns, where, columns)
    texts = {role: as_text(frame, name, where).fill_null("") for role, name in roles.items()}
    for place, number in enumerate(frame[ROW]):
        row = {role: column[place] for role, column in texts.items()}
        asked = (row["question"], row["answer"]) if "question" in row else None
        name = row.get("document") or f"{where}:{number}"
        blocks = tuple(plain_blocks(row.get("body", "")))
        yield Document(name, blocks, row.get("title"), asked, f"row {number}")
