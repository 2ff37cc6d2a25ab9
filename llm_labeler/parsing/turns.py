"""Split an answer from its reasoning, special tokens and the turns that a model invents around it.

Each model has its own special tokens, so that lists of them are never complete: they are recognised by their
form.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from llm_labeler.parsing.phrases import (
    COLONS,
    ECHO,
    HEAD,
    LABEL,
    SENTENCE_NAME,
    names_answer,
    why_no_sentence,
)
from llm_labeler.parsing.source_text import SourceText, has_words, joined, tidy
from llm_labeler.records import Item, Items

# A token in brackets, and words that its name has.
_OPEN = r"[<◁⟨][|｜]?"
_IN = r"[\w:/.▁-]{0,60}"
_REST = rf"{_IN}[|｜]?[>▷⟩]"
_THINKS = rf"(?={_IN}(?:think|thought|reasoning|reflect))"
_ANSWERS = rf"(?={_IN}(?:solution|response|answer|final|box))"

# Unlike the tags of HTML and XML.
_SPECIAL = re.compile(
    joined(r"""
    <[|｜][^<>|｜\n]{1,60}[|｜]?>
    |<[^<>|｜\s]{1,60}[|｜]>
    |</?\w{1,30}:\w{1,30}>
    |[◁⟨]/?\w{1,30}[▷⟩]
    |<(?:unused|reserved|extra_id)\w{0,30}>
    |<0x[\dA-F]{2}>
    |<</?[A-Z_]{2,20}>>
    |<[|｜](?=\s*(?:<[|｜]|\Z))
    |\[unused\d{1,5}\]
    |\[/?(?:BEGIN|END|EO[A-Z]|SEP|PAD|STOP|DONE)(?:[_ ][A-Z_ ]{1,40})?\]
    |\][^\s\[\]]{0,3}~[^\s\[\]]{0,3}[\[\]]
    |\[[^\s\[\]]{0,3}~[^\s\[\]]{0,3}\[
    |</?s>
""")
)
_HARMONY = r"<\|channel\|>(?:analysis|commentary)<\|message\|>"
_THOUGHT_END = re.compile(
    joined(rf"""
    {_OPEN}{_THINKS}(?={_IN}(?:/|end)){_REST}
    |{_OPEN}(?!{_IN}/)(?={_IN}(?:begin|start)){_ANSWERS}{_REST}
    |<[|｜]\w{{1,20}}[|｜]?>\s?(?:answer|response|final)\b
    |\[/THINK\w{{0,20}}\]
    |\[END_THINK\w{{0,20}}\]
    |\[BEGIN FINAL RESPONSE\]
    |(?<=[.!?。)"”\s])assistantfinal
    |(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>
"""),
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
PLAIN_TAG = re.compile(
    r"(?:p|div|span|[uo]l|li|[biu]|em|strong|h\d|br|t(?:able|r|d|h|head|body)|code|pre|a|html|body|section"
    r"|article|main|blockquote|list|items?|lines?|data|root|xml|pairs?)\Z",
    re.IGNORECASE,
)

_RULES = "#*_>-|` \t\n"
# Characters of a line that are searched for the beginning of a turn.
_MAX_OPENING = 2000
_OPENING = re.compile(r"(?:^[#*_ \t>]*|(?<=[\s.。\"”]))(?=\S)", re.MULTILINE)

# The announcement of the final answer, after reasoning.
_FINAL = re.compile(
    joined(r"""
    (?:
    ^[#*_ \t>]*(?:(?:so|thus|therefore|here (?:is|are)|and|now),? ?)?(?:the |my )?
    (?:
    final (?:answer|output|sentence|version|list|result|set)s?\b[^\n:：]{0,60}
    |(?<=my )response\b
    |最终(?:答案|结果|句子|版本)[^\n:：]{0,20}
    )
    |(?<=[.!?] )(?:so|thus|therefore|hence),? the (?:\w+ ){0,2}
    (?:sentence|opposite|antonym|synonym|paraphrase|negation) (?:is|would be|becomes)
    )
    (?:[:：]|[*_ ]*$)[*_ ]*(?=[\s\S]{0,200}?\w)
"""),
    re.IGNORECASE | re.MULTILINE,
)

_ROLE = r"(?:human|user|instructions?|system|customer|用户|人类)"
# A new turn at the start of a line; `_WITHIN`: after a sentence in the same line.
_TURN = re.compile(
    joined(rf"""
    (?:
    {_ROLE} ?[:：]
    |#{{2,6}} ?(?:{_ROLE}|input|output|assistant|response|task|example)\b
    |(?:user|assistant|model|human)$
    |you are a (?:highly smart|helpful)
    |(?:next |another |new )?(?:example|round|exercise|task|problem|question|query|input)
    (?: ?#?\d{{1,3}} ?[.:]?| ?[:：])?$
    |(?:example|exercise|round|question|q|query|task) ?#?(?:\d{{1,3}} ?[.:]|[:：])
    |(?:now|next|ok|okay|great)?,? ?(?:let['’]?s |let us |can you |please |could you |now )
    (?:do|try|move|continue|give|generate|write|rewrite)\b
    [^\n]{{0,60}}\b(?:another|next|same|more|following|again)\b
    |(?:next|another|new) (?:input|sentence|example|one)\b[^\n]{{0,30}}[:：]
    )
"""),
    re.IGNORECASE,
)
_WITHIN = re.compile(
    joined(r"""
    (?<=[.!?。"”'’)\]])\s*
    (?=
    ###? ?\w+
    |(?:New |Next )?Input(?: sentence| text)? ?:
    |(?:USER|User|HUMAN|Human|ASSISTANT|Assistant|Question|Q) ?:
    |Sentence ?:
    |用户[:：]|输入句子?[:：]|句子[:：]
    |You are a highly smart
    )
    |(?<=[.!?。"”])(?:assistant|user|model)[ \t]*(?=\n|$)
""")
)
# The label of a question's sentence.
_SENTENCE = re.compile(
    r"(?:sentence|text|句子|文|satz|oraci[oó]n|frase|phrase|texte|texto) ?[:：][*_]*",
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
    joined(rf"""
    (?P<prompt>\[INST\]|{_of_role("(?:user|human|system|developer|observation)")})
    |(?P<answer>\[/INST\]|{_of_role("(?:assistant|model|chatbot|bot)")})
    |(?P<end>
    </s>
    |<[|｜](?=[^<>\n]{{0,60}}(?:/|end|return|stop|call)|eo)[^<>\n]{{1,60}}>
    |<\w{{1,30}}[|｜]>
    |<(?:end_of_turn|eos|eop)>
    |\[\|endofturn\|\]
    |\[(?:END|EO)[A-Z_ ]{{0,40}}\]
    )
"""),
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


def _without_tokens(text: str) -> str:
    """A text without special tokens; those of reasoning go first, with the words that belong to them."""
    return _SPECIAL.sub("", _THOUGHT.sub("", _THOUGHT_END.sub("", text)))


def _has_text(text: str) -> bool:
    return has_words(_without_tokens(text))


def _end_of_pair(raw: str, is_answer: Callable[[str], bool]) -> int:
    """The end of an unknown pair of tokens at the start of an answer, with reasoning in between."""
    pair = _TOKEN_PAIR.match(raw) or _TAG_PAIR.match(raw)
    if pair is None or _CHAT.match(raw.lstrip()) or not _has_text(pair["thought"]):
        return 0
    name = pair["name"]
    rest = raw[pair.end() :]
    is_line = pair.re is _TAG_PAIR and "\n" not in pair["thought"].strip()
    is_list = name.rstrip("0123456789_-") in rest or PLAIN_TAG.match(name)
    if is_line or is_list or SENTENCE_NAME.search(name) or not is_answer(rest):
        return 0
    return pair.end()


def _split_at_tokens(text: str, source: SourceText) -> tuple[str, str, str]:
    """Split into prompt, answer and rest at the special tokens of a chat template."""
    if source.lacks(_SPECIAL):
        text = _SPECIAL.sub(
            lambda token: token[0] if _CHAT.match(text, token.start()) else " ", text
        )
    marks = list(_CHAT.finditer(text))
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

    nothing = _Span(None, len(text), len(text))
    first = {span.kind: span for span in reversed(spans)}
    answer = first.get("answer") or first.get("end") or nothing
    parts = (text[: answer.start], text[answer.start : answer.end], text[answer.end :])
    before, inner, after = (_CHAT.sub(" ", part) for part in parts)
    return before, inner, after


def split_turns(raw: str, source: SourceText) -> tuple[Items, str, str]:
    """Split into items before the answer, the answer, and turns that the model invented after it."""
    thought, rest = _split_reasoning(raw, source)
    prompt, answer, tail = _split_at_tokens(rest, source)
    question, answer = _split_question(answer, source)
    end = _turn_end(answer, source)
    before = [
        Item(tidy(_without_tokens(thought)), "thinking"),
        Item(tidy(prompt + question), "echo"),
    ]
    before = [item for item in before if has_words(item.text)]
    return before, answer[:end], answer[end:] + tail


def _split_reasoning(raw: str, source: SourceText) -> tuple[str, str]:
    """Split at the end of the reasoning's tokens, or at `Final answer:`."""

    def is_answer(text: str) -> bool:
        lines = text.split("\n")
        return source.lacks("<") and any(_is_sentence(line, source) for line in lines)

    thought, rest = split_thought(raw, is_answer)
    finals = [match for match in _FINAL.finditer(rest) if match.start()]
    if not finals or not source.lacks(_FINAL):
        return thought, rest
    last = finals[-1]
    return thought + rest[: last.start()], rest[last.end() :]


def _split_question(answer: str, source: SourceText) -> tuple[str, str]:
    """Split off a repeated question in front of `Output:`; empty without one."""
    bare = answer.lstrip(_RULES)
    opening = bare[:_MAX_OPENING]
    first_line, _, _ = opening.partition("\n")
    if source.begins(ECHO, first_line) or source.begins(_TURN, opening):
        for match in _OPENING.finditer(bare):
            head = HEAD.match(bare, match.end())
            if head and match.start():
                return bare[: match.start()], bare[head.end() :]
    return "", answer


def _turn_end(text: str, source: SourceText) -> int:
    """Index where the answer ends and an invented turn begins: a question after a sentence."""
    has_sentence = False
    offset = 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        bare = line[:_MAX_OPENING].strip(_RULES)
        may_open = bare and (
            has_sentence or (_SENTENCE.match(bare) and not source.resembles(bare))
        )
        if may_open and _opens_turn(
            line.strip(), bare, lines[number + 1 : number + 4], source
        ):
            return offset
        start = _other_question(line, source)
        if start is not None and (has_sentence or _is_sentence(line[:start], source)):
            return offset + start
        has_sentence = has_sentence or _is_sentence(line, source)
        offset += len(line) + 1
    return len(text)


def _other_question(line: str, source: SourceText) -> int | None:
    """Index of the first question within a line that is about another text."""
    for match in _WITHIN.finditer(line):
        question = line[match.end() : match.end() + 400]
        if not _is_about_source(question, source):
            return match.start() if source.lacks(_WITHIN) else None
    return None


def _is_sentence(line: str, source: SourceText) -> bool:
    piece = tidy(line[:_MAX_OPENING].strip(_RULES))
    if label := LABEL.match(piece):
        piece = piece[label.end() :] or piece
    if not has_words(piece) or _SENTENCE.match(piece):
        return False
    return why_no_sentence(piece, source) is None


def _is_about_source(question: str, source: SourceText) -> bool:
    """Whether a question is about the text that was asked about."""
    match = ECHO.match(question) or _SENTENCE.match(question)
    if match is None:
        return False
    about = question[match.end() :].strip("\"'“”「」*_ ").casefold()
    return about != "" and about.startswith(source.text[:40].casefold())


def _opens_turn(line: str, bare: str, below: list[str], source: SourceText) -> bool:
    """Whether a line below a sentence begins another turn."""
    if source.begins(_TURN, bare) or source.begins(_TURN, line):
        return True
    match = source.begins(ECHO, bare) or source.begins(_SENTENCE, bare)
    if match is None or _is_about_source(bare, source):
        return False
    if _SENTENCE.match(bare) is None:
        return True
    question = bare[match.end() :]
    after = next(filter(None, (each.strip(_RULES) for each in below)), "")
    is_answered = (
        after.endswith(COLONS)
        or HEAD.match(after) is not None
        or after.startswith(("[", "{"))
        or names_answer(after)
        or names_answer(question)
    )
    return has_words(question) and is_answered
