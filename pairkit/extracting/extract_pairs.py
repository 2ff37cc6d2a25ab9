"""Make a dataset of positives from documents."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import polars as pl

from pairkit.base.cli.progress import Display, Listener, Progress, stage
from pairkit.base.errors import DataError
from pairkit.base.printable import holds_no_text, listed
from pairkit.base.system.seeded import random_order
from pairkit.dataset.making.dataset_folder import table as markdown_table
from pairkit.dataset.making.made import (
    DROPPED,
    MadeDataset,
    build_result,
    check_out,
    run_record,
    write_result,
)
from pairkit.dataset.making.split_and_merge import divide
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.extracting.documents import Document, read_documents, split_questions
from pairkit.extracting.html_blocks import Block, opening_text
from pairkit.similarity.terms import is_unspaced

# Link texts without information on the target.
_GENERIC_LINKS = {
    "here",
    "click here",
    "this",
    "link",
    "this link",
    "this page",
    "more",
    "read more",
    "see also",
    "next",
}
_MIN_CHARS = 3  # of a text, unless each character may be a word
_LETTER = re.compile(r"[^\W\d_]")

_COLUMNS = ("text1", "text2", "rule", "url1", "url2", "place", DROPPED)
_ABOUT = """
Pairs of texts from the structure of documents, which no one checked. Made by
`pairs extract`. No document is in two splits, and neither are near-identical texts (Jaccard similarity of
word triples).
"""
_SCHEMA = """
| column | type | meaning |
|---|---|---|
| anchor, positive | string | the pair |
| rule | string | the rule that found the pair |
| url1, url2 | string | the documents of the texts: a path, or table and row |
| place | string | position of the first text in its document |
"""
_LIMITS = """
* The texts of a pair have the same topic, but rarely the same meaning. Such pairs help a weak model and may
  harm a good one: compare the trained model with its backbone.
