"""From the raw text of an answer to its items: thoughts and made-up turns off, then JSON or lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType

from llm_labeler.parsing.data import items_of, read_data
from llm_labeler.parsing.lines import read_lines
from llm_labeler.parsing.phrases import ABOUT, CORRECTS, ECHO, HEAD, LABEL
from llm_labeler.parsing.scripts import is_translation
from llm_labeler.parsing.sentence import SourceText, has_words, refine, tidy, why_no_sentence
from llm_labeler.records import CHANGES, Ending, Item, Polarity, ending_of

# Why a piece of an answer is not a candidate, as far as the answer's shape tells.
REASONS: Mapping[str, str] = MappingProxyType(
    {
        "empty_answer": "the answer has no text",
        "unparsable": "it can't be read as a sentence: signs without words, JSON that is nested too deeply",
        "unread": "it is beyond the first million characters, or the first 100,000 without thoughts",
        "thinking": "the model's reasoning and its drafts, between <think> marks or before its final answer",
        "echo": "the prompt, or the sentence asked about, said again",
        "runaway": "another turn that the model made up after its answer",
        "preamble": "it introduces the sentences, or is a heading above them",
        "closing_note": "a remark about the sentences: a note, an explanation, an offer of help",
        "remark": "a remark in the line of a sentence: a bracket, what follows a dash, a translation",
        "other_polarity": "it is under a heading or a name of the polarity that was not asked for",
        "refusal": "the model declines, asks for something else, or answers a question",
        "outside_list": "it is before or after a list or JSON and none of the above",
        "sub_item": "a point below an item of the list",
        "side_field": "a field of a JSON object, or a column of a table, beside the sentence",
        "not_text": "JSON has a number, a truth value or nothing where a sentence should be",
        "cut_off": "the last of an answer that ended at the token limit; raise max_tokens if there are many",
        "limit_spent": "the token limit was used up, as a rule by reasoning, before the answer began; raise"
        " max_tokens of the LLM, or turn its reasoning off in its `extra`",
        "filtered": "a content filter ended the answer: its last sentence, or all of an empty one",
        "failed": "the server says that the model failed: the answer's last sentence",
        "unknown_end": "the last of an answer that the server doesn't say, in a known word, is whole",
        "beyond_size": "more sentences than were asked for",
    }
)
MAX_CHARS = 1_000_000  # of an answer with its thoughts; what is beyond is not read
_MAX_ANSWER = 100_000  # of it without thoughts
_EXCERPT = 500  # characters kept of what is turned down
_BEFORE = ("thinking", "echo", "preamble", "outside_list")
_EMPTY: Mapping[Ending, str] = {"refused": "refusal", "filtered": "filtered", "failed": "failed"}
_TAIL: Mapping[Ending, str] = {
    "cut": "cut_off",
    "filtered": "filtered",
    "failed": "failed",
    "unknown": "unknown_end",
}

_PAGE = re.compile(r"\s*<(?:!doctype|html)\b", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*```[\w+-]{0,20}[ \t]*$|```(?:json)?", re.MULTILINE)
_ENDS = re.compile("\r\n?|[\u2028\u2029\x85]")
_SPACES = dict.fromkeys(map(ord, "\u00a0\u2007\u202f\u3000"), " ") | dict.fromkeys((0x200B, 0xFEFF))
_BROKEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_ORDINAL = re.compile(r"[(\[]?(\d{1,3})[.):、\]]{1,2}\s+")
_RULES = "#*_>-|` \t\n"

_THOUGHT_END = re.compile(
    r"</(?:think(?:ing)?|thoughts?|reasoning)>|\[/THINK\]|◁/think▷|(?<=[.!?。)\"”\s])assistantfinal"
    r"|(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>",
    re.IGNORECASE,
)
_THOUGHT = re.compile(
    r"<(?:think(?:ing)?|thoughts?|reasoning)>|\[THINK\]|◁think▷|<\|channel\|>(?:analysis"
    r"|commentary)<\|message\|>",
    re.IGNORECASE,
)
_FINAL = re.compile(
    r"^[#*_ \t>]*(?:(?:so|thus|therefore|here (?:is|are)|and|now),? ?)?(?:the |my )?(?:final (?:answer"
    r"|output|sentence|version"
    r"|list|result|set)s?\b[^\n:：]{0,60}|最终(?:答案|结果|句子|版本)[^\n:：]{0,20})(?:[:：]"
    r"|[*_ ]*$)[*_ ]*(?=[\s\S]{0,200}?\w)",
    re.IGNORECASE | re.MULTILINE,
)


def _of_role(role: str) -> str:
    """How families of chat templates mark that a role begins."""
    return (
        rf"<\|(?:im_)?(?:start\|>)?{role}(?:_token)?\|>|<\|(?:im_)?start\|>{role}|<start_of_turn>{role}"
        rf"|<[｜|]{role}[｜|]>"
        rf"|<\|(?:start_header_id|header_start)\|>{role}<\|(?:end_header_id|header_end)\|>|\[\|{role}\|\]"
    )


_CHAT = re.compile(
    rf"(?P<prompt>\[INST\]|{_of_role('(?:user|human|system|developer|observation)')})"
    rf"|(?P<answer>\[/INST\]|{_of_role('(?:assistant|model|chatbot|bot)')})"
    r"|(?P<end></s>|<[|｜](?:im_end|eot(?:_id)?|eom_id|endoftext|end_of_text|end|return"
    r"|end▁of▁sentence)[|｜]>"
    r"|<(?:end_of_turn|eos|eop)>|\[\|endofturn\|\])",
    re.IGNORECASE,
)
_NO_MARK = re.compile(r"<s>|<</?SYS>>|<\|(?:begin_of_text|message|pad)\|>", re.IGNORECASE)
_ROLE = r"(?:human|user|instructions?|system|customer|用户|人类)"
# A line of a new turn, whatever follows, and the same behind a sentence within its line.
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
    r"|Assistant|Question|Q) ?:|用户[:：]|输入句子?[:：]|You are a highly smart)"
    r"|(?<=[.!?。\"”])(?:assistant|user|model)[ \t]*(?=\n|$)"
)
_SENTENCE = re.compile(r"(?:sentence|text|句子) ?[:：][*_]*", re.IGNORECASE)


def parse_answer(
    raw: str, *, text: str, finish: str = "stop", size: int | None = None, polarity: Polarity | None = None
) -> list[Item]:
    """The sentences in one answer, and everything else in it with a reason, in the order of the answer."""
    source, ending = SourceText.of(text), ending_of(finish)
    before, answer, tail = _split_turns(_plain(raw[:MAX_CHARS]), source)
    is_page = source.lacks("<") and _PAGE.match(answer) is not None and "<li" not in answer
    found = [] if is_page else _read(answer[:_MAX_ANSWER], source, size, polarity)
    if not found and answer.strip():
        found = [Item(tidy(answer), "unparsable")]
    items = before + _after_refusal(found)
    items += [Item(tidy(tail), "runaway")] if has_words(tail) else []
    items = _compared(items, source)
    unread = (answer[_MAX_ANSWER:] + raw[MAX_CHARS:]).strip()
    items = _ended(items, "cut" if unread else ending)
    kept = [place for place, item in enumerate(items) if item.reason is None]
    for place in kept[size:] if size is not None else ():
        items[place] = replace(items[place], reason="beyond_size")
    items += [Item(tidy(_plain(unread[:_EXCERPT])), "unread")] if unread else []
    return [
        replace(item, text=item.text[: _EXCERPT - 1] + "…")
        if item.reason and len(item.text) > _EXCERPT
        else item
        for item in items
    ]


def _plain(raw: str) -> str:
    """An answer with one kind of line end and space, and without signs that no file can hold."""
    return _BROKEN.sub("\ufffd", _ENDS.sub("\n", raw)).translate(_SPACES)


def _read(text: str, source: SourceText, size: int | None, polarity: Polarity | None) -> list[Item]:
    """The items of JSON, of what is between fences, or of all lines."""
    if text.strip()[:1] == '"' and "\\" in text:
        with suppress(ValueError):
            text = _plain(str(json.loads(text, strict=False)))  # it was encoded as a JSON string
    found = read_data(text, source)
    if found is None:
        fences = [*_FENCE.finditer(text)] if source.lacks("`") else []
        end = fences[1].start() if len(fences) > 1 else len(text)
        if not fences or not has_words(text[fences[0].end() : end]):
            return read_lines(_FENCE.sub("", text) if fences else text, source, size, polarity)
        items = read_lines(text[fences[0].end() : end], source, size, polarity)
        return [*_outside(text[: fences[0].start()], source), *items, *_outside(text[end:], source)]
    strings = [item for value in found.values for item in items_of(value, source, polarity)]
    kept = sum(item.reason is None for item in strings)
    items = []
    for item in strings:
        if item.reason is not None:
            items.append(replace(item, text=tidy(_plain(item.text))))
        elif kept == 1 and "\n" in item.text.strip():
            items += read_lines(_plain(item.text), source, size, polarity)  # a list within the only string
        else:
            items += refine(_plain(item.text), source, is_value=kept > 1)
    if not found.is_closed and items:
        items[-1] = replace(items[-1], reason=items[-1].reason or "cut_off")
    items = items or [Item("", "empty_answer")]
    return [*_outside(found.before, source), *items, *_outside(found.after, source)]


def _outside(text: str, source: SourceText) -> list[Item]:
    """Paragraphs around JSON or a fence."""
    blocks = [tidy(_FENCE.sub("", block)) for block in text.split("\n\n")]
    return [Item(said, why_no_sentence(said, source) or "outside_list") for said in blocks if has_words(said)]


def _split_turns(raw: str, source: SourceText) -> tuple[list[Item], str, str]:
    """What comes before the answer, the answer, and what the model made up behind it."""
    ends = [match.end() for match in _THOUGHT_END.finditer(raw)]
    thought, said = raw[: ends[-1] if ends else 0], raw[ends[-1] if ends else 0 :]
    if (begins := _THOUGHT.search(said)) is not None:
        thought, said = thought + said[begins.start() :], said[: begins.start()]
    if _FINAL.search(source.text) is None and (finals := [*_FINAL.finditer(said)]) and finals[-1].start():
        thought, said = thought + said[: finals[-1].start()], said[finals[-1].end() :]
    question, answer, tail = _between_marks(said, source)
    bare = answer.lstrip(_RULES)
    if source.begins(ECHO, bare.partition("\n")[0][:2000]) or source.begins(_TURN, bare[:2000]):
        for match in re.finditer(r"(?:^[#*_ \t>]*|(?<=[\s.。\"”]))(?=\S)", bare, re.MULTILINE):
            if match.start() and (head := HEAD.match(bare, match.end())):
                question, answer = question + bare[: match.start()], bare[head.end() :]
                break
    end = _turn_end(answer, source)
    before = [
        Item(tidy(_THOUGHT.sub("", _THOUGHT_END.sub("", thought))), "thinking"),
        Item(tidy(question), "echo"),
    ]
    return [item for item in before if has_words(item.text)], answer[:end], answer[end:] + tail


def _between_marks(said: str, source: SourceText) -> tuple[str, str, str]:
    """Prompt, answer and rest of what is said between the marks of a chat template."""
    said = _NO_MARK.sub(" ", said)
    if not (marks := [*_CHAT.finditer(said)]):
        return "", said, ""
    kinds = ["answer", *(match.lastgroup for match in marks)]
    starts, ends = [0, *(match.end() for match in marks)], [*(match.start() for match in marks), len(said)]
    spans = [(kind, a, b) for kind, a, b in zip(kinds, starts, ends, strict=True) if has_words(said[a:b])]
    if spans and spans[0][1] == 0 and len(spans) > 1 and source.begins(ECHO, said.lstrip()):
        del spans[0]
    first = next(
        (span for kind in ("answer", "end") for span in spans if span[0] == kind), ("", len(said), len(said))
    )
    before, answer, tail = said[: first[1]], said[first[1] : first[2]], said[first[2] :]
    return _CHAT.sub(" ", before), _CHAT.sub(" ", answer), _CHAT.sub(" ", tail)


def _turn_end(text: str, source: SourceText) -> int:
    """Where the answer ends and a made-up turn begins: a question below or behind a sentence."""
    has_sentence, place = False, 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        bare = line[:2000].strip(_RULES)
        if has_sentence and bare and _opens(line.strip(), bare, lines[number + 1 : number + 4], source):
            return place
        match = _WITHIN.search(line)
        if match is not None and match.start() and source.lacks(_WITHIN):
            has_sentence = has_sentence or _is_sentence(line[: match.start()], source)
            if has_sentence and not _is_about(line[match.end() : match.end() + 400], source):
                return place + match.start()
        has_sentence = has_sentence or _is_sentence(line, source)
        place += len(line) + 1
    return len(text)


def _is_sentence(line: str, source: SourceText) -> bool:
    said = tidy(line[:2000].strip(_RULES))
    said = said.partition(":")[2] or said if LABEL.match(said) else said
    return has_words(said) and why_no_sentence(said, source) is None and not _SENTENCE.match(said)


def _is_about(said: str, source: SourceText) -> bool:
    """Whether a question is about the text asked about."""
    match = ECHO.match(said) or _SENTENCE.match(said)
    about = said[match.end() :].strip("\"'“”「」*_ ").casefold() if match else ""
    return bool(about) and about.startswith(source.text[:40].casefold())


def _opens(line: str, bare: str, below: list[str], source: SourceText) -> bool:
    """Whether a line below a sentence begins another turn."""
    if source.begins(_TURN, bare) or source.begins(_TURN, line):
        return True
    match = source.begins(ECHO, bare) or source.begins(_SENTENCE, bare)
    if match is None or _is_about(bare, source):
        return False
    after = next((line.strip(_RULES) for line in below if line.strip(_RULES)), "")
    answers = after.endswith((":", "：")) or HEAD.match(after) or after[:1] in ("[", "{")
    is_asked = has_words(bare[match.end() :]) and (answers or (LABEL.match(after) and ABOUT.match(after)))
    return bool(is_asked) or _SENTENCE.match(bare) is None


def _after_refusal(items: list[Item]) -> list[Item]:
    """Nothing that follows a refusal is an answer."""
    first = next((item for item in items if item.reason not in _BEFORE), None)
    if first is None or first.reason != "refusal":
        return items
    return [item if item.reason else replace(item, reason="refusal") for item in items]


def _compared(items: list[Item], source: SourceText) -> list[Item]:
    """Items without those, and without signs, that only the others betray."""
    places = [place for place, item in enumerate(items) if item.reason is None]
    taken_back = max(
        (n for n, item in enumerate(items) if item.reason and CORRECTS.match(item.text)), default=-1
    )
    if places and taken_back < places[-1]:
        items = [
            replace(item, reason=item.reason or "thinking") if n < taken_back else item
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
    sign = next(
        (s for s in ";；,，、" if source.lacks(s) and all(said.endswith(s) for said in kept[:-1])), ""
    )
    return [
        replace(item, text=item.text.rstrip(sign)) if len(kept) > 1 and not item.reason else item
        for item in items
    ]


def _ended(items: list[Item], ending: Ending) -> list[Item]:
    """Items without what an answer that isn't known to be whole may have broken off in."""
    if ending == "cut" and all(item.reason == "thinking" for item in items):
        return [*items, Item("", "limit_spent")]
    if not items:
        return [Item("", _EMPTY.get(ending, "empty_answer"))]
    if ending == "refused":
        return [replace(item, reason=item.reason or "refusal") for item in items]
    last = items[-1].reason
    tail = (
        replace(items[-1], reason=_TAIL[ending] if last in (None, "cut_off") else last)
        if ending != "complete"
        else items[-1]
    )
    return [*items[:-1], tail]


