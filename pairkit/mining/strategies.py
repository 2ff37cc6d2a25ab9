"""Where in a document two texts stand that belong together."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from urllib.parse import unquote, urlsplit

from pairkit.mining.documents import Document, is_question, opening_text
from pairkit.system.seeded import keyed_hash


@dataclass(frozen=True, slots=True)
class MinedRows:
    """Two texts that belong together."""

    strategy: str
    anchor: str
    positive: str
    document: str
    other: str
    place: str
    names: bool = True


@dataclass(frozen=True, slots=True)
class Corpus:
    """All documents, and what decides among their parts."""

    documents: Mapping[str, Document]
    most: int
    seed: int
    _openings: dict[str, str] = field(default_factory=dict)

    def opening(self, name: str) -> str:
        """How a document begins; made once, as ever so many links may lead there."""
        if name not in self._openings:
            paragraphs = (block.text for block in self.documents[name].opening)
            self._openings[name] = opening_text(" ".join(paragraphs), self.most)
        return self._openings[name]


Strategy = Callable[[Document, Corpus], Iterator[MinedRows]]


def title_body(document: Document, _: Corpus) -> Iterator[MinedRows]:
    """The title, and how the text begins."""
    if document.title and (opening := document.opening):
        body, name = " ".join(block.text for block in opening), document.name
        yield MinedRows("title-body", document.title, body, name, name, opening[0].place)


def question_answer(document: Document, _: Corpus) -> Iterator[MinedRows]:
    """Two columns; or a heading, a paragraph or the first line of one that asks, and what comes after it."""
    name = document.name
    if document.asked is not None:
        yield MinedRows("question-answer", *document.asked, name, name, document.place)
    for block, following in zip_longest(document.blocks, document.blocks[1:]):
        first, _end, rest = block.text.partition("\n")
        if is_question(first) and rest.strip():
            yield MinedRows("question-answer", first, rest, name, name, block.place)
        elif (
            is_question(block.text)
            and following
            and following.kind == "paragraph"
            and not is_question(following.text)
        ):
            yield MinedRows("question-answer", block.text, following.text, name, name, block.place)


def section(document: Document, corpus: Corpus) -> Iterator[MinedRows]:
    """A heading and the paragraph below it, and two paragraphs of one section."""
    name = document.name
    for part in document.sections():
        if part.heading is not None and part.paragraphs and part.heading.text != document.title:
            first = part.paragraphs[0].text
            yield MinedRows("section", part.heading.text, first, name, name, part.heading.place)
        if part.heading is not None and len(part.paragraphs) > 1:
            order = sorted(
                range(len(part.paragraphs)),
                key=lambda number: keyed_hash(
                    corpus.seed, "section", name, part.paragraphs[number].text, number
                ),
            )
            one, other = (part.paragraphs[number] for number in sorted(order[:2]))
            yield MinedRows("section", one.text, other.text, name, name, one.place, names=False)


def links(document: Document, corpus: Corpus) -> Iterator[MinedRows]:
    """The words of a link to another of the documents, and how that one begins."""
    for block in document.blocks:
        for link in block.links:
            target = _target(document.name, link.target, corpus)
            if target is None or target.name == document.name:
                continue
            text = corpus.opening(target.name) or target.title or ""
            yield MinedRows("links", link.words, text, document.name, target.name, block.place)


STRATEGIES: Mapping[str, Strategy] = {
    "question-answer": question_answer,
    "title-body": title_body,
    "links": links,
    "section": section,
}
"""By name; of two that find the same pair the first keeps it."""


def _target(name: str, target: str, corpus: Corpus) -> Document | None:
    """The document that a link leads to; None for other places."""
    try:
        parts = urlsplit(target)
    except ValueError:  # brackets that are no address
        return None
    if parts.scheme or parts.netloc or not parts.path:
        return None
    path = unquote(parts.path)
    base = "" if path.startswith("/") else posixpath.dirname(name)
    place = posixpath.normpath(posixpath.join(base, path.lstrip("/")))
    tried = (place, *(place + end for end in (".md", ".html", "/index.md", "/index.html", "/README.md")))
    return next((corpus.documents[one] for one in tried if one in corpus.documents), None)
