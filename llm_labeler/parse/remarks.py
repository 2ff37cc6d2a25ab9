"""Remarks that stand around a sentence in its own line: brackets, what follows a dash or a hash, tags, emoji.

A remark is told by where it stands and by its words. What the sentence asked about has too (a bracket at its
end, a dash) may be part of its rewrites and is left.
"""

from __future__ import annotations

import re
from itertools import islice

from llm_labeler.parse.commentary import META, REMARK
from llm_labeler.parse.source import Source, is_foreign, size_of

_ROUNDS = 3  # of remarks around one sentence
_MOST_SIGNS = 12  # dashes, full stops … looked at in one piece
_ENDED = re.compile(r"[.!?。…][\"”’'»」』*_)]*$")
_OPENERS = {")": "(", "]": "[", "】": "【", "〕": "〔"}
_TAG = re.compile(
    r"(?:\[[^\[\]\n]{1,40}\]|\([^()\n]{1,40}\)|【[^【】\n]{1,40}】|<[A-Za-z][^<>\n]{0,38}>)[:\s]*"
)
_BEHIND = re.compile(r" [-–—~]+ |\s?—+\s?|\s(?:#|//|←|<-+|⟵|\*|\|)\s?|\s+(?:->|→|⇒|=>)\s+|\s+(?=[\[(])")
_DASH = re.compile(r"[-–—]")
_HASH = re.compile(r"#|//|\||→|->|\*")
_BRACKET = re.compile(r"[()\[\]【】]")
_STOP = re.compile(r"[.!?。]+[\"”’'»」』)]*\s+|[。!?]")
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
    match = _TAG.match(said) if said[:1] in "[(【<" else None
    if match is None or not said[match.end() :] or said[0] in source.text:
        return "", said
    inner = match.group().strip("[]()【】<>: ")
    if not _LETTERS.search(inner) or size_of(inner) > 5 or _ENDED.search(inner):
        return "", said
    return match.group().strip(), said[match.end() :]


def _behind(said: str, source: Source) -> tuple[str, str]:
    """The sentence and the remark that follows it; no remark where nothing tells of one."""
    for cut in (_at_bracket(said, source), _at_sign(said, source), _at_second(said, source)):
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
    is_behind = _ENDED.search(sentence) is not None
    is_remark = is_behind or REMARK.match(inner) is not None or is_about_words(inner, source)
    return start if is_remark or is_foreign(inner, sentence) or opener != "(" else 0


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
        if is_about or is_foreign(sentence, said[:start]):
            return start
    return 0
