"""Documents of tables and folders: their headings, paragraphs, code and tables."""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.dataset.reading.columns import document_roles
from pairkit.dataset.reading.in_memory import Source, contents_of, source_name
from pairkit.dataset.reading.pair_rows import as_text
from pairkit.dataset.reading.parts import parts_of
from pairkit.dataset.reading.tables import is_table
from pairkit.dataset.records import ROW
from pairkit.extracting.formats import is_document, plain_blocks, read_page, unit_of
from pairkit.extracting.html_blocks import (
    Block,
    BlockKind,
    UnreadableDocumentError,
    blocks_of_cell,
    is_question,
    without_tags,
)

_LOG = logging.getLogger(__name__)
_CARD = "README.md"  # describes a folder of tables and isn't a document
# Labels of questions and answers, such as "Q:", "2)", "A1." and "问："
_ASKED = re.compile(
    r"\A(?:(?:Q|Question|Frage|Pregunta|Domanda|问题?|問題?|質問)\s*(?:\d+\s*)?[:：.)]\s*|\d{1,3}[.)]\s+)",
    re.IGNORECASE,
)
_ANSWERED = re.compile(
    r"\A(?:A|Answer|Antwort|Réponse|Respuesta|Risposta|答案?|回答)\s*(?:\d+\s*)?[:：.)]\s*",
    re.IGNORECASE,
)
_MIN_DOCUMENTS = 4  # fewer have no common parts
_MARGIN = 3  # paragraphs at the begin and at the end of a document
_TITLE_MARKS = " |—–·:»-"
_TITLE_PARTS = re.compile(r"(?<!\s)\s+[|—–·:»\-]+\s+|:\s+")


@dataclass(frozen=True)
class Document:
    """A document with its blocks, or with a question and answer of a table."""

    name: str
    blocks: tuple[Block, ...]
    title: str | None = None
    asked: tuple[str, str] | None = None
    row: int = 0  # of a table
    unit: str = "line"  # of the numbers of blocks
    url: str = ""

    def place(self, block: Block) -> str:
        """Where a block begins, such as "line 3"."""
        return f"{self.unit} {block.first}"

    @property
    def opening(self) -> list[Block]:
        """The paragraphs of the first section that has any; of several questions and answers, none."""
        questions = [block for block in self.blocks if block.kind == "question"]
        for section in self.sections():
            if section.paragraphs:
                is_faq = section.heading in questions and len(questions) > 1
                return [] if is_faq else section.paragraphs
        return []

    def sections(self) -> Iterator[Section]:
        """Each heading or question with the paragraphs up to the next one."""
        section = Section(None)
        for block in self.blocks:
            if block.kind != "paragraph":
                yield section
                section = Section(block)
            else:
                section.paragraphs.append(block)
        yield section


@dataclass(frozen=True)
class Section:
    """The paragraphs below a heading, or before the first heading."""

    heading: Block | None
    paragraphs: list[Block] = field(default_factory=list)


def split_questions(blocks: Iterable[Block]) -> Iterator[Block]:
    """Prose with each question as a block of its own, and without labels such as "Q:" and "A:"."""
    is_labelled = False  # the last question
    for block in blocks:
        if block.kind in ("code", "table"):
            continue
        lines = [block.text] if is_question(block.text) else block.text.split("\n")
        parts: list[tuple[BlockKind, list[str]]] = []
        for number, line in enumerate(lines):
            question = _ASKED.sub("", line)
            # A later line without a label may be part of a wrapped sentence.
            if is_question(question) and (number == 0 or question != line):
                is_labelled = question != line
                parts.append(("question", [question]))
                continue
            if not parts or parts[-1][0] == "question":
                line = _ANSWERED.sub("", line) if is_labelled else line
                is_labelled = False
                parts.append(("paragraph" if parts else block.kind, []))
            parts[-1][1].append(line)
        for kind, texts in parts:
            links = () if kind == "question" else block.links
            yield replace(
                block,
                kind=kind,
                text="\n".join(texts),
                links=links,
            )


def read_documents(
    source: Source, columns: Mapping[str, str] | None, show: Listener
) -> tuple[list[Document], Counter[str]]:
    """All documents; also counts dropped files and repeated paragraphs by reason."""
    where = source_name(source)
    unread = defaultdict[str, list[str]](list)
    files = document_files(source)
    if files is None:
        documents = list(_read_table_rows(source, columns))
    elif columns:
        raise ConfigError(f"{where}: --columns is only for tables; leave it out")
    else:
        documents = list(_read_files(files, unread, show))
    dropped = Counter[str]()
    reasons = []
    for reason, names in sorted(unread.items()):
        dropped[reason] = len(names)
        words = reason.replace("_", " ")
        reasons.append(f"{words} {len(names):,} (such as {one_line(names[0])})")
    why = ", ".join(reasons)
    if not documents:
        raise DataError(
            f"no documents ({why or 'nothing in it'}); give a table, or Markdown, HTML, reStructuredText,"
            " text, PDF or DOCX files",
            path=where,
        )
    if dropped:
        _LOG.warning("%s: documents not read: %s", where, why)
    if files is not None:
        documents, repeated = without_repeats(documents)
        if repeated:
            dropped["repeated_paragraphs"] = repeated
            _LOG.warning(
                "%s: %s",
                where,
                f"left out {repeated:,} paragraphs of menus and footers",
            )
    return documents, dropped


