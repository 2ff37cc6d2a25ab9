"""Blocks of HTML: headings, paragraphs, code and tables of the main content; questions and sentences in texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, cast

from lxml import etree
from lxml.html import defs

from pairkit.base.system.text_lines import note_once

_QUESTION_CHARS = 300
_QUESTION_MARKS = ("?", "？", "؟", "՞", "\u037e")
# Followed by a letter, which must not be in lower case; in Chinese and Japanese without a blank.
_SENTENCE_END = re.compile(
    r"[.!?؟۔।][\"'”’»)]*(?=\s[\"'(«„“‘¿¡]*(\w))|[。！？][”’」』）]*(?=[^\s。！？”’」』）])"
)

BlockKind = Literal["heading", "question", "paragraph", "code", "table"]

# A text that begins and ends with a tag, unlike "<T> is the type of </a>".
_HTML = re.compile(r"(?is)\s*<(?:!--|[a-z][a-z0-9-]*[\s>])(?=.*</[a-z]).*>\s*\Z")
KNOWN_TAGS = defs.tags | {
    "bdi",
    "data",
    "dialog",
    "main",
    "o:p",  # Word's
    "picture",
    "template",
}
_LEVELS = {
    **{f"h{level}": level for level in range(1, 7)},
    "dt": 7,
    "summary": 7,
}
_BLOCK = re.compile(
    "address|article|aside|blockquote|body|caption|center|dd|details|div|dl|dt|fieldset|figcaption|figure"
    "|h[1-6]|header|hr|html|li|main|ol|p|section|summary|table|tbody|td|th|tr|ul"
)
_LEFT_OUT = re.compile(
    "footer|form|head|iframe|nav|noscript|script|select|style|svg|template|textarea"
)
_AROUND = ("aside", "header")  # left out where no element is the main content
_LEFT_OUT_ROLES = ("banner", "contentinfo", "navigation", "search")
# Names of classes and ids, as documentation generators, wikis and blogs use them.
_LEFT_OUT_NAMES = re.compile(
    r"breadcrumbs?(-\w+)*|page-?metadata|(post|entry|article)-meta|byline|pagination|prev-next.*|toc"
    r"|toctree-wrapper|table-of-contents|skip-?(link|to-content)|(head|header|anchor)-?link|permalink"
    r"|edit-(this-)?page|page-?edit.*|(sphinx)?sidebar|side-?nav|navbar|site-(header|footer)|footer|linenos?"
    r"|linenumbers?|mw-editsection|printfooter|catlinks|viewcode-link|copy-?btn",
    re.IGNORECASE,
)
_MAIN_IDS = ("main-content", "bodyContent", "content", "main")
_Test = Callable[[etree._Element], bool]
_MAIN: tuple[_Test, ...] = (
    lambda element: element.tag == "main" or element.get("role") == "main",
    lambda element: element.tag == "article",
    lambda element: element.get("id") in _MAIN_IDS,
)
LINE = "source-line-"  # class of an element: the line of its source, from 1
_MARKED_LINE = re.compile(rf"\b{LINE}(\d+)\b")
_MAX_CLASSES = 1_000  # characters
_LAST_LINE = 65_535  # libxml2 gives it to all elements further down, too


def is_question(text: str) -> bool:
    """Whether a text is a single question."""
    line = collapse_spaces(text)
    is_short = len(line) <= _QUESTION_CHARS
    return line.endswith(_QUESTION_MARKS) and is_short and not sentence_ends(line)


def collapse_spaces(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())


def sentence_ends(line: str) -> list[int]:
    """Where a sentence ends before another one."""
    ends = []
    for match in _SENTENCE_END.finditer(line):
        next_letter = match[1] or ""
        if not next_letter.islower():
            ends.append(match.end())
    return ends


def opening_text(text: str, max_chars: int) -> str:
    """The first sentences, or else words, of a text up to a number of characters."""
    line = collapse_spaces(text)
    if len(line) <= max_chars:
        return line
    ends = [end for end in sentence_ends(line[: 2 * max_chars]) if end <= max_chars]
    if ends:
        return line[: ends[-1]]
    head, space, _ = line[: max_chars + 1].rpartition(" ")
    return head if space else line[:max_chars]


@dataclass(frozen=True)
class Link:
    """The text of a link, and its target as in the document."""

    text: str
    target: str


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, question (also one in a heading), paragraph or list item, piece of code, or table."""

    kind: BlockKind
    text: str
    first: int  # line, page or paragraph of the document
    last: int
    path: tuple[str, ...] = ()  # the headings above it; of a heading, up to itself
    anchor: str = ""
    links: tuple[Link, ...] = ()


