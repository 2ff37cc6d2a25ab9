"""Parse the raw text of an answer: remove reasoning and invented turns, then read JSON or lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from llm_labeler.parsing.data import items_of, read_data
from llm_labeler.parsing.lines import read_lines
from llm_labeler.parsing.phrases import CORRECTS, ECHO, HEAD, LABEL
from llm_labeler.parsing.scripts import is_translation
from llm_labeler.parsing.sentence import SourceText, has_words, names_answer, refine, tidy, why_no_sentence
from llm_labeler.parsing.special_tokens import split_at_tokens, split_thought, without_tokens
from llm_labeler.records import CHANGES, Ending, Item, Polarity, ending_of
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
_EMPTY: Mapping[Ending, str] = {"refused": "refusal", "filtered": "filtered", "failed": "failed"}
_TAIL: Mapping[Ending, str] = {**_EMPTY, "cut": "cut_off", "unknown": "unknown_end"}

_PAGE = re.compile(r"\s*<(?:!doctype|html)\b", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*```[\w+-]{0,20}[ \t]*$|```(?:json)?", re.MULTILINE)
_ENDS = re.compile("\r\n?|[\u2028\u2029\x85]")
_SPACES = dict.fromkeys(map(ord, "\u00a0\u2007\u202f\u3000"), " ")
# Invisible, but not the joiners of Persian, Indic scripts and emoji.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060-\u2064\ufeff]")
_BROKEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_ORDINAL = re.compile(r"[(\[]?(\d{1,3})[.):、\]]{1,2}\s+")
_RULES = "#*_>-|` \t\n"

_FINAL = re.compile(
    r"^[#*_ \t>]*(?:(?:so|thus|therefore|here (?:is|are)|and|now),? ?)?(?:the |my )?(?:final (?:answer"
    r"|output|sentence|version"
    r"|list|result|set)s?\b[^\n:：]{0,60}|(?<=my )response\b"
    r"|最终(?:答案|结果|句子|版本)[^\n:：]{0,20})(?:[:：]"
    r"|[*_ ]*$)[*_ ]*(?=[\s\S]{0,200}?\w)",
    re.IGNORECASE | re.MULTILINE,
)


_ROLE = r"(?:human|user|instructions?|system|customer|用户|人类)"
# A new turn at the start of a line; `_WITHIN`: after a sentence in the same line.
_TURN = re.compile(
    rf"(?:{_ROLE} ?[:：]|#{{2,6}} ?(?:{_ROLE}|input|output|assistant|response|task|example)\b|(?:user"
    rf"|assistant|model|human)$"
    r"|you are a (?:highly smart|helpful)|(?:next |another |new )?(?:example|round|exercise|task|problem"
    r"|question|query|input)"
    r"(?: ?#?\d{1,3} ?[.:]?| ?[:：])?$|(?:example|exercise|round|question|q|query|task) ?#?(?:\d{1,3} ?[.:]"
    r"|[:：])"
    r"|(?:now|next|ok|okay|great)?,? ?(?:let['’]?s |let us |can you |please |could you |now )(?:do|try|move"
    r"|continue|give"
    r"|generate|write|rewrite)\b[^\n]{0,60}\b(?:another|next|same|more|following|again)\b"
    r"|(?:next|another|new) (?:input|sentence|example|one)\b[^\n]{0,30}[:：])",
    re.IGNORECASE,
)
_WITHIN = re.compile(
    r"(?<=[.!?。\"”'’)\]])\s*(?=###? ?\w+|(?:New |Next )?Input(?: sentence| text)? ?:|(?:USER|User|HUMAN"
    r"|Human|ASSISTANT"
    r"|Assistant|Question|Q) ?:|Sentence ?:|用户[:：]|输入句子?[:：]|句子[:：]|You are a highly smart)"
    r"|(?<=[.!?。\"”])(?:assistant|user|model)[ \t]*(?=\n|$)"
)
_SENTENCE = re.compile(
    r"(?:sentence|text|句子|文|satz|oraci[oó]n|frase|phrase|texte|texto) ?[:：][*_]*", re.IGNORECASE
)


def parse_answer(
    raw: str, *, text: str, finish: str = "stop", size: int | None = None, polarity: Polarity | None = None
) -> list[Item]:
    """The sentences of an answer, and its other parts with reasons, in order."""
    source, ending = SourceText.of(normalize("NFC", text)), ending_of(finish)
    before, answer, tail = _split_turns(_plain(raw[:MAX_CHARS]), source)
    is_page = source.lacks("<") and _PAGE.match(answer) is not None and "<li" not in answer
    parsed = [] if is_page else _read(answer[:_MAX_ANSWER], source, size, polarity)
    if not parsed and answer.strip():
        parsed = [Item(tidy(answer), "unparsable")]
    first = next((item for item in parsed if item.reason not in _BEFORE_ANSWER), None)
    if first and first.reason == "refusal":  # the other sentences are a part of it
        parsed = [replace(item, reason=item.reason or "refusal") for item in parsed]
    items = before + parsed
    items += [Item(tidy(tail), "runaway")] if has_words(tail) else []
    items = _compare_items(items, source)
    unread = (answer[_MAX_ANSWER:] + raw[MAX_CHARS:]).strip()
    if ending not in ("complete", "refused") and (data := read_data(answer[:_MAX_ANSWER], source)):
        ending = "complete" if data.is_valid else ending  # whatever the server gives as finish_reason
    items = _mark_end(items, "cut" if unread else ending)
    kept = [index for index, item in enumerate(items) if item.reason is None]
    for index in kept[size:] if size is not None else ():
        items[index] = replace(items[index], reason="beyond_size")
    items += [Item(tidy(_plain(unread[:_EXCERPT])), "unread")] if unread else []
    return [
        replace(item, text=item.text[: _EXCERPT - 1] + "…")
        if item.reason and len(item.text) > _EXCERPT
        else item
        for item in items
    ]


def _plain(raw: str) -> str:
    """Unify line ends and spaces, compose letters (NFC), and replace control characters and surrogates.

    NFC and not NFKC, which would change what the sentences say: 10² to 102.
    """
    visible = _INVISIBLE.sub("", _ENDS.sub("\n", raw))
    return normalize("NFC", _BROKEN.sub("\ufffd", visible)).translate(_SPACES)


def _read(text: str, source: SourceText, size: int | None, polarity: Polarity | None) -> list[Item]:
    """Read JSON, a code block, or all lines."""
    if text.strip()[:1] == '"' and "\\" in text:
        with suppress(ValueError):
            text = _plain(str(json.loads(text, strict=False)))  # the answer is a JSON string
    data = read_data(text, source)
    if data is None:
        fences = [*_FENCE.finditer(text)] if source.lacks("`") else []
        end = fences[1].start() if len(fences) > 1 else len(text)
        if not fences or not has_words(text[fences[0].end() : end]):
            return read_lines(_FENCE.sub("", text) if fences else text, source, size, polarity)
        items = read_lines(text[fences[0].end() : end], source, size, polarity)
        return [*_outside(text[: fences[0].start()], source), *items, *_outside(text[end:], source)]
    strings = [item for value in data.values for item in items_of(value, source, polarity)]
    kept = sum(item.reason is None for item in strings)
    items = []
    for item in strings:
        if item.reason is not None:
            items.append(replace(item, text=tidy(_plain(item.text))))
        elif kept == 1 and "\n" in item.text.strip():
            items += read_lines(_plain(item.text), source, size, polarity)  # a list within the only string
        else:
            items += refine(_plain(item.text), source, is_value=kept > 1)
    if not data.is_closed and items:
        items[-1] = replace(items[-1], reason=items[-1].reason or "cut_off")
    items = items or [Item("", "empty_answer")]
    return [*_outside(data.before, source), *items, *_outside(data.after, source)]


def _outside(text: str, source: SourceText) -> list[Item]:
    """The paragraphs around JSON or a code block."""
    blocks = filter(has_words, (tidy(_FENCE.sub("", block)) for block in text.split("\n\n")))
    return [Item(block, why_no_sentence(block, source) or "outside_list") for block in blocks]


def _split_turns(raw: str, source: SourceText) -> tuple[list[Item], str, str]:
    """Split into items before the answer, the answer, and turns that the model invented after it."""
    thought, rest = split_thought(
        raw, lambda text: source.lacks("<") and any(_is_sentence(line, source) for line in text.split("\n"))
    )
    if _FINAL.search(source.text) is None and (finals := [*_FINAL.finditer(rest)]) and finals[-1].start():
        thought, rest = thought + rest[: finals[-1].start()], rest[finals[-1].end() :]
    question, answer, tail = split_at_tokens(rest, source)
    bare = answer.lstrip(_RULES)
    if source.begins(ECHO, bare.partition("\n")[0][:2000]) or source.begins(_TURN, bare[:2000]):
        for match in re.finditer(r"(?:^[#*_ \t>]*|(?<=[\s.。\"”]))(?=\S)", bare, re.MULTILINE):
            if match.start() and (head := HEAD.match(bare, match.end())):
                question, answer = question + bare[: match.start()], bare[head.end() :]
                break
    end = _turn_end(answer, source)
    before = [
        Item(tidy(without_tokens(thought)), "thinking"),
        Item(tidy(question), "echo"),
    ]
    return [item for item in before if has_words(item.text)], answer[:end], answer[end:] + tail


def _turn_end(text: str, source: SourceText) -> int:
    """Index where the answer ends and an invented turn begins: a question after a sentence."""
    has_sentence, offset = False, 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        bare = line[:2000].strip(_RULES)
        may_open = bare and (has_sentence or (_SENTENCE.match(bare) and not source.resembles(bare)))
        if may_open and _opens_turn(line.strip(), bare, lines[number + 1 : number + 4], source):
            return offset
        match = _WITHIN.search(line)
        if match is not None and match.start() and source.lacks(_WITHIN):
            has_sentence = has_sentence or _is_sentence(line[: match.start()], source)
            if has_sentence and not _is_about_source(line[match.end() : match.end() + 400], source):
                return offset + match.start()
        has_sentence = has_sentence or _is_sentence(line, source)
        offset += len(line) + 1
    return len(text)


def _is_sentence(line: str, source: SourceText) -> bool:
    piece = tidy(line[:2000].strip(_RULES))
    piece = piece.partition(":")[2] or piece if LABEL.match(piece) else piece
    return has_words(piece) and why_no_sentence(piece, source) is None and not _SENTENCE.match(piece)


def _is_about_source(question: str, source: SourceText) -> bool:
    """Whether a question is about the text that was asked about."""
    match = ECHO.match(question) or _SENTENCE.match(question)
    about = question[match.end() :].strip("\"'“”「」*_ ").casefold() if match else ""
    return bool(about) and about.startswith(source.text[:40].casefold())


def _opens_turn(line: str, bare: str, below: list[str], source: SourceText) -> bool:
    """Whether a line below a sentence begins another turn."""
    if source.begins(_TURN, bare) or source.begins(_TURN, line):
        return True
    match = source.begins(ECHO, bare) or source.begins(_SENTENCE, bare)
    if match is None or _is_about_source(bare, source):
        return False
    question = bare[match.end() :]
    after = next((line.strip(_RULES) for line in below if line.strip(_RULES)), "")
    answers = after.endswith((":", "：")) or HEAD.match(after) or after[:1] in ("[", "{")
    has_question = has_words(question) and (answers or names_answer(after) or names_answer(question))
    return bool(has_question) or _SENTENCE.match(bare) is None


def _compare_items(items: list[Item], source: SourceText) -> list[Item]:
    """Drop items before a correction, and translations; remove numbering and separators of all items."""
    sentences = [n for n, item in enumerate(items) if item.reason is None]
    correction = max(
        (n for n, item in enumerate(items) if item.reason and CORRECTS.match(item.text)), default=-1
    )
    if sentences and correction < sentences[-1]:
        items = [
            replace(item, reason=item.reason or "thinking") if n < correction else item
            for n, item in enumerate(items)
        ]
    matches = [_ORDINAL.match(item.text) for item in items if item.reason is None]
    if len(matches) > 1 and [int(match[1]) for match in matches if match] == [*range(1, len(matches) + 1)]:
        items = [
            item if item.reason else replace(item, text=_ORDINAL.sub("", item.text, count=1))
            for item in items
        ]
    foreign = {
        n for n, item in enumerate(items) if item.reason is None and is_translation(item.text, source.text)
    }
    if any(n not in foreign for n, item in enumerate(items) if item.reason is None):
        items = [replace(item, reason="remark") if n in foreign else item for n, item in enumerate(items)]
    kept = [item.text for item in items if item.reason is None]
    separator = next(
        (s for s in ";；,，、" if source.lacks(s) and all(text.endswith(s) for text in kept[:-1])), ""
    )
    return [
        replace(item, text=item.text.rstrip(separator)) if len(kept) > 1 and not item.reason else item
        for item in items
    ]


def _mark_end(items: list[Item], ending: Ending) -> list[Item]:
    """Drop the last sentence of an answer that may be incomplete."""
    if ending == "cut" and all(item.reason == "thinking" for item in items):
        return [*items, Item("", "limit_spent")]
    if not items:
        return [Item("", _EMPTY.get(ending, "empty_answer"))]
    if ending == "refused":
        return [replace(item, reason=item.reason or "refusal") for item in items]
    if ending != "complete" and items[-1].reason in (None, "cut_off"):
        return [*items[:-1], replace(items[-1], reason=_TAIL[ending])]
    return items


# The kind of change before a hard negative: `negation: …`.
_CHANGE_LABEL = re.compile(
    r"^([ \t]{0,20}(?:\d{1,3}[ \t]?[.):][ \t]{0,9}|[-*•][ \t]{1,9})?)"
    rf"[*_\[(\"']{{0,3}}({'|'.join(CHANGES)})"
    r"(?:[ \t]change)?[*_\])\"']{0,3}[ \t]{0,9}[:：–—-][*_]{0,2}[ \t]{0,9}",
    re.IGNORECASE | re.MULTILINE,
)
_MAX_LINE = 4000  # characters


def parse_hard_negatives(raw: str, *, text: str, finish: str, size: int | None) -> list[Item]:
    """Like `parse_answer` for negatives; each item has the kind of change that its line begins with."""
    plain = _from_json(raw[:MAX_CHARS])
    finish = "stop" if plain and ending_of(finish) != "refused" else finish
    plain = plain or raw
    kinds: dict[tuple[str, ...], str] = {}
    for match in _CHANGE_LABEL.finditer(plain):
        line = plain[match.end() : match.end() + _MAX_LINE].partition("\n")[0]
        kinds[_words_of(line)] = match[2].lower()
    bare = _CHANGE_LABEL.sub(r"\1", plain)
    items = parse_answer(bare, text=text, finish=finish, size=size, polarity="negative")
    return [replace(item, change=kinds.get(_words_of(item.text))) for item in items]


def _from_json(raw: str) -> str | None:
    """Convert an answer that fits the schema to a list of lines; None for any other."""
    try:
        answer = json.loads(raw)
        lines = [f"{item['kind']}: {' '.join(item['sentence'].split())}" for item in answer["sentences"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _words_of(sentence: str) -> tuple[str, ...]:
    return tuple(terms(sentence))
