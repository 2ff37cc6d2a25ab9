"""Parse the raw text of an answer: remove reasoning and invented turns, then read JSON or lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from llm_labeler.parsing.data import items_of, read_data
from llm_labeler.parsing.lines import read_lines
from llm_labeler.parsing.phrases import CORRECTS, why_no_sentence
from llm_labeler.parsing.sentence import refine
from llm_labeler.parsing.source_text import (
    SourceText,
    has_words,
    is_translation,
    joined,
    tidy,
)
from llm_labeler.parsing.turns import split_thought, split_turns
from llm_labeler.records import CHANGES, Ending, Item, Items, Polarity, ending_of
from pairkit.base.printable import normalize
from pairkit.similarity.terms import terms

# Why a piece of an answer is not a candidate.
REASONS: Mapping[str, str] = {
    "empty_answer": "the answer has no text",
    "unparsable": "not readable as a sentence, such as symbols without words or deeply nested JSON",
    "unread": "beyond the first million characters, or the first 100,000 without reasoning",
    "thinking": "the model's reasoning and drafts, in <think> tags or before the final answer",
    "echo": "a repetition of the prompt or the sentence",
    "runaway": "another turn that the model invented after its answer",
    "preamble": "an introduction or a heading",
    "closing_note": "a remark about the sentences: a note, an explanation, an offer of help",
    "remark": "a remark in the line of a sentence: in brackets, after a dash, a translation",
    "other_polarity": "labelled with the polarity that was not requested",
    "refusal": "the model declines, asks for something else, or answers a question",
    "outside_list": "other text before or after a list or JSON",
    "sub_item": "a point below an item of the list",
    "side_field": "another field of a JSON object, or another column of a table",
    "not_text": "JSON has a number, a boolean or null instead of a sentence",
    "cut_off": "the last sentence of an answer that reached the token limit, max_tokens",
    "limit_spent": "the token limit was reached before the answer began, usually by reasoning; raise"
    " max_tokens of the LLM, or turn its reasoning off in its `extra`",
    "filtered": "a content filter ended the answer: its last sentence, or an empty answer",
    "failed": "the model failed while it answered: the last sentence",
    "unknown_end": "the last sentence of an answer with an unknown finish_reason",
    "beyond_size": "more sentences than requested",
}
MAX_CHARS = 1_000_000  # of an answer with its reasoning; the rest is not read
_MAX_ANSWER = 100_000  # of an answer without its reasoning
_EXCERPT = 500  # characters kept of a dropped piece
_BEFORE_ANSWER = ("thinking", "echo", "preamble", "outside_list")
_EMPTY = {
    "refused": "refusal",
    "filtered": "filtered",
    "failed": "failed",
}
_TAIL = {**_EMPTY, "cut": "cut_off", "unknown": "unknown_end"}

_PAGE = re.compile(r"\s*<(?:!doctype|html)\b", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*```[\w+-]{0,20}[ \t]*$|```(?:json)?", re.MULTILINE)
_ENDS = re.compile("\r\n?|[\u2028\u2029\x85]")
_SPACES = dict.fromkeys(map(ord, "\u00a0\u2007\u202f\u3000"), " ")
# Invisible, but not the joiners of Persian, Indic scripts and emoji.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060-\u2064\ufeff]")
_BROKEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_ORDINAL = re.compile(r"[(\[]?(\d{1,3})[.):、\]]{1,2}\s+")
_SEPARATORS = ";；,，、"  # between sentences

# The kind of change before a hard negative: `negation: …` or `[negation] …`.
_CHANGE_LABEL = re.compile(
    joined(rf"""
    (?:^(?:#{{1,6}}[ \t])?|(?<=>))([ \t]{{0,20}}(?:\d{{1,3}}[ \t]?[.):][ \t]{{0,9}}|[-*•][ \t]{{1,9}})?)
    (?:kind: )?[*_`\[(<"']{{0,3}}({"|".join(CHANGES)})(?:[ \t]change)?(?:[ \t]\([^()\n]{{1,60}}\))?
    (?:[*_`\])"']{{0,3}}[ \t]{{0,9}}(?:[:：–—-]|(?=\n))|[\])>])[*_]{{0,2}}\s{{0,20}}(?:[-•][ \t]{{1,9}})?
"""),
    re.IGNORECASE | re.MULTILINE,
)
_LINE_END = re.compile(r"\n|</")


def parse_answer(
    raw: str,
    *,
    text: str,
    finish: str = "stop",
    size: int | None = None,
    polarity: Polarity | None = None,
) -> Items:
    """The sentences of an answer, and its other parts with reasons, in order."""
    source = SourceText.of(normalize("NFC", text), size, polarity)
    before, answer, tail = split_turns(_plain(raw[:MAX_CHARS]), source)
    unread = (answer[_MAX_ANSWER:] + raw[MAX_CHARS:]).strip()

    items = before + _read_answer(answer, source)
    if has_words(tail):
        items.append(Item(tidy(tail), "runaway"))
    items = _drop_before_correction(items)
    items = _without_common_signs(items, source)
    items = _drop_translations(items, source)
    ending: Ending = "cut" if unread else _ending_of(finish, answer, source)
    items = _mark_end(items, ending)

    if size is not None:
        beyond = _kept(items)[size:]
        items = _dropped(items, beyond, "beyond_size")
    if unread:
        items.append(Item(tidy(_plain(unread[:_EXCERPT])), "unread"))
    return [_shortened(item) for item in items]


def _kept(items: Sequence[Item]) -> list[int]:
    """The indices of the sentences."""
    return [index for index, item in enumerate(items) if item.reason is None]


def _dropped(items: Sequence[Item], indices: Iterable[int], reason: str) -> Items:
    """The items, with a reason for those of these indices that have none."""
    result = list(items)
    for index in indices:
        result[index] = replace(result[index], reason=result[index].reason or reason)
    return result


def _shortened(item: Item) -> Item:
    if item.reason is None or len(item.text) <= _EXCERPT:
        return item
    return replace(item, text=item.text[: _EXCERPT - 1] + "…")


def _ending_of(finish: str, answer: str, source: SourceText) -> Ending:
    """How an answer ended: with valid JSON it is complete, whatever the server gives as finish_reason."""
    ending = ending_of(finish)
    if ending not in ("complete", "refused"):
        data = read_data(answer, source)
        if data and data.is_valid:
            return "complete"
    return ending


def _read_answer(answer: str, source: SourceText) -> Items:
    """The items of an answer; all are refused if the first is a refusal, as the others belong to it."""
    is_page = source.lacks("<") and _PAGE.match(answer) and "<li" not in answer
    items = [] if is_page else _read(answer[:_MAX_ANSWER], source)
    if not items and answer.strip():
        return [Item(tidy(answer), "unparsable")]
    for item in items:
        if item.reason == "refusal":
            return _dropped(items, range(len(items)), "refusal")
        if item.reason not in _BEFORE_ANSWER:
            break
    return items


def _plain(raw: str) -> str:
    """Unify line ends and spaces, compose letters (NFC), and replace control characters and surrogates.

    NFC and not NFKC, which would change what the sentences say: 10² to 102.
    """
    visible = _INVISIBLE.sub("", _ENDS.sub("\n", raw))
    return normalize("NFC", _BROKEN.sub("\ufffd", visible)).translate(_SPACES)


def _read(text: str, source: SourceText) -> Items:
    """Read JSON, a code block, or all lines."""
    if text.strip()[:1] == '"' and "\\" in text:
        with suppress(ValueError):
            # The whole answer may be a JSON string.
            text = _plain(str(json.loads(text, strict=False)))
    data = read_data(text, source)
    if data is None:
        return _read_code_block(text, source)
    strings = [item for value in data.values for item in items_of(value, source)]
    kept = len(_kept(strings))
    items = []
    for item in strings:
        text = _plain(item.text)
        if item.reason is not None:
            items.append(replace(item, text=tidy(text)))
        elif kept == 1 and "\n" in item.text.strip():
            items += read_lines(text, source)  # a list within the only string
        else:
            items += refine(text, source, is_value=kept > 1)
    if not items:
        items.append(Item("", "empty_answer"))
    elif not data.is_closed:
        items = _dropped(items, [-1], "cut_off")
    return [*_outside(data.before, source), *items, *_outside(data.after, source)]


def _read_code_block(text: str, source: SourceText) -> Items:
    """Read the lines of the first code block; all lines without one, or if it is empty."""
    opening = _FENCE.search(text)
    if opening is None or not source.lacks("`"):
        return read_lines(text, source)
    closing = _FENCE.search(text, opening.end())
    end = closing.start() if closing else len(text)
    block = text[opening.end() : end]
    if not has_words(block):
        return read_lines(_FENCE.sub("", text), source)
    before = _outside(text[: opening.start()], source)
    return [*before, *read_lines(block, source), *_outside(text[end:], source)]


def _outside(text: str, source: SourceText) -> Items:
    """The paragraphs around JSON or a code block."""
    items = []
    for block in text.split("\n\n"):
        paragraph = tidy(_FENCE.sub("", block))
        if has_words(paragraph):
            reason = why_no_sentence(paragraph, source) or "outside_list"
            items.append(Item(paragraph, reason))
    return items


def _drop_before_correction(items: Items) -> Items:
    """Drop the sentences before a correction, if there are others behind it."""
    kept = _kept(items)
    corrections = [
        n for n, item in enumerate(items) if item.reason and CORRECTS.match(item.text)
    ]
    if not corrections or not kept or corrections[-1] > kept[-1]:
        return items
    return _dropped(items, range(corrections[-1]), "thinking")


def _without_common_signs(items: Items, source: SourceText) -> Items:
    """Remove the numbers before all sentences, and a separator that ends all but the last."""
    texts = [items[index].text for index in _kept(items)]
    if len(texts) < 2:
        return items
    ordinals = [int(match[1]) for match in map(_ORDINAL.match, texts) if match]
    if ordinals == list(range(1, len(texts) + 1)):
        texts = [_ORDINAL.sub("", text, count=1) for text in texts]
    for separator in filter(source.lacks, _SEPARATORS):
        if all(text.endswith(separator) for text in texts[:-1]):
            texts = [text.rstrip(separator) for text in texts]
    remaining = iter(texts)
    return [
        item if item.reason else replace(item, text=next(remaining)) for item in items
    ]


def _drop_translations(items: Items, source: SourceText) -> Items:
    """Drop sentences in another script, unless all are."""
    kept = _kept(items)
    foreign = [
        index for index in kept if is_translation(items[index].text, source.text)
    ]
    return items if foreign == kept else _dropped(items, foreign, "remark")


def _mark_end(items: Items, ending: Ending) -> Items:
    """Drop the last sentence of an answer that may be incomplete."""
    if ending == "cut" and all(item.reason == "thinking" for item in items):
        return [*items, Item("", "limit_spent")]
    if not items:
        return [Item("", _EMPTY.get(ending, "empty_answer"))]
    if ending == "refused":
        return _dropped(items, range(len(items)), "refusal")
    if ending != "complete" and items[-1].reason in (None, "cut_off"):
        return [*items[:-1], replace(items[-1], reason=_TAIL[ending])]
    return items


def parse_hard_negatives(
    raw: str, *, text: str, finish: str, size: int | None
) -> Items:
    """Like `parse_answer` for negatives; each item has the kind of change that its answer names."""
    label = _CHANGE_LABEL
    own = label.match(text)
    if own:  # the text begins like a label, as does its rewrite behind the label
        label = re.compile(rf"{label.pattern}(?={own[2]}\b)", label.flags)
    source = SourceText.of(normalize("NFC", text))
    _, answer = split_thought(raw[:MAX_CHARS])
    data = read_data(answer, source)
    if data is None:
        kinds = _kinds_in_text(answer, label)
        raw = label.sub(r"\1", raw)
    else:
        kinds = _kinds_in(data.values, label)
    changes = {}
    for kind, sentence in kinds:
        for item in refine(sentence, source):
            changes[_words_of(item.text)] = kind

    items = parse_answer(raw, text=text, finish=finish, size=size, polarity="negative")
    result = []
    for item in items:
        is_kind = item.reason == "side_field" and item.text.lower() in CHANGES
        if not is_kind:  # which the items of the sentences have
            sentence = label.sub("", item.text, count=1) or item.text
            change = changes.get(_words_of(sentence))
            result.append(replace(item, text=sentence, change=change))
    return result


def _kinds_in_text(text: str, label: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """The kinds of change that precede sentences, with the rest of each line."""
    _, *parts = label.split(text)
    for kind, rest in zip(parts[1::3], parts[2::3], strict=True):
        sentence, *_ = _LINE_END.split(rest, maxsplit=1)
        yield kind.lower(), sentence


def _kinds_in(
    value: object, label: re.Pattern[str], kind: str | None = None
) -> Iterator[tuple[str, str]]:
    """The kinds of change in a JSON value, with their sentences."""
    if isinstance(value, str):
        yield from _kinds_in_text(value, label)
        if kind is not None:
            yield kind, value
    elif isinstance(value, list):
        for element in value:
            yield from _kinds_in(element, label, kind)
    elif isinstance(value, dict):
        names = (inner.lower() for inner in value.values() if isinstance(inner, str))
        stated = next((name for name in names if name in CHANGES), kind)
        for key, inner in value.items():
            name = key.lower()
            yield from _kinds_in(inner, label, name if name in CHANGES else stated)


def _words_of(sentence: str) -> tuple[str, ...]:
    return tuple(terms(sentence))
