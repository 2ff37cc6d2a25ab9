"""Special tokens of chat templates: reasoning, roles and ends, recognised by their form.

Each model has its own tokens, so that lists of them are never complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from llm_labeler.parsing.phrases import ECHO, SENTENCE_NAME
from llm_labeler.parsing.source_text import SourceText, has_words

# A token in brackets, and words that its name has.
_OPEN = r"[<◁⟨][|｜]?"
_IN = r"[\w:/.▁-]{0,60}"
_REST = rf"{_IN}[|｜]?[>▷⟩]"
_THINKS = rf"(?={_IN}(?:think|thought|reasoning))"
_ANSWERS = rf"(?={_IN}(?:solution|response|answer|final|box))"

# Unlike the tags of HTML and XML.
_SPECIAL = re.compile(
    r"<[|｜][^<>|｜\n]{1,60}[|｜]?>|<[^<>|｜\s]{1,60}[|｜]>|</?\w{1,30}:\w{1,30}>|[◁⟨]/?\w{1,30}[▷⟩]"
    r"|<(?:unused|reserved|extra_id)\w{0,30}>|<0x[\dA-F]{2}>|<</?[A-Z_]{2,20}>>|<[|｜](?=\s*(?:<[|｜]|\Z))"
    r"|\[unused\d{1,5}\]|\[/?(?:BEGIN|END|EO[A-Z]|SEP|PAD|STOP|DONE)(?:[_ ][A-Z_ ]{1,40})?\]"
    r"|\][^\s\[\]]{0,3}~[^\s\[\]]{0,3}[\[\]]|\[[^\s\[\]]{0,3}~[^\s\[\]]{0,3}\[|</?s>"
)
_HARMONY = r"<\|channel\|>(?:analysis|commentary)<\|message\|>"
_THOUGHT_END = re.compile(
    rf"{_OPEN}{_THINKS}(?={_IN}(?:/|end)){_REST}|{_OPEN}(?!{_IN}/)(?={_IN}(?:begin|start)){_ANSWERS}{_REST}"
    r"|<[|｜]\w{1,20}[|｜]?>\s?(?:answer|response|final)\b"
    r"|\[/THINK\w{0,20}\]|\[END_THINK\w{0,20}\]|\[BEGIN FINAL RESPONSE\]"
    r"|(?<=[.!?。)\"”\s])assistantfinal|(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>",
    re.IGNORECASE,
)
_THOUGHT = re.compile(
    rf"{_HARMONY}|{_OPEN}(?!{_IN}(?:/|end)){_THINKS}{_REST}|\[THINK\]"
    r"|<(?:[|｜]\w{1,30}[|｜]?|unused\d{1,5})>\s?(?:think(?:ing)?|thought|reasoning|analysis)\b",
    re.IGNORECASE,
)
_TAG_PAIR = re.compile(
    r"\s*<(?P<name>[A-Za-z][\w:.-]{0,40})>(?P<thought>.*?)</(?P=name)>", re.DOTALL
)
_TOKEN_PAIR = re.compile(
    rf"\s*(?P<name>(?>{_HARMONY}|{_SPECIAL.pattern}))(?P<thought>.*?)(?:{_SPECIAL.pattern})",
    re.DOTALL,
)
# Tags around sentences or lists of them.
_PLAIN_TAG = re.compile(
    r"(?:p|div|span|[uo]l|li|[biu]|em|strong|h\d|br|t(?:able|r|d|h|head|body)|code|pre|a|html|body|section"
    r"|article|main|blockquote|list|items?|lines?|data|root|xml|pairs?)\Z",
    re.IGNORECASE,
)


def _of_role(role: str) -> str:
    """Pattern of the special tokens that start a role in chat templates."""
    return (
        rf"<\|(?:im_)?(?:start\|>)?{role}(?:_token)?\|>|<\|(?:im_)?start\|>{role}|<start_of_turn>{role}"
        rf"|<[｜|]{role}[｜|]>|<[|｜]\w{{1,20}}[|｜]?>{role}(?=[ \t]*(?:\n|<|\Z))"
        rf"|<\|(?:start_header_id|header_start)\|>{role}<\|(?:end_header_id|header_end)\|>|\[\|{role}\|\]"
    )


_CHAT = re.compile(
    rf"(?P<prompt>\[INST\]|{_of_role('(?:user|human|system|developer|observation)')})"
    rf"|(?P<answer>\[/INST\]|{_of_role('(?:assistant|model|chatbot|bot)')})"
    r"|(?P<end></s>|<[|｜](?=[^<>\n]{0,60}(?:/|end|return|stop|call)|eo)[^<>\n]{1,60}>|<\w{1,30}[|｜]>"
    r"|<(?:end_of_turn|eos|eop)>|\[\|endofturn\|\]|\[(?:END|EO)[A-Z_ ]{0,40}\])",
    re.IGNORECASE,
)


class _Span(NamedTuple):
    """A part of an answer between special tokens."""

    kind: str | None  # "prompt", "answer" or "end", by the token before it
    start: int
    end: int


def split_thought(
    raw: str, is_answer: Callable[[str], bool] = has_words
) -> tuple[str, str]:
    """Split an answer into the model's reasoning and the rest."""
    ends = [match.end() for match in _THOUGHT_END.finditer(raw)]
    start = ends[-1] if ends else _end_of_pair(raw, is_answer)
    thought = raw[:start]
    rest = raw[start:]
    first = _THOUGHT.search(raw)
    if first is not None and not _has_text(rest) and _has_text(raw[: first.start()]):
        # What precedes the reasoning is the answer.
        return raw[first.start() :], raw[: first.start()]
    opening = _THOUGHT.search(rest)
    if opening is not None:
        thought += rest[opening.start() :]
        rest = rest[: opening.start()]
    return thought, rest


