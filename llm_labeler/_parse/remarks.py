"""Remarks that stand around a sentence in its own line: brackets, what follows a dash or a hash, tags, emoji.

A remark is told by where it stands and by its words. What the sentence asked about has too (a bracket at its
end, a dash) may be part of its rewrites and is left.
"""

from __future__ import annotations

import re
from itertools import islice

from llm_labeler._parse.commentary import COMMENT, GRAMMAR, META, REMARK
from llm_labeler._parse.source import Source, size_of
from llm_labeler._scripts import is_translation

_ROUNDS = 3  # of remarks around one sentence
_MOST_SIGNS = 12  # dashes, full stops … looked at in one piece
_ENDED = re.compile(r"[.!?。…][\"”’'»」』*_)]*$")
_OPENERS = {")": "(", "]": "[", "】": "【", "〕": "〔", "}": "{"}
_SCORE = re.compile(
    r"\d{0,3}[.,]\d{1,4} ?%?|\d{1,3} ?%|\d{1,3}/\d{1,3}|[a-z_]{2,20} ?[:=] ?[\d.,%/]{1,8}", re.IGNORECASE
)
_TAG = re.compile(
    r"(?:\[[^\[\]\n]{1,40}\]|\{[^{}\n]{1,40}\}|\([^()\n]{1,40}\)|【[^【】\n]{1,40}】|<[A-Za-z][^<>\n]{0,38}>)[:\s]*"
)
_BEHIND = re.compile(
    r" [-–—~]+ |\s?—+\s?|\s(?:#|//|←|<-+|⟵|\*|\|)\s?|\s+(?:->|→|⇒|=>)\s+|\s+(?=[\[(])"
    r"|\s[\u2600-\u27bf\u2b50\U0001f300-\U0001faff]\ufe0f?\s+"
)
_PAIR_SIGN = re.compile(r"→|⇒|➔|=>|[-–]>|↔|⇔|≠")
_FEW = r"[\"'“(]?[^\s.!?。#/=>→⇒➔↔⇔≠]{1,30}(?: [^\s.!?。#/=>→⇒➔↔⇔≠]{1,30}){0,3} ?"
_PAIR = re.compile(rf"{_FEW}(?:{_PAIR_SIGN.pattern}) ?{_FEW}")
_DASH = re.compile(r"[-–—]")
_HASH = re.compile(r"#|//|\||→|->|\*")
_BRACKET = re.compile(r"[()\[\]【】{}]")
_STOP = re.compile(r"(?<![.!?。])[.!?。]++[\"”’'»」』)]*+\s++|[。!?]")  # a long run is looked at once
_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\ufe0f\u200d\U000e0020-\U000e007f\u3030\u303d]"
)
_SMILEY = re.compile(r"\s[:;]-?[)D(P]$")
_LETTERS = re.compile(r"[^\W\d_]")


def without_remarks(said: str, source: Source) -> tuple[list[str], str, list[str]]:
    """What stands before the sentence in `said`, the sentence, and what stands behind it, in order."""
    before: list[str] = []
    after: list[str] = []
    said = _without_emoji(said, source)
    for _ in range(_ROUNDS):
        tag, said = _tag(said, source)
        sentence, remark = _behind(said, source)
        if not tag and not remark:
            break
        before += [tag] if tag else []
        after = [remark, *after] if remark else after
        said = _without_emoji(sentence, source)
    return before, said, after


def speaks_of_words(said: str, source: Source) -> bool:
    """Whether a piece is about words and sentences, and not about what the sentence asked about is about."""
    return is_about_words(said, source) and not source.is_like(said)


def comments_on_sentence(said: str, source: Source) -> bool:
    """Whether a whole line comments on the sentence above it, as in `Here "big" stands for "large"`."""
    if COMMENT.match(said) is None or source.is_like(said):
        return False
    return is_about_words(said, source) or (GRAMMAR.search(said) is not None and source.lacks(GRAMMAR))


def is_word_pair(said: str, source: Source) -> bool:
    """Whether a line says which words stand for which: `big → small`."""
    return _PAIR.fullmatch(said) is not None and source.lacks(_PAIR_SIGN) and size_of(said) < source.size