# The kind of change before a hard negative: `negation: …`.
_CHANGE_LABEL = re.compile(
    r"^([ \t]{0,20}(?:\d{1,3}[ \t]?[.):][ \t]{0,9}|[-*•][ \t]{1,9})?)"
    rf"[*_\[(\"']{{0,3}}({'|'.join(CHANGES)})"
    r"(?:[ \t]change)?[*_\])\"']{0,3}[ \t]{0,9}[:：–—-][*_]{0,2}[ \t]{0,9}",
    re.IGNORECASE | re.MULTILINE,
)
_LONGEST_LINE = 4000  # characters of a line
_LETTERS = re.compile(r"[^\W_]+")


def parse_hard_negatives(raw: str, *, text: str, finish: str, size: int | None) -> list[Item]:
    """As `parse_answer` of negatives, each item with the kind of change named before it, if any."""
    plain = _from_json(raw[:MAX_CHARS]) or raw
    kinds = dict(_change_labels(plain))
    bare = _CHANGE_LABEL.sub(r"\1", plain)
    items = parse_answer(bare, text=text, finish=finish, size=size, polarity="negative")
    return [replace(item, change=kinds.get(_letters(item.text))) for item in items]


def _from_json(raw: str) -> str | None:
    """An answer in the schema's shape as a list of lines; None of any other."""
    try:
        found = json.loads(raw)
        lines = [f"{one['kind']}: {' '.join(one['sentence'].split())}" for one in found["sentences"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _change_labels(plain: str) -> Iterator[tuple[tuple[str, ...], str]]:
    for match in _CHANGE_LABEL.finditer(plain):
        line = plain[match.end() : match.end() + _LONGEST_LINE].partition("\n")[0]
        yield _letters(line), match[2].lower()


def _letters(sentence: str) -> tuple[str, ...]:
    return tuple(_LETTERS.findall(sentence.lower()))