class UnreadableDocumentError(Exception):
    """A document that can't be read; its argument is the reason, as counted."""


@dataclass(frozen=True)
class Page:
    """The content of a file."""

    title: str | None
    blocks: list[Block]
    url: str = ""  # the address that an HTML page gives as its own


def read_html(html: str, *, is_marked: bool = False) -> Page:
    """The title and main content of a page; `is_marked` if classes such as `source-line-3` give lines."""
    content = html.encode("utf-8", "replace")
    parser = etree.HTMLParser(
        encoding="utf-8",
        remove_comments=True,
        remove_pis=True,
        huge_tree=True,
    )
    root = etree.fromstring(content, parser) if content.strip() else None
    if parser.error_log.filter_from_level(etree.ErrorLevels.FATAL):
        raise UnreadableDocumentError("nested_too_deeply")
    if root is None:
        return Page(None, [])
    main = _main_element(root)
    reader = _Reader(is_marked=is_marked, is_whole=main is root and not is_marked)
    reader.read(main)
    title = str(root.xpath("string(//title[not(ancestor::svg)])"))
    url = str(root.xpath("string(//link[@rel='canonical']/@href)"))
    heading = first_heading(reader.blocks)
    return Page(collapse_spaces(title) or heading, reader.blocks, url)


def first_heading(blocks: Iterable[Block]) -> str | None:
    """The text of the first heading, on one line."""
    headings = (block.path[-1] for block in blocks if block.kind == "heading")
    return next(headings, None)


def blocks_of_cell(cell: str) -> list[Block] | None:
    """The blocks of a cell of a table that is HTML; None of another text."""
    try:
        return read_html(cell).blocks if _HTML.match(cell) else None
    except UnreadableDocumentError:
        return None


def without_tags(text: str, where: object) -> str:
    """A text that is HTML without its tags, with a note; other texts as they are."""
    blocks = blocks_of_cell(text)
    if blocks is None:
        return text
    note_once("%s: texts in HTML are read without tags", where)
    return "\n".join(block.text for block in blocks)


def _main_element(root: etree._Element) -> etree._Element:
    """The element with the main content: one that is named so, if it has most paragraphs."""
    total = _prose_length(root)
    for is_main in _MAIN:
        largest = max(_outermost(root, is_main), key=_prose_length, default=None)
        if largest is not None and 2 * _prose_length(largest) >= total:
            return largest
    return root


def _prose_length(element: etree._Element) -> int:
    """Number of characters in paragraphs and code; menus are lists."""
    blocks = _outermost(element, lambda inner: inner.tag in ("p", "pre"))
    return sum(len(_text_of(block)) for block in blocks)


def _outermost(root: etree._Element, test: _Test) -> Iterator[etree._Element]:
    """The elements that pass a test; not those inside them, so that nested ones take linear time."""
    walker = etree.iterwalk(root, events=("start",))
    for _, element in walker:
        if test(element):
            walker.skip_subtree()
            yield element


def _text_of(element: etree._Element) -> str:
    return str(element.xpath("string()"))


