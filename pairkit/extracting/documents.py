"""Documents of tables and folders, with the headings, paragraphs and links of Markdown, HTML and text."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.text_lines import read_text
from pairkit.dataset.negative_columns import ROW
from pairkit.dataset.reading.columns import as_text, document_roles
from pairkit.dataset.reading.in_memory import Source, contents_of, source_name
from pairkit.dataset.reading.parts import parts_of
from pairkit.dataset.reading.tables import is_table

_LOG = logging.getLogger(__name__)
_QUESTION_CHARS = 300
_QUESTION_MARKS = ("?", "？", "؟", "՞", "\u037e")
# Followed by a letter, which must not be in lower case; in Chinese and Japanese without a blank.
_SENTENCE_END = re.compile(
    r"[.!?؟۔।][\"'”’»)]*(?=\s[\"'(«„“‘¿¡]*(\w))|[。！？][”’」』）]*(?=[^\s。！？”’」』）])"
)
# Labels of questions and answers, such as "Q:", "2)", "A1." and "问："
_ASKED = re.compile(
    r"\A(?:(?:Q|Question|Frage|Pregunta|Domanda|问题?|問題?|質問)\s*\d*\s*[:：.)]\s*|\d{1,3}[.)]\s+)",
    re.IGNORECASE,
)
_ANSWERED = re.compile(
    r"\A(?:A|Answer|Antwort|Réponse|Respuesta|Risposta|答案?|回答)\s*\d*\s*[:：.)]\s*", re.IGNORECASE
)

BlockKind = Literal["heading", "question", "paragraph"]


@dataclass(frozen=True, slots=True)
class Link:
    """The text of a link, and its target as in the document."""

    text: str
    target: str


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, a question (also one in a heading), or a paragraph."""

    kind: BlockKind
    text: str
    place: str
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A document with its blocks, or with a question and answer of a table."""

    name: str
    blocks: tuple[Block, ...]
    title: str | None = None
    asked: tuple[str, str] | None = None
    place: str = ""

    @property
    def opening(self) -> list[Block]:
        """The paragraphs of the first section that has any; of several questions and answers, none."""
        first = next((section for section in self.sections() if section.paragraphs), Section(None))
        is_answer = first.heading is not None and first.heading.kind == "question"
        is_faq = is_answer and sum(block.kind == "question" for block in self.blocks) > 1
        return [] if is_faq else first.paragraphs

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


@dataclass(frozen=True, slots=True)
class Section:
    """The paragraphs below a heading, or before the first heading."""

    heading: Block | None
    paragraphs: list[Block] = field(default_factory=list)


def is_question(text: str) -> bool:
    """Whether a text is a single question."""
    line = collapse_spaces(text)
    return line.endswith(_QUESTION_MARKS) and len(line) <= _QUESTION_CHARS and not sentence_ends(line)


def collapse_spaces(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())


def split_questions(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks with each question as a block of its own, and without labels such as "Q:" and "A:"."""
    is_labelled = False  # the last question
    for block in blocks:
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
            yield Block(kind, "\n".join(texts), block.place, () if kind == "question" else block.links)


def sentence_ends(line: str) -> list[int]:
    """Where a sentence ends before another one."""
    return [end.end() for end in _SENTENCE_END.finditer(line) if not (end[1] or "").islower()]


def opening_text(text: str, max_chars: int) -> str:
    """The first sentences, or else words, of a text up to a number of characters."""
    line = collapse_spaces(text)
    if len(line) <= max_chars:
        return line
    if ends := [end for end in sentence_ends(line[: 2 * max_chars]) if end <= max_chars]:
        return line[: ends[-1]]
    head, space, _ = line[: max_chars + 1].rpartition(" ")
    return head if space else line[:max_chars]


def plain_blocks(text: str) -> list[Block]:
    """The paragraphs of plain text."""
    blocks, lines = list[Block](), list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.strip():
            lines.append(line.strip())
        elif lines:
            blocks.append(Block("paragraph", "\n".join(lines), f"line {number - len(lines)}"))
            lines = []
    return blocks


