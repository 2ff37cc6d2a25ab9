"""From the raw text of an answer to its items."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from llm_labeler._finish import Ending, ending_of
from llm_labeler._parse import wording
from llm_labeler._parse.damage import is_left_bold
from llm_labeler._parse.fields import items_of
from llm_labeler._parse.inline import separated
from llm_labeler._parse.items import after_refusal, compared
from llm_labeler._parse.keyed import read_keyed
from llm_labeler._parse.listed import read_list, without_ordinals
from llm_labeler._parse.markup import (
    fenced,
    plain,
    with_headings,
    with_line_ends,
    without_latex,
    without_tags,
)
from llm_labeler._parse.prose import read_prose
from llm_labeler._parse.runaway import split_draft, split_turns
from llm_labeler._parse.sections import of_polarity
from llm_labeler._parse.sentence import refine
from llm_labeler._parse.source import Source, tidy
from llm_labeler._parse.structured import Found, read_data, unwrapped
from llm_labeler._parse.tables import read_table
from llm_labeler._parse.turns import answer_of
from llm_labeler._parse.widths import narrow, widened
from llm_labeler._records import Item, Polarity

MAX_CHARS = 1_000_000  # of an answer; what is beyond is not read
_EXCERPT = 500  # characters kept of what is turned down
_FENCE = re.compile(r"```(?:json)?")
_INTRODUCTIONS = 4  # "Sure!", "Here are …:", "Output:" …
_EMPTY: Mapping[Ending, str] = {"refused": "refusal", "filtered": "filtered", "failed": "failed"}
_TAIL: Mapping[Ending, str] = {
    "cut": "cut_off",
    "filtered": "filtered",
    "failed": "failed",
    "unknown": "unknown_end",
}


def parse_answer(
    raw: str, *, text: str, finish: str = "stop", size: int | None = None, polarity: Polarity | None = None
) -> list[Item]:
    """The sentences in one answer, and everything in it that is none, in the order of the answer.

    A function of its arguments alone that raises on no string and takes time linear in its length. Sentences
    come with single spaces; of pieces turned down the first 500 characters are kept.

    Args:
        raw: What the LLM said.
        text: The sentence it was asked about.
        finish: Why the answer ended, see `Reply.finish`: of one not known to be whole the last sentence
            is turned down, of a refusal all of it.
        size: How many sentences were asked for; more than these are turned down. None: as many as there are.
        polarity: What was asked for; of an answer with headings of both, only what stands under this one is
            meant. None: all of it is.

    Returns:
        Items without a reason may be candidates; the others have one of `REASONS`. Never empty.
    """
    asked = _Asked(Source.of(narrow(plain(text))), size, polarity, ending_of(finish))
    answer = plain(raw[:MAX_CHARS])
    parts = answer_of(narrow(answer), asked.source)
    items = [Item(tidy(piece), reason) for reason, piece in parts.before]
    items += after_refusal(_read(parts.text, asked))
    items += [Item(tidy(piece), reason) for reason, piece in parts.after]
    items = compared(items, asked.source, size)
    is_cut = len(raw) > MAX_CHARS or (asked.ending == "complete" and is_left_bold(parts.text, asked.source))
    ending = "cut" if is_cut else asked.ending
    items = widened(_within_size(_ended(items, ending), size), answer)
    if len(raw) > MAX_CHARS:
        items.append(Item(tidy(plain(raw[MAX_CHARS : MAX_CHARS + _EXCERPT])), "unread"))
    return [item if item.reason is None else _excerpt(item) for item in items]


@dataclass(frozen=True, slots=True)
class _Asked:
    """The question that is answered."""

    source: Source
    size: int | None
    polarity: Polarity | None
    ending: Ending


def _read(text: str, asked: _Asked) -> list[Item]:
    """Down the ladder: drafts and made-up turns off, then JSON, fences, and what `_read_text` reads."""
    source = asked.source
    draft, text = split_draft(text, source)
    question, text, runaway = split_turns(text, source)
    bare = without_tags(text) if "<" not in source.text else text
    items = [Item(tidy(draft), "thinking")] if draft.strip() else []
    items += [Item(tidy(question), "echo")] if question.strip() else []
    items += [Item(tidy(text), "unparsable")] if bare is None else _read_answer(bare, asked)
    return items + ([Item(tidy(runaway), "runaway")] if runaway.strip() else [])


def _read_answer(text: str, asked: _Asked) -> list[Item]:
    text = plain(unwrapped(text))
    found = read_data(text, asked.source)
    if found is not None:
        return _from_json(found, asked)
    before, inside, after = fenced(text) if "```" not in asked.source.text else ("", text, "")
    return [*_outside(before, asked.source), *_read_text(inside, asked), *_outside(after, asked.source)]


def _from_json(found: Found, asked: _Asked) -> list[Item]:
    source = asked.source
    strings = [item for value in found.values for item in items_of(value, source, asked.polarity)]
    kept = [item for item in strings if item.reason is None]
    items: list[Item] = []
    for item in strings:
        if item.reason is not None:
            items.append(Item(tidy(plain(item.text)), item.reason))
        elif len(kept) == 1 and "\n" in item.text.strip():
            items += _read_text(plain(item.text), asked)  # a list within the only string
        else:
            items += refine(plain(item.text), source, is_value=len(kept) > 1)
    if not items:
        items = [Item("", "empty_answer")]
    if asked.ending == "complete" and not found.is_closed:
        items = _without_tail(items, "cut_off")  # it was cut whatever the server says
    return [
        *_outside(found.before, source),
        *without_ordinals(items),
        *_outside(found.after, source),
    ]


def _read_text(text: str, asked: _Asked) -> list[Item]:
    """Sections, and in each of the polarity asked for a table, a list or prose."""
    source = asked.source
    if not any(character.isalnum() for character in text):
        return [Item(tidy(text), "unparsable")] if text.strip() else []
    if "\\" in text and "\\" not in source.text:
        text = with_line_ends(without_latex(text))
    text = with_headings(text)
    if (records := read_keyed(text)) is not None:
        return _from_json(Found("", [*records], ""), asked)
    items: list[Item] = []
    for part, is_other in of_polarity(text, source, asked.polarity):
        if is_other:
            items += [Item(tidy(line), "other_polarity") for line in part.split("\n") if line.strip()]
        elif part.strip():
            items += _read_section(_opened(part, source), asked)
    return items


def _read_section(text: str, asked: _Asked) -> list[Item]:
    source = asked.source
    items = read_table(text, source, asked.polarity)
    if items is None:
        items = _divided(read_list(text, source), asked)
    if items is not None and any(item.reason in (None, "refusal") for item in items):
        return items
    prose = read_prose(text, source, asked.size)
    # Where whatever has marks is a remark, sentences are lines without marks.
    has_words = any(item.reason is None and any(c.isalpha() for c in item.text) for item in prose)
    return prose if items is None or has_words else items


def _divided(items: list[Item] | None, asked: _Asked) -> list[Item] | None:
    """Items in which the only sentence is as many as signs divide it into: `Antonyms: …; …; …`."""
    if items is None or sum(item.reason is None for item in items) != 1:
        return items
    found: list[Item] = []
    for item in items:
        pieces = None if item.reason else separated(item.text, asked.source, asked.size)
        found += (
            [item] if pieces is None else [part for piece in pieces for part in refine(piece, asked.source)]
        )
    return found


def _opened(text: str, source: Source) -> str:
    """`text` with introductions on lines of their own, and without labels such as `Output:`."""
    introductions: list[str] = []
    for _ in range(_INTRODUCTIONS):
        text = text.lstrip()
        first = text.partition("\n")[0]
        bare = first.lstrip("*_# ")
        if (end := wording.echo_end(first, source)) > 0:
            introductions.append(first[:end])
            text = text[end:]
        elif (end := wording.head(bare, source)) > 0:
            text = bare[end:].lstrip("*_ ") + text[len(first) :]
        elif (end := wording.lead(first, source)) > 0 and len(first) < len(text) + (end < len(first)):
            introductions.append(first[:end].rstrip())
            text = text[end:]
        else:
            break
    return "\n".join((*introductions, text))


def _outside(text: str, source: Source) -> list[Item]:
    """Paragraphs around JSON or a fence."""
    paragraphs = [tidy(_FENCE.sub("", block)) for block in text.split("\n\n")]
    return [
        Item(said, wording.aside(said, source, "outside_list"))
        for said in paragraphs
        if any(character.isalnum() for character in said)
    ]


def _ended(items: list[Item], ending: Ending) -> list[Item]:
    """Items without what an answer that isn't known to be whole may have broken off in."""
    if ending == "cut" and all(item.reason == "thinking" for item in items):
        return [*items, Item("", "limit_spent")]
    if not items:
        return [Item("", _EMPTY.get(ending, "empty_answer"))]
    if ending == "refused":
        return [replace(item, reason=item.reason or "refusal") for item in items]
    return items if ending == "complete" else _without_tail(items, _TAIL[ending])


def _without_tail(items: list[Item], reason: str) -> list[Item]:
    return [*items[:-1], replace(items[-1], reason=items[-1].reason or reason)]


def _within_size(items: list[Item], size: int | None) -> list[Item]:
    kept = 0
    for place, item in enumerate(items):
        kept += item.reason is None
        if size is not None and kept > size and item.reason is None:
            items[place] = replace(item, reason="beyond_size")
    return items


def _excerpt(item: Item) -> Item:
    return item if len(item.text) <= _EXCERPT else replace(item, text=item.text[: _EXCERPT - 1] + "…")