def is_about_words(said: str, source: Source) -> bool:
    """Whether a piece speaks of words and sentences, as the sentence asked about does not."""
    return META.search(said) is not None and source.lacks(META)


def _without_emoji(said: str, source: Source) -> str:
    if not source.lacks(_EMOJI):
        return said
    start, end = 0, len(said)
    if not said.isascii():
        while start < end and (said[start] == " " or _EMOJI.match(said, start)):
            start += 1
        while end > start and (said[end - 1] == " " or _EMOJI.match(said, end - 1)):
            end -= 1
    return _SMILEY.sub("", said[start:end]) or said


def _tag(said: str, source: Source) -> tuple[str, str]:
    """A bracket in front, with a few words that are no sentence."""
    match = _TAG.match(said) if said[:1] in "[({【<" else None
    if match is None or not said[match.end() :] or said[0] in source.text:
        return "", said
    inner = match.group().strip("[](){}【】<>: ")
    if _SCORE.fullmatch(inner):
        return match.group().strip(), said[match.end() :]
    if not _LETTERS.search(inner) or size_of(inner) > 5 or _ENDED.search(inner):
        return "", said
    return match.group().strip(), said[match.end() :]


def _behind(said: str, source: Source) -> tuple[str, str]:
    """The sentence and the remark that follows it; no remark where nothing tells of one."""
    for cut in (
        _at_score(said, source),
        _at_bracket(said, source),
        _at_sign(said, source),
        _at_second(said, source),
    ):
        if 0 < cut < len(said):
            return said[:cut].rstrip(), said[cut:].strip(" -–—~#/|←⟵<*")
    return said, ""


def _at_bracket(said: str, source: Source) -> int:
    """Where the last bracket begins, if it is a remark; 0 if not."""
    bare = said.rstrip('.。!?;, *_"”')
    opener = _OPENERS.get(bare[-1:])
    if opener is None:
        return 0
    start = bare.rfind(opener)
    sentence, inner = said[: max(start, 0)].rstrip(), bare[start + 1 : -1]
    if start < 1 or not _LETTERS.search(sentence):
        return 0
    if not source.lacks(_BRACKET):
        return start if REMARK.match(inner) and is_about_words(inner, source) else 0
    is_behind = _ENDED.search(_without_emoji(sentence, source)) is not None
    is_remark = is_behind or REMARK.match(inner) is not None or is_about_words(inner, source)
    return start if is_remark or is_translation(inner, sentence) or opener != "(" else 0


def _at_score(said: str, source: Source) -> int:
    """Where a bare number stands behind the full stop; 0 if none does."""
    before, _, last = said.rpartition(" ")
    is_score = _SCORE.fullmatch(last) is not None and source.lacks(_SCORE)
    return len(before) if is_score and _ENDED.search(before) else 0


def _at_sign(said: str, source: Source) -> int:
    """Where a remark begins behind a dash, a hash or an arrow; 0 if there is none."""
    for match in islice(_BEHIND.finditer(said), _MOST_SIGNS):
        sentence, remark = said[: match.start()], said[match.end() :]
        sign = match.group().strip()
        own = _DASH if sign[:1] in ("-", "–", "—", "~") else _HASH if sign else _BRACKET
        if not remark or not source.lacks(own) or 3 * size_of(sentence) < source.size:
            continue
        if _ENDED.search(sentence) or (sign and REMARK.match(remark.lstrip("([*_\"'"))):
            return match.start()
    return 0


def _at_second(said: str, source: Source) -> int:
    """Where a further sentence begins that speaks of the one before; 0 if none does."""
    ends = [match.end() for match in islice(_STOP.finditer(said), _MOST_SIGNS)]
    for start, end in zip(ends, [*ends[1:], len(said)], strict=False):
        sentence = said[start:end]
        is_about = is_about_words(sentence, source) and not source.is_like(sentence)
        if is_about or is_translation(sentence, said[:start]):
            return start
    return 0