# Tables are parsed so that they can be left out.
_PARSER = MarkdownIt("commonmark").enable("table")
_FRONT = re.compile(r"---[ \t]*\r?\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_TITLE = "title:"


def markdown_blocks(text: str) -> tuple[str | None, list[Block]]:
    """The title, headings and paragraphs, without code and tables."""
    front = _FRONT.match(text)
    skipped = 0 if front is None else text.count("\n", 0, front.end())
    blocks, opened = list[Block](), list[str]()
    for token in _PARSER.parse(text if front is None else text[front.end() :]):
        if token.nesting > 0:
            opened.append(token.type)
        elif token.nesting < 0:
            opened.pop()
        line = skipped + 1 + (token.map[0] if token.map else 0)
        if token.type == "html_block":
            blocks += html_blocks(token.content, line)[1]
        elif token.type == "inline" and "table_open" not in opened:
            content, links = _inline(token)
            if content.strip():
                kind: BlockKind = "heading" if opened[-1] == "heading_open" else "paragraph"
                blocks.append(Block(kind, content, f"line {line}", links))
    lines = [] if front is None else front[1].splitlines()
    title = next((line[len(_TITLE) :].strip(" \t\"'") for line in lines if line.startswith(_TITLE)), None)
    return title or next((block.text for block in blocks if block.kind == "heading"), None), blocks


def _inline(token: Token) -> tuple[str, tuple[Link, ...]]:
    """The text and links of a block, without images."""
    pieces, links = list[str](), list[Link]()
    begun: tuple[int, str] | None = None
    for child in token.children or []:
        if child.type in ("text", "code_inline"):
            pieces.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            pieces.append("\n")
        elif child.type == "link_open":
            begun = len(pieces), str(child.attrGet("href") or "")
        elif child.type == "link_close" and begun is not None:
            links.append(Link("".join(pieces[begun[0] :]), begun[1]))
            begun = None
    return "".join(pieces), tuple(links)


# Also Word's <o:p>.
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*(?::[a-zA-Z]+)?)((?:\s|/)[^<>]*)?>|<!--|<[!?][^<>]*>")
# A cell that begins and ends with a tag, unlike "<T> is the type of </a>".
_HTML = re.compile(r"(?is)\s*<(?:!--|[a-z][a-z0-9-]*[\s>])(?=.*</[a-z]).*>\s*\Z")
_HREF = re.compile(r"""\shref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_HEADING = re.compile("h[1-6]|dt|summary")
_BLOCK = re.compile(
    "p|li|dd|blockquote|div|section|article|main|body|header|ul|ol|dl|hr|figure|figcaption|details"
)
_LEFT_OUT = re.compile("script|style|noscript|template|svg|nav|footer|aside|table|pre|form|textarea|select")
_RAW = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "textarea", "title")}
"""Elements whose content has no tags."""


def html_blocks(text: str, line: int = 1) -> tuple[str | None, list[Block]]:
    """The title, headings and paragraphs, without code, tables, navigation and forms; `line` is the first."""
    reader, at = _Reader(line), 0
    while (tag := _TAG.search(text, at)) is not None:
        reader.take(text[at : tag.start()])
        at = tag.end()
        reader.line += tag[0].count("\n")
        if tag[0] == "<!--":
            end = text.find("-->", at)
            at = len(text) if end < 0 else end + 3
            reader.line += text.count("\n", tag.end(), at)
        elif tag[2]:
            name = tag[2].lower()
            reader.tag(name, tag[3] or "", closes=bool(tag[1]))
            if name in _RAW and not tag[1]:
                ending = _RAW[name].search(text, at)
                end = ending.start() if ending else len(text)
                reader.take(text[at:end])
                at = end
    reader.take(text[at:])
    reader.end_block()
    first = next((block.text for block in reader.blocks if block.kind == "heading"), None)
    return collapse_spaces(reader.title) or first, reader.blocks


class _Reader:
    """Collects text into blocks between tags."""

    def __init__(self, line: int) -> None:
        self.blocks: list[Block] = []
        self.title = ""
        self.line = line
        self._kind: BlockKind | Literal["button"] = "paragraph"
        self._words: list[str] = []
        self._begun: int | None = None  # line where the block begins
        self._links: list[Link] = []
        self._link: tuple[int, str] | None = None  # index of its first piece of text, and its target
        self._left_out: tuple[str, int] | None = None  # the tag whose content is left out, and its depth
        self._in_title = False

    def take(self, text: str) -> None:
        """Add text between two tags."""
        if self._in_title:
            self.title += unescape(text)
        elif self._left_out is None:
            if self._begun is None and text.strip():
                self._begun = self.line + text[: len(text) - len(text.lstrip())].count("\n")
            self._words.append(unescape(text).replace("\n", " "))
        self.line += text.count("\n")

    def tag(self, name: str, attributes: str, *, closes: bool) -> None:
        """Process an opening or closing tag."""
        if self._left_out is not None:
            outer, depth = self._left_out
            depth += (name == outer) * (-1 if closes else 1)
            self._left_out = (outer, depth) if depth else None
        elif name == "title":
            self._in_title = not closes and not self.title
        elif _LEFT_OUT.fullmatch(name) and not closes:
            self.end_block()
            self._left_out = None if attributes.endswith("/") else (name, 1)
        elif (is_heading := bool(_HEADING.fullmatch(name))) or _BLOCK.fullmatch(name):
            self.end_block()
            self._kind = "heading" if is_heading and not closes else "paragraph"
        elif name == "button" and self._kind != "heading":
            self.end_block()
            self._kind = "paragraph" if closes else "button"
        elif name == "br":
            self._words.append("\n")
        elif name == "a":
            self._end_link()
            if not closes and (href := _HREF.search(attributes)) is not None:
                self._link = len(self._words), unescape(href[1] or href[2] or href[3] or "")

    def end_block(self) -> None:
        """End the block."""
        self._end_link()
        text = "\n".join(filter(None, map(collapse_spaces, "".join(self._words).split("\n"))))
        kind = self._kind
        if kind == "button":  # it opens the answer below it, or is a control
            kind = "heading"
            text = text if is_question(text) else ""
        if text:
            self.blocks.append(Block(kind, text, f"line {self._begun or self.line}", tuple(self._links)))
        self._words, self._links, self._kind, self._begun = [], [], "paragraph", None

    def _end_link(self) -> None:
        if self._link is not None:
            begun, target = self._link
            self._links.append(Link("".join(self._words[begun:]), target))
            self._link = None


_MAX_BYTES = 4 << 20  # of a file; a book has about 1 MiB
_PARSERS: Mapping[str, Callable[[str], tuple[str | None, list[Block]]]] = {
    **dict.fromkeys((".md", ".markdown", ".mdx"), markdown_blocks),
    **dict.fromkeys((".html", ".htm", ".xhtml"), html_blocks),
    **dict.fromkeys((".txt", ".text"), lambda text: (None, plain_blocks(text))),
}
_CARD = "README.md"  # describes a folder of tables and isn't a document


def read_documents(
    source: Source, columns: Mapping[str, str] | None, show: Listener
) -> tuple[list[Document], Counter[str]]:
    """Read all documents; also count dropped files by reason."""
    dropped: Counter[str] = Counter()
    contents = contents_of(source)
    path = Path(contents) if isinstance(contents, str | Path) else None
    files = None if path is None else _files(path, dropped)
    if path is None or files is None:
        documents = list(_of_table(source, columns))
    elif columns:
        raise ConfigError(f"{path}: --columns is only for tables; leave it out")
    else:
        documents = list(_of_files(files, path if path.is_dir() else path.parent, dropped, show))
    why = ", ".join(f"{reason.replace('_', ' ')} {count:,}" for reason, count in sorted(dropped.items()))
    if not documents:
        raise DataError(
            f"no documents ({why or 'nothing in it'}); give a table, or Markdown, HTML or text files",
            path=source_name(source),
        )
    if dropped:
        _LOG.warning("%s: documents not read: %s", path, why)
    return documents, dropped


def _files(path: Path, dropped: Counter[str]) -> list[Path] | None:
    """The documents in a folder, or a single file; None for tables."""
    if path.is_file() and path.suffix.lower() not in _PARSERS and not is_table(path):
        raise ConfigError(f"{path}: isn't a table or a document; save it as HTML, Markdown or text")
    if not path.is_dir():
        return [path] if path.suffix.lower() in _PARSERS and path.is_file() else None
    files, others = list[Path](), list[Path]()
    for file in sorted(path.rglob("*")):
        is_hidden = any(part.startswith(".") for part in file.relative_to(path).parent.parts)
        if not is_hidden and (file.is_symlink() or not file.is_dir()):
            (files if file.suffix.lower() in _PARSERS and file.is_file() else others).append(file)
    if any(map(is_table, others)) and all(file == path / _CARD for file in files):
        return None
    if others:
        dropped["another_kind_of_file"] = len(others)
    return files


def _of_files(files: list[Path], home: Path, dropped: Counter[str], show: Listener) -> Iterator[Document]:
    for done, file in enumerate(files):
        show(Progress("read documents", done, len(files)))
        try:
            text = read_text(file, _MAX_BYTES)
        except DataError:
            dropped["too_large" if file.stat().st_size > _MAX_BYTES else "not_utf8"] += 1
            continue
        title, blocks = _PARSERS[file.suffix.lower()](text)
        # A file name may be invalid Unicode.
        name = file.relative_to(home).as_posix().encode(errors="backslashreplace").decode()
        yield Document(name, tuple(split_questions(blocks)), title)
    show(Progress("read documents", len(files), len(files), ended=True))


def _of_table(source: Source, columns: Mapping[str, str] | None) -> Iterator[Document]:
    for part in (part for parts in parts_of(source).values() for part in parts):
        frame, where = part.numbered(columns), part.where
        roles = document_roles(frame.drop(ROW).columns, where, columns)
        texts = {role: as_text(frame, name, where).fill_null("") for role, name in roles.items()}
        table = part.table.name if isinstance(part.table, Path) else where
        for place, number in enumerate(frame[ROW]):
            row = {role: column[place] for role, column in texts.items()}
            asked = (_plain(row["question"]), _plain(row["answer"])) if "question" in row else None
            name, body = row.get("document") or f"{table}:{number}", row.get("body", "")
            blocks = html_blocks(body)[1] if _HTML.match(body) else plain_blocks(body)
            yield Document(name, tuple(split_questions(blocks)), row.get("title"), asked, f"row {number}")


def _plain(cell: str) -> str:
    """The text of a cell, which may be HTML."""
    return "\n".join(block.text for block in html_blocks(cell)[1]) if _HTML.match(cell) else cell
