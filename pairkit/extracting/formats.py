"""Reads Markdown, reStructuredText, HTML, text, PDF and DOCX; libraries convert most of them to HTML."""

from __future__ import annotations

import io
import logging
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from itertools import count
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.anchors import anchors_plugin
from mdit_py_plugins.container import container_plugin

from pairkit.base.cli.options import ENCODING
from pairkit.base.errors import DataError, PairkitError
from pairkit.base.extras import needed_for
from pairkit.base.system.text_lines import JAPANESE_MAIL, read_text, read_whole
from pairkit.extracting.html_blocks import (
    KNOWN_TAGS,
    LINE,
    Block,
    Page,
    UnreadableDocumentError,
    collapse_spaces,
    first_heading,
    read_html,
)

# Front matter of Jekyll (YAML) and of Hugo (TOML).
_FRONT = re.compile(
    r"(---|\+\+\+)[ \t]*\r?\n(.*?\n)?(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
_TITLE = re.compile(r"^title\s*[:=]\s*(.+)$", re.MULTILINE)
# A tab of Material for MkDocs: `=== "Linux"`.
_TAB = re.compile(r'^( *)===[+!]? (?=")', re.MULTILINE)
# Calls of MkDocs, Hugo and Jekyll that insert something, such as `{{< toc >}}` and `{% include x %}`.
_CALL = re.compile(r"\{\{[<%][^{}]*[>%]\}\}|\{%[^{}]*%\}|\{\*[^{}]*\*\}|\[TOC\]")
# Attributes at the end of a heading: `{#name .class}`.
_ATTRIBUTES = re.compile(r"(?<!\s)\s*\{:?\s*[#.]([^{}]*)\}\s*\Z")
_ANCHOR_NAME = re.compile(r"#([\w-]+)")
_INLINE_TAG = re.compile(r"</?([a-zA-Z][\w:-]*)")
# The kind and the title of a box: `warning Mind the gap`, `{note} Title`, `tip[Title]` or `details | Title`.
_BOX = re.compile(r"\s*[\w{}-]+\s*[|\[]?\s*(.*?)\]?\Z")

_MARKDOWN = (
    MarkdownIt("commonmark", {"breaks": True})
    .enable("table")
    .use(admon_plugin)
    .use(anchors_plugin, max_level=6)
    .use(container_plugin, "box", marker=":", validate=lambda *_: True)
    .use(container_plugin, "block", marker="/", validate=lambda *_: True)
)

_DIRECTIVE = re.compile(r"^[^\S\n]*\.\. (?:\|[^|\n]+\| )?([\w:.+-]+)::", re.MULTILINE)
_CODE_DIRECTIVE = re.compile(
    r".*(code|source|prompt|console|test|ipython|graphviz|mermaid|uml|production).*"
)
_TEXTLESS_DIRECTIVE = re.compile(
    r"toctree|auto.*|literalinclude|include|index|highlight|(current)?module|contents|raw|.*image|.*figure"
)
# A role, such as `:py:class:` before a backquote, and the target in its text: `the class <package.Class>`.
_ROLE = re.compile(r"(?<![\w:.+-])[\w.+-]*:([\w:.+-]+):`")
_ROLE_TARGET = re.compile(r"(?<!\s)\s*<[^<>]*>\Z")
_DOCUTILS_SETTINGS = {
    "_disable_config": True,
    "doctitle_xform": False,
    "embed_stylesheet": False,
    "file_insertion_enabled": False,
    "halt_level": 5,
    "output_encoding": "unicode",
    "raw_enabled": False,
    "report_level": 5,
    "syntax_highlight": "none",
}
_registered_directives = set[str]()
# Characters of a paragraph whose markup is read, and messages of a document.
_MAX_RST = 5_000

_SHORT_LINE = 0.85  # of the usual length of a page's lines
_LAST_SIGNS = (".", ":", "!", "?", "。", "؟", "।")
_DIGITS = re.compile(r"\d+")
_MAX_TEXT_BYTES = 4 << 20  # a book has about 1 MiB
_MAX_BYTES = 64 << 20  # of a PDF or a Word document, most of them pictures
_MAX_XML_BYTES = 16 << 20  # of the texts of a Word document; a book has about 4 MiB
_UNITS = {".pdf": "page", ".docx": "paragraph"}
# The encoding that an HTML page names: `<meta charset="windows-1251">`.
# Not Latin-1, by which browsers understand Windows-1252.
_CHARSET = re.compile(
    rb"charset\s*=\s*[\"']?(?!iso-8859-1\b|latin-?1\b|us-ascii|utf)([\w-]+)",
    re.IGNORECASE,
)
_HEAD_BYTES = 2_048


def plain_blocks(text: str) -> list[Block]:
    """The paragraphs of plain text."""
    blocks = []
    lines = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.strip():
            lines.append(line.strip())
        elif lines:
            first = number - len(lines)
            blocks.append(Block("paragraph", "\n".join(lines), first, number - 1))
            lines = []
    return blocks


def read_markdown(text: str) -> Page:
    """CommonMark with tables, and the boxes and calls of documentation generators."""
    front = _FRONT.match(text)
    start = front.end() if front else 0
    skipped = text.count("\n", 0, start)
    tokens = _MARKDOWN.parse(_TAB.sub(r'\1!!! tab "', text[start:]))
    marked = [*_marked(tokens, skipped + 1)]
    html = _MARKDOWN.renderer.render(marked, _MARKDOWN.options, {})
    page = read_html(html, is_marked=True)
    named = _TITLE.search(front[0]) if front else None
    return Page(named[1].strip(" \t\r\"'"), page.blocks) if named else page


def _marked(tokens: Sequence[Token], first: int) -> Iterator[Token]:
    """Tokens with the lines of their source, without calls, and with text where a tag is unknown."""
    for before, token in zip([None, *tokens], tokens, strict=False):
        line = f"{LINE}{first + token.map[0]}" if token.map else ""
        if token.type == "html_block":
            token.content = f'<span class="{line}"></span>{token.content}'
        elif token.type == "inline":
            _drop_calls_and_unknown_tags(token.children or [])
            if before is not None and before.type == "heading_open":
                _name_anchor(before, token.children or [])
        elif line and token.nesting >= 0:
            token.attrJoin("class", line)
        yield token
        if token.type in ("container_box_open", "container_block_open"):
            box = _BOX.match(token.info.rstrip())
            title = escape(box[1]) if box else ""
            yield Token("html_block", "", 0, content=f"<p>{title}</p>")


def _drop_calls_and_unknown_tags(children: Sequence[Token]) -> None:
    for child in children:
        if child.type == "html_inline":
            tag = _INLINE_TAG.match(child.content)
            if tag is not None and tag[1].lower() not in KNOWN_TAGS:  # such as Vec<T>
                child.type = "text"
        elif child.type == "text":
            child.content = _CALL.sub("", child.content)


def _name_anchor(heading: Token, children: Sequence[Token]) -> None:
    """Take attributes such as `{#name}` from the end of a heading; the name is its anchor."""
    if children and (attributes := _ATTRIBUTES.search(children[-1].content)):
        children[-1].content = children[-1].content[: attributes.start()]
        if named := _ANCHOR_NAME.search(attributes[0]):
            heading.attrSet("id", named[1])


def read_rst(text: str) -> Page:
    """reStructuredText; directives and roles that only Sphinx has keep their text."""
    from docutils.core import publish_doctree, publish_from_doctree
    from docutils.nodes import Element

    _accept_unknown(text)
    tree = publish_doctree(
        text, parser=_bounded_parser(), settings_overrides=_DOCUTILS_SETTINGS
    )
    for node in tree.findall(Element):
        if node.line:
            node["classes"].append(f"{LINE}{node.line}")
    html = publish_from_doctree(
        tree, writer="html5", settings_overrides=_DOCUTILS_SETTINGS
    )
    page = read_html(html, is_marked=True)
    return replace(page, title=first_heading(page.blocks))


def _bounded_parser() -> Any:
    """Docutils takes quadratic time for the markup of a paragraph, and for its messages."""
    from docutils.nodes import Text
    from docutils.parsers.rst import Parser
    from docutils.parsers.rst.states import Inliner

    inliner: Any = Inliner()  # a subclass would lack its patterns
    parse = inliner.parse

    def parse_short(text: str, *place: Any) -> Any:
        return ([Text(text)], []) if len(text) > _MAX_RST else parse(text, *place)

    inliner.parse = parse_short

    class BoundedParser(Parser):
        def setup_parse(self, text: str, tree: Any) -> None:
            super().setup_parse(text, tree)
            messages = count(1)

            def check(_: Any) -> None:
                if next(messages) > _MAX_RST:
                    raise UnreadableDocumentError("too_many_faults")

            tree.reporter.attach_observer(check)

    return BoundedParser(inliner=inliner)


def _accept_unknown(text: str) -> None:
    """Register the directives and roles of a text that docutils lacks, and options of those that it has."""
    from docutils.nodes import inline
    from docutils.parsers.rst import directives, roles
    from docutils.parsers.rst.languages import en

    def role(
        _name: str,
        source: str,
        shown: str,
        *_: Any,
        **__: Any,
    ) -> Any:
        words = _ROLE_TARGET.sub("", shown).lstrip("!")
        if words.startswith("~"):
            words = words.rsplit(".", 1)[-1]
        return [inline(source, words)], []

    find: Any = directives.directive
    for name in {*_DIRECTIVE.findall(text)} - _registered_directives:
        known = None
        if name in en.directives and not _CODE_DIRECTIVE.fullmatch(name):
            known, _ = find(name, en, None)
        directives.register_directive(name, _tolerant(known))
        _registered_directives.add(name)
    for name in {*_ROLE.findall(text)} - {*en.roles}:
        roles.register_local_role(name, role)


def _tolerant(known: Any) -> Any:
    """A directive of docutils that takes any option; None: one that shows its arguments and content."""
    from docutils.nodes import container, literal_block, paragraph
    from docutils.parsers.rst import Directive

    base = known or Directive

    # Never empty, because docutils would then read no options.
    options = defaultdict(lambda: str, {"any": str, **(base.option_spec or {})})

    class Known(base):  # type: ignore[misc,valid-type]
        option_spec = options

    class Unknown(Known):
        has_content = True
        optional_arguments = 1
        final_argument_whitespace = True

        def run(self) -> list[Any]:
            if _TEXTLESS_DIRECTIVE.fullmatch(self.name):
                return []
            content = "\n".join(self.content)
            if _CODE_DIRECTIVE.fullmatch(self.name):
                code = literal_block(content, content)
                code.line = self.content_offset + 1
                return [code]
            box = container()
            shown = " ".join(self.arguments)
            if shown and (content or " " in shown):
                inlines, _ = self.state.inline_text(shown, self.lineno)
                box += paragraph(shown, "", *inlines)
            self.state.nested_parse(self.content, self.content_offset, box)
            return [box]

    return Known if known else Unknown


def _read_docx(content: bytes) -> Page:
    """A Word document; its paragraphs have numbers instead of lines."""
    import mammoth

    with ZipFile(io.BytesIO(content)) as archive:
        sizes = [
            entry.file_size
            for entry in archive.infolist()
            if entry.filename.endswith(".xml")
        ]
    if sum(sizes) > _MAX_XML_BYTES:
        raise UnreadableDocumentError("too_large")
    page = read_html(mammoth.convert_to_html(io.BytesIO(content)).value)
    numbered = enumerate(page.blocks, 1)
    blocks = [replace(block, first=number, last=number) for number, block in numbered]
    return replace(page, blocks=blocks)


def _read_pdf(content: bytes) -> Page:
    """The paragraphs of a PDF, without lines that most pages begin or end with."""
    from pypdf import PdfReader

    # pypdf warns of each small fault of a file.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    reader = PdfReader(io.BytesIO(content))
    pages = []
    margins = Counter[str]()
    for page in reader.pages:
        plain = map(collapse_spaces, page.extract_text().splitlines())
        lines = [*filter(None, plain)]
        margins.update(_without_numbers(line) for line in {*lines[:2], *lines[-2:]})
        pages.append(lines)
    repeated = set()
    if len(pages) >= 3:
        repeated = {line for line, count in margins.items() if 2 * count > len(pages)}
    blocks = []
    for number, lines in enumerate(pages, 1):
        kept = [line for line in lines if _without_numbers(line) not in repeated]
        blocks += [
            Block("paragraph", text, number, number) for text in _paragraphs(kept)
        ]
    title = reader.metadata.title if reader.metadata else None
    return Page(title or None, blocks)


def _without_numbers(line: str) -> str:
    """The line with numbers replaced, such as those of pages."""
    return _DIGITS.sub("0", line)


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """Lines of a page joined into paragraphs, which end with a sentence in a short line."""
    if not lines:
        return
    lengths = sorted(map(len, lines))
    usual_length = lengths[len(lengths) * 3 // 4]
    text = ""
    for line in lines:
        is_divided = text.endswith("-") and line[:1].islower()
        text = text[:-1] + line if is_divided else f"{text} {line}"
        is_short = len(line) < _SHORT_LINE * usual_length
        if is_short and line.endswith(_LAST_SIGNS):
            yield text.strip()
            text = ""
    if text:
        yield text.strip()


_TEXT_FORMATS: Mapping[str, Callable[[str], Page]] = {
    **dict.fromkeys((".md", ".markdown", ".mdx"), read_markdown),
    **dict.fromkeys((".html", ".htm", ".xhtml"), read_html),
    **dict.fromkeys((".rst", ".rest"), read_rst),
    **dict.fromkeys((".txt", ".text"), lambda text: Page(None, plain_blocks(text))),
}
_BINARY_FORMATS = {
    ".pdf": _read_pdf,
    ".docx": _read_docx,
}


def is_document(path: Path) -> bool:
    """Whether a file's name ends as that of a document."""
    return path.suffix.lower() in {*_TEXT_FORMATS, *_BINARY_FORMATS}


def unit_of(path: Path) -> str:
    """What the numbers of a document's blocks count."""
    return _UNITS.get(path.suffix.lower(), "line")


def read_page(path: Path) -> Page:
    """Read a document.

    Raises:
        ConfigError: A library for its format is not installed.
        DataError: The file can't be read.
        UnreadableDocumentError: It is too large, not UTF-8, or damaged.
    """
    ending = path.suffix.lower()
    limit = _MAX_TEXT_BYTES if ending in _TEXT_FORMATS else _MAX_BYTES
    if path.stat().st_size > limit:
        raise UnreadableDocumentError("too_large")
    with needed_for(f"reading {ending} files", "documents"):
        try:
            if ending in _TEXT_FORMATS:
                return _TEXT_FORMATS[ending](_decoded(path))
            return _BINARY_FORMATS[ending](read_whole(path))
        except (ImportError, PairkitError, UnreadableDocumentError):
            raise
        except RecursionError as error:
            raise UnreadableDocumentError("nested_too_deeply") from error
        except Exception as error:  # the libraries document none
            raise UnreadableDocumentError("damaged_or_encrypted") from error


def _decoded(path: Path) -> str:
    """The text of a file; an HTML page may name another encoding than UTF-8."""
    content = read_whole(path)
    named = _CHARSET.search(content, 0, _HEAD_BYTES)
    if (
        named is not None
        and ENCODING not in os.environ
        and (
            JAPANESE_MAIL in content
            or content.decode(errors="ignore").encode() != content
        )
    ):
        with suppress(LookupError, UnicodeDecodeError):
            return content.decode(named[1].decode())
    try:
        return read_text(path)
    except DataError as error:
        raise UnreadableDocumentError("not_utf8") from error
