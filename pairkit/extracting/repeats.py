"""Find what the documents of a site repeat: its name, menus and footers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
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
    names = _common(_TITLE_PARTS.split(document.title or "") for document in documents)
    first_blocks = [document.blocks[0] for document in documents if document.blocks]
    names |= _common(block.path[:1] for block in first_blocks)
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
        title = _short_title(document.title, names)
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