@dataclass(frozen=True)
class DocumentFiles:
    """The documents of a folder, or a single one, and the other files."""

    home: Path
    paths: list[Path]
    others: Sequence[Path] = ()

    def name(self, path: Path) -> str:
        """The path below the folder; a file name may be invalid Unicode."""
        name = path.relative_to(self.home).as_posix()
        return name.encode(errors="backslashreplace").decode()


def document_files(source: Source) -> DocumentFiles | None:
    """The documents of a source; None if it is a table or a folder of tables.

    Raises ConfigError for another kind of file.
    """
    contents = contents_of(source)
    if not isinstance(contents, str | Path):
        return None
    path = Path(contents)
    if path.is_file():
        if is_document(path):
            return DocumentFiles(path.parent, [path])
        if is_table(path):
            return None
        raise ConfigError(
            f"{path}: isn't a table or a document; save it as HTML, Markdown or text"
        )
    if not path.is_dir():
        return None
    documents = []
    others = []
    found = sorted(path.rglob("*"))
    # A result of ours, perhaps of an earlier run, isn't part of its source.
    results = {file.parent for file in found if file.name == "run.json"} - {path}
    for file in found:
        folders = file.relative_to(path).parent.parts
        is_hidden = any(folder.startswith(".") for folder in folders)
        if is_hidden or not results.isdisjoint(file.parents):
            continue
        if file.is_file() and is_document(file):
            documents.append(file)
        elif file.is_symlink() or not file.is_dir():
            others.append(file)
    if any(map(is_table, others)) and all(file == path / _CARD for file in documents):
        return None
    return DocumentFiles(path, documents, others)


def _read_files(
    files: DocumentFiles, unread: defaultdict[str, list[str]], show: Listener
) -> Iterator[Document]:
    """Read the documents of files; adds the names of unreadable files to `unread`, by reason."""
    if files.others:
        unread["another_kind_of_file"] += map(files.name, files.others)
    total = len(files.paths)
    for index, path in enumerate(files.paths):
        show(Progress("read documents", index, total))
        name = files.name(path)
        try:
            page = read_page(path)
        except UnreadableDocumentError as error:
            unread[str(error)].append(name)
            continue
        except ConfigError:
            if total == 1:
                raise
            unread["needs_aoe-toolkit[documents]"].append(name)
            continue
        blocks = tuple(page.blocks)
        yield Document(name, blocks, page.title, unit=unit_of(path), url=page.url)
    show(Progress("read documents", total, total, ended=True))


def _read_table_rows(
    source: Source, columns: Mapping[str, str] | None
) -> Iterator[Document]:
    """Read each row of a table as a document."""
    for part in chain.from_iterable(parts_of(source).values()):
        frame = part.numbered(columns)
        where = part.where
        roles = document_roles(frame.drop(ROW), where, columns)
        texts = {}
        for role, name in roles.items():
            texts[role] = as_text(frame, name, where).fill_null("")
        table = part.table.name if isinstance(part.table, Path) else where
        for row in frame.select(ROW, **texts).iter_rows(named=True):
            number = row[ROW]
            name = row.get("document") or f"{table}:{number}"
            body = row.get("body", "")
            blocks = blocks_of_cell(body)
            if blocks is None:
                blocks = plain_blocks(body)
            in_row = tuple(
                replace(block, first=number, last=number) for block in blocks
            )
            asked = None
            if "question" in row:
                question = without_tags(row["question"], where)
                asked = question, without_tags(row["answer"], where)
            yield Document(name, in_row, row.get("title"), asked, number, "row")


def without_repeats(documents: Sequence[Document]) -> tuple[list[Document], int]:
    """Documents without what most of them repeat, and the number of paragraphs left out.

    That is the site's name in titles and as the first heading, and paragraphs at the begin and end.
    """
    if len(documents) < _MIN_DOCUMENTS:
        return list(documents), 0
    names = _common(_TITLE_PARTS.split(document.title or "") for document in documents)
    first_blocks = [document.blocks[0] for document in documents if document.blocks]
    names |= _common(block.path[:1] for block in first_blocks)
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    repeated = _common(
        [block.text for block in _margins(document)] for document in documents
    )

    kept = []
    count = 0
    for document in documents:
        left_out = [block for block in _margins(document) if block.text in repeated]
        count += len(left_out)
        blocks = [block for block in document.blocks if block not in left_out]
        blocks = [_without_name(block, names) for block in blocks]
        # A heading without a path was the site's name.
        blocks = [block for block in blocks if block.kind != "heading" or block.path]
        title = _short_title(document.title, longest_first)
        kept.append(replace(document, blocks=tuple(blocks), title=title))
    return kept, count


def _common(texts_of_documents: Iterable[Sequence[str]]) -> set[str]:
    """Texts that most documents have."""
    counts = Counter[str]()
    documents = 0
    for texts in texts_of_documents:
        counts.update({*texts})
        documents += 1
    return {text for text, count in counts.items() if 2 * count > documents}


def _margins(document: Document) -> list[Block]:
    """The first and last paragraphs."""
    paragraphs = [block for block in document.blocks if block.kind == "paragraph"]
    others = paragraphs[_MARGIN:]
    return paragraphs[:_MARGIN] + others[-_MARGIN:]


def _without_name(block: Block, names: Collection[str]) -> Block:
    """A block without the site's name as the first of the headings above it."""
    if block.path and block.path[0] in names:
        return replace(block, path=block.path[1:])
    return block


def _short_title(title: str | None, names: Collection[str]) -> str | None:
    """A title without the site's name at its begin or end."""
    for name in names:
        if title is not None:
            short = title.removeprefix(name).removesuffix(name)
            if short != title:
                title = short.strip(_TITLE_MARKS) or title
    return title