* Long texts are cut after a sentence.
"""

RuleName = Literal["question-answer", "title-body", "links", "section"]


@dataclass(frozen=True)
class MinedPair:
    """A pair of texts from one or two documents."""

    rule: str
    anchor: str
    positive: str
    document: str
    target: str  # the document of the second text
    place: str
    # Whether the anchor stands for the positive, as a title or link does, so that it must have only one.
    anchor_is_name: bool = True
    left_out: str | None = None  # the reason


@dataclass(frozen=True)
class Corpus:
    """All documents, with the settings of rules."""

    documents: Mapping[str, Document]
    max_chars: int
    seed: int
    _openings: dict[str, str] = field(default_factory=dict)

    def opening(self, name: str) -> str:
        """The beginning of a document, cached as many links may lead to it."""
        if name not in self._openings:
            paragraphs = (block.text for block in self.documents[name].opening)
            self._openings[name] = opening_text(" ".join(paragraphs), self.max_chars)
        return self._openings[name]


Strategy = Callable[[Document, Corpus], Iterator[MinedPair]]


def title_body(document: Document, _: Corpus) -> Iterator[MinedPair]:
    """The title and the beginning of the text."""
    opening = document.opening
    if document.title and opening:
        body = " ".join(block.text for block in opening)
        yield _pair("title-body", document.title, body, document, opening[0])


def question_answer(document: Document, _: Corpus) -> Iterator[MinedPair]:
    """Question and answer columns, or a question (heading, paragraph or first line) and the text after it."""
    rule: RuleName = "question-answer"
    if document.asked is not None:
        name = document.name
        yield MinedPair(rule, *document.asked, name, name, f"row {document.row}")
    for block, following in pairwise(document.blocks):
        if block.kind == "question" and following.kind == "paragraph":
            yield _pair(rule, block.text, following.text, document, block)


def section(document: Document, corpus: Corpus) -> Iterator[MinedPair]:
    """A heading with the paragraph below it, and two paragraphs of one section."""
    for part in document.sections():
        heading = part.heading
        paragraphs = part.paragraphs
        if heading is None or not paragraphs:
            continue
        if heading.text != document.title:
            yield _pair("section", heading.text, paragraphs[0].text, document, heading)
        if len(paragraphs) > 1:
            keys = [
                (document.name, block.text, number)
                for number, block in enumerate(paragraphs)
            ]
            chosen = random_order(corpus.seed, "section", keys)[:2]
            first, second = (paragraphs[number] for number in sorted(chosen))
            pair = _pair("section", first.text, second.text, document, first)
            yield replace(pair, anchor_is_name=False)


def _pair(
    rule: RuleName,
    anchor: str,
    positive: str,
    document: Document,
    block: Block,
) -> MinedPair:
    """A pair of one document, which begins with this block."""
    place = document.place(block)
    return MinedPair(rule, anchor, positive, document.name, document.name, place)


def links(document: Document, corpus: Corpus) -> Iterator[MinedPair]:
    """The text of a link to another document, and the beginning of that document."""
    for block in document.blocks:
        for link in block.links:
            target = _target(document.name, link.target, corpus)
            if target is None or target.name == document.name:
                continue
            opening = corpus.opening(target.name) or target.title or ""
            place = document.place(block)
            yield MinedPair(
                "links", link.text, opening, document.name, target.name, place
            )


RULES: Mapping[RuleName, Strategy] = {
    "question-answer": question_answer,
    "title-body": title_body,
    "links": links,
    "section": section,
}
"""Rules by name; the first that finds a pair keeps it."""


def _target(name: str, target: str, corpus: Corpus) -> Document | None:
    """The document that a link leads to; None for other targets."""
    try:
        parts = urlsplit(target)
    except ValueError:  # invalid brackets
        return None
    if parts.scheme or parts.netloc or not parts.path:
        return None
    path = unquote(parts.path)
    base = "" if path.startswith("/") else posixpath.dirname(name)
    place = posixpath.normpath(posixpath.join(base, path.lstrip("/")))
    for ending in ("", ".md", ".html", "/index.md", "/index.html", "/README.md"):
        if place + ending in corpus.documents:
            return corpus.documents[place + ending]
    return None


def make_mined(
    source: Source,
    out: Path | None,
    *,
    columns: Mapping[str, str] | None,
    settings: Mapping[str, Any],
    fresh: bool,
    progress: bool | Listener,
) -> MadeDataset:
    """See `pairkit.extract`; `settings` are its arguments by name."""
    chosen = [rule for rule in RULES if rule in settings["rules"]]
    with Display(progress) as show:
        read, unread = read_documents(source, columns, show)
        documents = []
        for document in read:
            blocks = tuple(split_questions(document.blocks))
            documents.append(replace(document, blocks=blocks))
        run = _make_run_record(documents, settings, columns)
        check_out(out, run, [source], fresh=fresh)
        found = _mine_pairs(documents, chosen, settings, show)
        pairs = mark_unusable(found, settings["max_chars"])
        with stage("divide into splits", show):
            rows = _divide_pairs(pairs, settings)
    dataset = build_result(rows, "binary", str(out or source_name(source)))
    rule_counts = dataset.pairs.rows["rule"].value_counts().sort("rule")
    statistics = {
        "documents": len(documents),
        "documents_dropped": dict(sorted(unread.items())),
        "rules": dict(rule_counts.iter_rows()),
        **dataset.statistics,
    }
    dataset = replace(dataset, statistics=statistics)
    rules = markdown_table(["rule", "pairs"], statistics["rules"].items())
    sections = [("Rules", rules), ("Columns", _SCHEMA)]
    return write_result(dataset, out, run, _ABOUT, sections, limits=_LIMITS)


def _mine_pairs(
    documents: Sequence[Document],
    chosen: Sequence[RuleName],
    settings: Mapping[str, Any],
    show: Listener,
) -> list[MinedPair]:
    """The rows of all rules, each in the order of documents."""
    corpus = Corpus(
        {document.name: document for document in documents},
        settings["max_chars"],
        settings["seed"],
    )
    pairs: list[MinedPair] = []
    for index, name in enumerate(chosen):
        show(Progress("extract pairs", index, len(chosen), name))
        for document in documents:
            pairs += RULES[name](document, corpus)
    show(Progress("extract pairs", len(chosen), len(chosen), ended=True))
    return pairs


def _divide_pairs(
    pairs: Sequence[MinedPair], settings: Mapping[str, Any]
) -> pl.DataFrame:
    """Rows with their split; links between splits are dropped, as they connect all documents."""
    cells = []
    for pair in pairs:
        origin = (pair.rule, pair.document, pair.target, pair.place)
        cells.append((pair.anchor, pair.positive, *origin, pair.left_out))
    rows = pl.DataFrame(cells, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row")
    rows = rows.with_columns(label=pl.lit(1, pl.Int64))
    is_kept = pl.col(DROPPED).is_null()
    kept = rows.filter(is_kept).drop(DROPPED)
    if not kept.height:
        counts = listed(Counter(rows[DROPPED]))
        raise DataError(
            f"no pairs ({counts or 'the rules found none'}); choose other rules"
        )
    is_of_one_document = (kept["url1"] == kept["url2"]).to_numpy()
    binds = None if is_of_one_document.all() else is_of_one_document
    divided = divide(kept, settings["split"], settings["seed"], binds)
    return pl.concat([divided, rows.filter(~is_kept)], how="diagonal")


def _make_run_record(
    documents: Sequence[Document],
    settings: Mapping[str, Any],
    columns: Mapping[str, str] | None,
) -> dict[str, Any]:
    digest = hashlib.sha256()
    for document in documents:
        digest.update(repr(document).encode("utf-8", "surrogatepass"))
    inputs = {"documents": {"number": len(documents), "sha256": digest.hexdigest()}}
    return run_record("extract", inputs, {**settings, "columns": dict(columns or {})})


def mark_unusable(pairs: Sequence[MinedPair], max_chars: int) -> list[MinedPair]:
    """The pairs with their texts cut, some with the reason for leaving it out."""
    cut = []
    positives_of_name = defaultdict[str, set[str]](set)
    for pair in pairs:
        anchor = opening_text(pair.anchor, max_chars)
        positive = opening_text(pair.positive, max_chars)
        pair = replace(pair, anchor=anchor, positive=positive)
        pair = replace(pair, left_out=_why_unusable(pair))
        cut.append(pair)
        if pair.left_out is None and pair.anchor_is_name:
            positives_of_name[anchor.casefold()].add(positive.casefold())

    seen = set()
    checked = []
    for pair in cut:
        reason = pair.left_out
        anchor = pair.anchor.casefold()
        texts = frozenset((anchor, pair.positive.casefold()))
        if reason is None:
            if pair.anchor_is_name and len(positives_of_name[anchor]) > 1:
                reason = "ambiguous"
            elif texts in seen:
                reason = "repeated"
            else:
                seen.add(texts)
        checked.append(replace(pair, left_out=reason))
    return checked


def _why_unusable(pair: MinedPair) -> str | None:
    texts = (pair.anchor, pair.positive)
    if not all(texts):
        return "empty"
    if any(map(holds_no_text, texts)):
        return "unusable_characters"
    if not all(map(_LETTER.search, texts)):
        return "no_letters"
    if any(len(text) < _MIN_CHARS and not is_unspaced(text) for text in texts):
        return "too_short"
    if pair.rule == "links" and pair.anchor.casefold().strip(".,: ") in _GENERIC_LINKS:
        return "idle_words"
    if pair.anchor.casefold() == pair.positive.casefold():
        return "same_texts"
    return None
