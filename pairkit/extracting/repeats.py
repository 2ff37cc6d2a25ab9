"""Find what the documents of a site repeat: its name, menus and footers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from pairkit.extracting.document import Document
from pairkit.extracting.html_blocks import Block

_MIN_DOCUMENTS = 4  # fewer have no common parts
_MARGIN = 3  # paragraphs at the begin and at the end of a document
_TITLE_MARKS = " |—–·:»-"
_TITLE_PARTS = re.compile(r"\s+[|—–·:»\-]+\s+|:\s+")


def without_repeats(documents: Sequence[Document]) -> tuple[list[Document], int]:
    """Documents without what most of them repeat, and the number of paragraphs left out.

    That is the site's name in titles and as the first heading, and paragraphs at the begin and end.
    """
    if len(documents) < _MIN_DOCUMENTS:
        return list(documents), 0
    names = _common(documents, lambda document: _TITLE_PARTS.split(document.title or ""))
    names |= _common(
        documents, lambda document: [block.path[0] for block in document.blocks[:1] if block.path]
    )
    repeated = _common(documents, lambda document: [block.text for block in _margins(document)])
    kept, count = list[Document](), 0
    for document in documents:
        left_out = [block for block in _margins(document) if block.text in repeated]
        blocks = [_without_name(block, names) for block in document.blocks if block not in left_out]
        blocks = [block for block in blocks if block.kind != "heading" or block.path]
        kept.append(replace(document, blocks=tuple(blocks), title=_short_title(document.title, names)))
        count += len(left_out)
    return kept, count


def _common(documents: Sequence[Document], texts: Callable[[Document], Collection[str]]) -> set[str]:
    """Texts that most documents have."""
    counts = Counter(text for document in documents for text in {*texts(document)})
    return {text for text, count in counts.items() if 2 * count > len(documents)}


def _margins(document: Document) -> list[Block]:
    """The first and last paragraphs."""
    paragraphs = [block for block in document.blocks if block.kind == "paragraph"]
    return [*paragraphs[:_MARGIN], *paragraphs[max(_MARGIN, len(paragraphs) - _MARGIN) :]]


def _without_name(block: Block, names: Collection[str]) -> Block:
    """A block without the site's name as the first of the headings above it."""
    return replace(block, path=block.path[1:]) if block.path and block.path[0] in names else block


def _short_title(title: str | None, names: Collection[str]) -> str | None:
    """A title without the site's name at its begin or end."""
    for name in names:
        if title is not None and (short := title.removeprefix(name).removesuffix(name)) != title:
            title = short.strip(_TITLE_MARKS) or title
    return title