class _Reader:
    """Collects the text between tags into blocks."""

    def __init__(self, *, is_marked: bool, is_whole: bool) -> None:
        self.blocks: list[Block] = []
        self._is_marked = is_marked
        self._is_whole = is_whole
        self._line = 1
        self._first: int | None = None  # line where the block begins
        self._pieces: list[str] = []
        self._links: list[Link] = []
        # The index of its first piece of text, and its target.
        self._link: tuple[int, str] | None = None
        # Level, text and anchor of the headings above.
        self._path: list[tuple[int, str, str]] = []
        # Level and anchor of the heading that is being read.
        self._heading: tuple[int, str] | None = None
        self._is_button = False
        # Lists with headings of their own, and the number of headings above each.
        self._outer: dict[etree._Element, int] = {}

    def read(self, root: etree._Element) -> None:
        """Read an element and all that is in it."""
        walker = etree.iterwalk(root, events=("start", "end"))
        skipped: etree._Element | None = None
        for event, element in walker:
            if event == "start":
                self._find_line(element)
                is_left_out = element is not root and self._is_left_out(element)
                if is_left_out or self._take_whole(element):
                    walker.skip_subtree()
                    skipped = element
                else:
                    self._open(element)
                    self._take(element.text)
                continue
            if element is skipped:
                skipped = None
            else:
                self._close(element)
            if element is not root:
                self._take(element.tail)
        self._end_block()

    def _find_line(self, element: etree._Element) -> None:
        if not self._is_marked:
            line = cast("int | None", element.sourceline)
            if line and line < _LAST_LINE:
                self._line = line
        elif marked := _MARKED_LINE.search(element.get("class") or "", 0, _MAX_CLASSES):
            self._line = int(marked[1])

    def _take(self, text: str | None) -> None:
        if text:
            if self._first is None and text.strip():
                begin = len(text) - len(text.lstrip())
                self._first = self._line + text.count("\n", 0, begin)
            self._pieces.append(text.replace("\n", " "))
            self._line += text.count("\n")

    def _is_left_out(self, element: etree._Element) -> bool:
        """Whether an element is not content, such as navigation and forms."""
        if element.tag in ("html", "body"):
            return False
        if element.tag == "form" and element.xpath("boolean(.//h1|.//main|.//article)"):
            return False  # a form around a whole page, as ASP.NET has
        described = f"{element.get('class') or ''} {element.get('id') or ''}"
        names = described[:_MAX_CLASSES].split()
        return bool(
            _LEFT_OUT.fullmatch(element.tag)
            or (self._is_whole and element.tag in _AROUND)
            or element.get("role") in _LEFT_OUT_ROLES
            or any(map(_LEFT_OUT_NAMES.fullmatch, names))
            or ("admonition-title" in names and _is_usual_title(element))
        )

    def _take_whole(self, element: etree._Element) -> bool:
        """Whether an element is code or a table with rows, which are blocks of their own."""
        if element.tag == "pre":
            add = self._add_code
        elif element.tag == "table" and not element.xpath(
            "boolean(.//table|.//pre|.//h1|.//h2|.//h3|.//h4)"
        ):
            add = self._add_table
        else:
            return False
        self._end_block()
        add(element)
        return True

    def _add_code(self, element: etree._Element) -> None:
        inner = element.find("code")
        if inner is not None:  # in Markdown it has the line of the fence
            self._find_line(inner)
        first = self._line
        source = _text_of(element)
        self._line += source.rstrip("\n").count("\n")
        lines = self._text_in(element).strip("\n").split("\n")
        self._add("code", "\n".join(map(str.rstrip, lines)), first)
        self._line = first + source.count("\n")

    def _add_table(self, element: etree._Element) -> None:
        for caption in element.iter("caption"):
            self._add("paragraph", collapse_spaces(self._text_in(caption)))
        rows = []
        for row in element.iter("tr"):
            cells = [
                collapse_spaces(self._text_in(cell)) for cell in row.iter("td", "th")
            ]
            if any(cell.strip(" |") for cell in cells):
                rows.append(" | ".join(cells))
        first = self._line
        for inner in element.iter():
            self._find_line(inner)
        self._add("table", "\n".join(rows), first)

    def _text_in(self, whole: etree._Element) -> str:
        """The text of code or of a cell, without what is left out; blocks in it have lines of their own."""
        pieces = [""]
        walker = etree.iterwalk(whole, events=("start", "end"))
        for event, element in walker:
            if event == "start" and self._is_left_out(element):
                walker.skip_subtree()
                continue
            if _BLOCK.fullmatch(element.tag) and not pieces[-1].endswith("\n"):
                pieces.append("\n")
            text = element.text
            if event == "end":
                text = None if element is whole else element.tail
            elif element.tag == "br":
                text = "\n"
            if text:
                pieces.append(text)
        return "".join(pieces)

    def _open(self, element: etree._Element) -> None:
        tag = element.tag
        if tag in _LEVELS:
            self._end_block()
            self._heading = _LEVELS[tag], _anchor(element)
        elif _BLOCK.fullmatch(tag):
            self._end_block()
            if tag in ("dl", "details"):
                self._outer[element] = len(self._path)
        elif tag == "button" and self._heading is None:
            self._end_block()
            self._is_button = True
        elif tag == "br":
            self._pieces.append("\n")
        elif tag == "a":
            self._end_link()
            if href := element.get("href"):
                self._link = len(self._pieces), href

    def _close(self, element: etree._Element) -> None:
        tag = element.tag
        if _BLOCK.fullmatch(tag) or (tag == "button" and self._is_button):
            self._end_block()
            if element in self._outer:
                del self._path[self._outer.pop(element) :]
        elif tag == "a":
            self._end_link()

    def _end_block(self) -> None:
        self._end_link()
        lines = map(collapse_spaces, "".join(self._pieces).split("\n"))
        text = "\n".join(filter(None, lines))
        heading = self._heading
        is_button = self._is_button
        if is_button and is_question(text):
            # It opens the answer below it; other buttons are controls.
            heading = _LEVELS["summary"], ""
        self._heading = None
        self._is_button = False
        if heading is not None and text:
            level, anchor = heading
            while self._path and self._path[-1][0] >= level:
                self._path.pop()
            self._path.append((level, collapse_spaces(text), anchor))
            self._add("heading", text)
        elif not is_button and any(map(str.isalnum, text)):
            self._add("paragraph", text)
        self._pieces = []
        self._links = []
        self._first = None

    def _add(self, kind: BlockKind, text: str, first: int | None = None) -> None:
        if text.strip():
            first = first or self._first or self._line
            anchors = [anchor for _, _, anchor in self._path if anchor]
            block = Block(
                kind,
                text,
                first=first,
                last=max(first, self._line),
                path=tuple(heading for _, heading, _ in self._path),
                anchor=anchors[-1] if anchors else "",
                links=tuple(self._links),
            )
            self.blocks.append(block)

    def _end_link(self) -> None:
        if self._link is not None:
            start, target = self._link
            text = "".join(self._pieces[start:])
            if any(map(str.isalnum, text)):
                self._links.append(Link(text, target))
            elif target.startswith("#"):  # the mark of a heading's anchor
                del self._pieces[start:]
            self._link = None


def _is_usual_title(title: etree._Element) -> bool:
    """Whether the title of a box only repeats its kind, such as "Note"."""
    box = title.getparent()
    classes = "" if box is None else box.get("class") or ""
    return _text_of(title).strip().lower() in classes.split()


def _anchor(heading: etree._Element) -> str:
    """The id of a heading, of its section, or of a target in it; empty if there is none."""
    if own := str(heading.xpath("string((.//@id | .//a/@name)[1])")):
        return own
    section = heading.getparent()
    siblings = heading.itersiblings(preceding=True)
    is_first = all(sibling.tag in ("a", "span") for sibling in siblings)
    if not is_first or section is None:
        return ""
    return section.get("id") or ""
