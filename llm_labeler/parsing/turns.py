"""Split an answer from its reasoning and from the turns that a model invents around it."""

from __future__ import annotations

import re

from llm_labeler.parsing.phrases import ECHO, HEAD, LABEL
from llm_labeler.parsing.source_text import SourceText, has_words, tidy
from llm_labeler.parsing.special_tokens import (
    split_at_tokens,
    split_thought,
    without_tokens,
)
from llm_labeler.parsing.wording import COLONS, names_answer, why_no_sentence
from llm_labeler.records import Item

_RULES = "#*_>-|` \t\n"
# Characters of a line that are searched for the beginning of a turn.
_MAX_OPENING = 2000
_OPENING = re.compile(r"(?:^[#*_ \t>]*|(?<=[\s.。\"”]))(?=\S)", re.MULTILINE)

# The announcement of the final answer, after reasoning.
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
# The label of a question's sentence.
_SENTENCE = re.compile(
    r"(?:sentence|text|句子|文|satz|oraci[oó]n|frase|phrase|texte|texto) ?[:：][*_]*",
    re.IGNORECASE,
)


def split_turns(raw: str, source: SourceText) -> tuple[list[Item], str, str]:
    """Split into items before the answer, the answer, and turns that the model invented after it."""
    thought, rest = _split_reasoning(raw, source)
    prompt, answer, tail = split_at_tokens(rest, source)
    question, answer = _split_question(answer, source)
    end = _turn_end(answer, source)
    before = [
        Item(tidy(without_tokens(thought)), "thinking"),
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
    if not source.lacks(_FINAL):
        return thought, rest
    *_, final = (None, *_FINAL.finditer(rest))
    if final is None or not final.start():
        return thought, rest
    return thought + rest[: final.start()], rest[final.end() :]


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
        match = _WITHIN.search(line)
        if match is not None and match.start() and source.lacks(_WITHIN):
            has_sentence = has_sentence or _is_sentence(line[: match.start()], source)
            question = line[match.end() : match.end() + 400]
            if has_sentence and not _is_about_source(question, source):
                return offset + match.start()
        has_sentence = has_sentence or _is_sentence(line, source)
        offset += len(line) + 1
    return len(text)


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
    after = next(filter(None, (line.strip(_RULES) for line in below)), "")
    is_answered = (
        after.endswith(COLONS)
        or HEAD.match(after) is not None
        or after.startswith(("[", "{"))
        or names_answer(after)
        or names_answer(question)
    )
    return has_words(question) and is_answered