def without_tokens(text: str) -> str:
    """A text without special tokens."""
    return _THOUGHT.sub("", _THOUGHT_END.sub("", _SPECIAL.sub("", text)))


def _has_text(text: str) -> bool:
    return has_words(without_tokens(text))


def _end_of_pair(raw: str, is_answer: Callable[[str], bool]) -> int:
    """The end of an unknown pair of tokens at the start of an answer, with reasoning in between."""
    pair = _TOKEN_PAIR.match(raw) or _TAG_PAIR.match(raw)
    if pair is None or _CHAT.match(raw.lstrip()) or not _has_text(pair["thought"]):
        return 0
    name = pair["name"]
    rest = raw[pair.end() :]
    is_line = pair.re is _TAG_PAIR and "\n" not in pair["thought"].strip()
    is_list = name.rstrip("0123456789_-") in rest or _PLAIN_TAG.match(name)
    if is_line or is_list or SENTENCE_NAME.search(name) or not is_answer(rest):
        return 0
    return pair.end()


def split_at_tokens(text: str, source: SourceText) -> tuple[str, str, str]:
    """Split into prompt, answer and rest at the special tokens of a chat template."""
    if source.lacks(_SPECIAL):
        text = _SPECIAL.sub(
            lambda token: token[0] if _CHAT.match(text, token.start()) else " ", text
        )
    marks = [*_CHAT.finditer(text)]
    if not marks:
        return "", text, ""
    kinds = ["answer", *(match.lastgroup for match in marks)]
    starts = [0, *(match.end() for match in marks)]
    ends = [*(match.start() for match in marks), len(text)]
    spans = [
        span
        for span in map(_Span, kinds, starts, ends)
        if has_words(text[span.start : span.end])
    ]
    if len(spans) > 1 and spans[0].start == 0 and source.begins(ECHO, text.lstrip()):
        del spans[0]

    answer = _Span("answer", len(text), len(text))
    for kind in ("end", "answer"):  # the latter is preferred
        answer = next((span for span in spans if span.kind == kind), answer)
    parts = (text[: answer.start], text[answer.start : answer.end], text[answer.end :])
    before, inner, after = (_CHAT.sub(" ", part) for part in parts)
    return before, inner, after
