"""One sentence: whether a piece is one, and without label, markup, quotes and remarks around it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from llm_labeler.parsing.phrases import (
    ABOUT,
    BOLD_LABEL,
    CLOSING,
    COUNTED,
    ECHO,
    ECHO_NAME,
    LABEL,
    LEAD,
    META,
    NEGATIVE,
    NOTE,
    NOTHING,
    POSITIVE,
    REFUSAL,
    SENTENCE_NAME,
    SIDE_NAME,
    THINKS,
)
from llm_labeler.parsing.scripts import UNSPACED, fold, is_translation, words
from llm_labeler.records import Item, Polarity


def side_of(name: str) -> str | None:
    """Why what has this name, a JSON key or a column, is not a sentence; "" if it is one, None if unknown."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])|[_\W]+", " ", name[:80]).strip() or name[:80]
    if ECHO_NAME.match(plain):
        return "echo"
    if SIDE_NAME.match(plain):
        return "side_field"
    return "" if SENTENCE_NAME.search(plain) else None


def polarity_of(name: str) -> Polarity | None:
    """The polarity that a name or heading speaks of; None for neither or both."""
    positive, negative = POSITIVE.search(name[:200]) is not None, NEGATIVE.search(name[:200]) is not None
    return None if positive == negative else "positive" if positive else "negative"


def tidy(piece: str) -> str:
    """A piece with single spaces."""
    return " ".join(piece.split())


def has_words(piece: str) -> bool:
    """Whether a piece has a letter or a digit."""
    return any(character.isalnum() for character in piece)


def size_of(piece: str) -> int:
    """Length in words, or in characters for scripts without spaces."""
    unspaced = 0 if piece.isascii() else len(UNSPACED.findall(piece))
    return unspaced + len((UNSPACED.sub(" ", piece) if unspaced else piece).split())


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text asked about."""

    text: str
    folded: str
    words: frozenset[str]
    size: int

    @classmethod
    def of(cls, text: str) -> SourceText:
        """The text with what is compared computed once."""
        text = tidy(text)
        return cls(text, fold(text), frozenset(words(text)), size_of(text))

    def is_said_by(self, piece: str) -> bool:
        """Whether a piece is this text but for case, spaces and punctuation."""
        return bool(self.folded) and len(piece) < 3 * len(self.text) + 50 and fold(piece) == self.folded

    def is_like(self, piece: str) -> bool:
        """Whether half of the words of a piece are this text's: then it speaks of the same things."""
        found = {*words(piece[:2000])}
        return bool(found) and 2 * len(found & self.words) >= len(found)

    def is_as_long_as(self, piece: str) -> bool:
        """Whether a piece is long enough for a rewrite."""
        return 5 * size_of(piece) >= 2 * self.size

    def begins(self, pattern: re.Pattern[str], piece: str) -> re.Match[str] | None:
        """The match at the beginning of a piece of what this text doesn't begin with."""
        match = pattern.match(piece)
        return None if match is None or pattern.match(self.text) else match

    def lacks(self, signs: str | re.Pattern[str]) -> bool:
        """Whether this text has none of these signs, or nothing of this pattern."""
        if isinstance(signs, str):
            return not any(sign in self.text for sign in signs)
        return signs.search(self.text) is None

    def is_remark(self, piece: str) -> bool:
        """Whether a piece speaks of words and sentences, as this text doesn't."""
        return META.search(piece[:500]) is not None and self.lacks(META) and not self.is_like(piece)


def why_no_sentence(piece: str, source: SourceText, *, in_list: bool = False) -> str | None:
    """Why a tidy piece is not a sentence, by its words; None if they don't tell."""
    bare = piece.lstrip("#*_>[(（ ")
    if NOTHING.fullmatch(piece[:120]) or (source.begins(REFUSAL, bare) and not source.is_like(piece)):
        return "refusal" if has_words(piece) else "unparsable"
    if source.begins(ECHO, bare) or source.is_said_by(bare.strip("\"'“”*_ ")):
        return "echo"
    if source.begins(NOTE, bare):
        return "closing_note"
    if in_list:
        return None
    if source.begins(THINKS, bare):
        return "thinking"
    if source.begins(CLOSING, bare) and not source.is_like(piece):
        return "closing_note"
    return "preamble" if is_heading(piece, source) else None


def is_heading(piece: str, source: SourceText) -> bool:
    """Whether all of a piece introduces what follows."""
    bare = piece.strip("#*_ ")
    if bare.endswith((":", "：")) and not source.text.endswith((":", "：")):
        return size_of(bare) <= 12 or ABOUT.search(bare) is not None
    if re.match(r"#{1,6} ", piece) or (
        re.fullmatch(r"\*\*[^*]+\*\*", piece) and not source.is_as_long_as(bare)
    ):
        return True
    return lead_end(bare, source) == len(bare) > 0 or LABEL.fullmatch(f"{bare}:") is not None


def lead_end(piece: str, source: SourceText) -> int:
    """Where the sentences begin in a piece that introduces them first; 0 if it doesn't."""
    match = None if LABEL.match(piece) or COUNTED.match(piece) else source.begins(LEAD, piece)
    if match is None or (match.group().endswith((":", "：")) and not ABOUT.search(match.group())):
        return 0
    return match.end()


ENDED = re.compile(r"[.!?。！？…][\"”’'»」』*_)]*$")
STOP = re.compile(
    r"(?<!\bMr)(?<!\bDr)(?<!\bMrs)(?<!\bfig)(?<!\b[A-Za-z])(?<![.!?。])[.!?。！？]++[\"”’'»」』)]*+(?:\s++(?=[^a-z])|$)"
    r"|[。！？](?![\"”’」』)])"
)
_CODE = re.compile(r"(?:[A-Za-z_$][\w.$ ]{0,40}:?= ?|[A-Za-z_.]{2,30}\()(?=[\"'`])")
_LINK = re.compile(
    r"[\s\"”'’」*_.!?。)]*(?:(?:vs\.?|versus|becomes?|to|into|变成|改为"
    r"|[-=–—>→⇒⟶➔➜:|/~≠↔⇔]+)[\s*_]*)+[\"“'‘「]?(?=\S)",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"\"(?P<a>[^\"\n]{2,2000})\"|“(?P<b>[^“”\n]{2,2000})[”“]|„(?P<c>[^“”„\n]{2,2000})[“”]"
    r"|「(?P<d>[^「」\n]{2,2000})」"
    r"|«(?P<e>[^«»\n]{2,2000})»|\*\*(?P<f>[^*\n]{2,2000}(?<![:：]))\*\*"
)
_OFFERS = re.compile(
    r"(?:[:：→说是为或]|\b(?:say|write|be|is|are|or|and|as|becomes?|to|use|alternatively|like),?"
    r"|^\d{1,3}\s*[,;])$",
    re.IGNORECASE,
)
_QUOTES = '"“”„「」«»'
_CLOSER = {"“": "”", "„": "“", "「": "」", "『": "』", "«": "»", "‘": "’", '"': '"', "'": "'", "`": "`"}
_OPENERS = {")": "(", "）": "（", "]": "[", "】": "【", "}": "{"}
_BEHIND = re.compile(
    r" [-–—~]+ |\s?—+\s?|\s(?:#|//|←|<-+|\|)\s?|\s+(?:->|→|⇒|=>)\s+|\s+(?=[\[(（])|(?<=[.!?。])(?=[（(])"
)
_SIGNS = 12  # looked at in one line
_BRACKET_IN_FRONT = re.compile(
    r"(?:\[[^\[\]\n]{1,40}\]|\([^()\n]{1,40}\)|（[^（）\n]{1,40}）|【[^【】\n]{1,40}】)[:：\s]*"
)
_EMOJI = "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u23e9-\u23ff\ufe0f\u200d]"
_ANY_EMOJI = re.compile(_EMOJI)
# A run is tried from its first character alone: from each of them, a long run inside a text is quadratic.
_EMOJIS = re.compile(rf"\A(?:{_EMOJI}|\s)+|(?<!{_EMOJI})(?<!\s)(?:{_EMOJI}|\s)+\Z")


def refine(piece: str, source: SourceText, *, is_value: bool = False) -> list[Item]:
    """The items in one piece of an answer: its sentence, and what is with it and is none."""
    said = tidy(piece)
    if not has_words(said):
        return [Item(said, "unparsable")] if said else []
    echo, said = _after_echo(said, source)
    if (reason := why_no_sentence(said, source, in_list=True)) is not None:
        return [Item(said, reason)]
    items = [Item(echo, "echo")] if echo else []
    if not is_value and (quoted := offered(said, source)):
        return items + quoted
    remarks: list[Item] = []
    for _ in range(5):
        before = said
        said = without_label(without_emphasis(said, source), source)
        said = unquoted(said) if not is_value or source.lacks(_QUOTES) else said
        said, remark = _without_remark(said, source)
        remarks += [Item(remark, "remark")] if remark else []
        if said == before:
            break
    if not has_words(said):
        return [Item(tidy(piece), "preamble")]  # a label of nothing
    return [*items, Item(said, why_no_sentence(said, source, in_list=True)), *remarks]


def _after_echo(said: str, source: SourceText) -> tuple[str, str]:
    """Both sides of `source -> sentence` or `Original: … Antonym: …`; no left side if it is neither."""
    stem = source.text.rstrip(".!?。！？").casefold()
    place = said[: 60 + len(source.text)].casefold().find(stem) if stem else -1
    before = said[: max(place, 0)].rstrip("\"'“‘「*_ ")
    if place >= 0 and (not before or before.endswith((":", "："))):
        rest = said[place + len(stem) :]
        label = LABEL.match(rest.lstrip(" \"”'’」*_.!?。/|;,"))
        start = len(said) - len(label.string) if label else place + len(stem)
        start += link.end() if not label and (link := _LINK.match(rest)) else 0
        if start > place + len(stem) and source.is_as_long_as(said[start:]):
            return said[:start].rstrip(), said[start:]
    return "", said


def without_emphasis(said: str, source: SourceText) -> str:
    """The sentence without bold and italic marks."""
    if source.lacks("*") and not BOLD_LABEL.match(said):
        said = re.sub(r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}", "", said)
    said = said.strip("_") if len(said) > 2 and said[0] == said[-1] == "_" else said
    return _EMOJIS.sub("", said) or said if not _ANY_EMOJI.search(source.text) else said


def without_label(said: str, source: SourceText) -> str:
    """The sentence without a label such as `Positive:` before it."""
    for pattern in (BOLD_LABEL, LABEL, _CODE):
        match = source.begins(pattern, said)
        if match is not None and match.end() < len(said):
            rest = said[match.end() :].lstrip("*_ ")
            return rest.rstrip(";) ") if pattern is _CODE else rest
    match = _BRACKET_IN_FRONT.match(said)
    is_tag = match and match.end() < len(said) and said[0] not in source.text and size_of(match.group()) < 6
    return said[match.end() :] if match and is_tag and re.search(r"[^\W\d_]", match.group()) else said


def unquoted(said: str) -> str:
    """A sentence without the quotes that enclose all of it, its full stop aside."""
    body = said.rstrip(",;，；、 ")
    body, stop = (
        (body[:-1], body[-1]) if body[-1:] in (".", "。") and body[-2:-1] in _CLOSER.values() else (body, "")
    )
    if len(body) > 2 and _CLOSER.get(body[0]) == body[-1]:
        inner = body[1:-1].strip()
        first = inner.find(body[-1])
        if body[0] == body[-1]:  # a quote inside opens behind a space, or is an apostrophe
            is_within = inner[first - 1 : first].isalnum() and inner[first + 1 : first + 2].isalnum()
            encloses = first < 0 or is_within or (first > 0 and inner[first - 1].isspace())
        else:
            encloses = first < 0 or body[0] in inner[:first] or body[-1] == "’"
        if encloses:
            return inner if ENDED.search(inner) else inner + stop
    if said[:1] in _QUOTES and not {*_QUOTES} & {*said[1:]}:
        return said[1:].strip()
    return said[:-1].strip() if said[-1:] in _QUOTES and not {*_QUOTES} & {*said[:-1]} else said


def offered(said: str, source: SourceText) -> list[Item]:
    """Whole sentences that are quoted, and what is around them: `You could say "…" or "…"`."""
    if not source.lacks(_QUOTES) or unquoted(said) != said:
        return []
    spans = [match for match in _QUOTED.finditer(said) if 2 * size_of(match.group()) >= source.size]
    spans = [
        match
        for match in spans
        if ENDED.search(match.group().rstrip('"”“」»*')) or not match.group()[1].islower()
    ]
    if not spans or (len(spans) == 1 and len(spans[0].group()) >= len(said) - 2):
        return []
    before = said[: spans[0].start()].rstrip(" *_(-–—•")
    if before and not _OFFERS.search(before):
        return []
    items: list[Item] = []
    for start, span in zip([0, *(span.end() for span in spans)], spans, strict=False):
        quoted = span[span.lastgroup or 0].strip()
        items += [Item(said[start : span.start()].strip(), "remark")]
        items += [Item(quoted, "echo" if source.is_said_by(quoted) else None)]
    items.append(Item(said[spans[-1].end() :].strip(), "remark"))
    return [item for item in items if has_words(item.text)]


def _without_remark(said: str, source: SourceText) -> tuple[str, str]:
    """A sentence and the remark behind it, told by where it is and by its words."""
    bare = said.rstrip('.。!?;, *_"”')
    opener = _OPENERS.get(bare[-1:], "")
    start = bare.rfind(opener) if opener else -1
    if start > 1 and source.lacks("()（）[]【】{}"):
        sentence, inner = said[:start].rstrip(), bare[start + 1 : -1]
        is_remark = bare == said or ENDED.search(sentence) or source.is_remark(inner)
        if is_remark or opener not in "(（" or is_translation(inner, sentence):
            return sentence, said[start:]
    for match in islice(_BEHIND.finditer(said), _SIGNS):
        sentence, remark = said[: match.start()], said[match.end() :]
        sign = match.group().strip()
        own = "-–—~" if sign[:1] in tuple("-–—~") else "#/|→←" if sign else "()（）[]"
        if not remark or not source.lacks(own) or 3 * size_of(sentence) < source.size:
            continue
        if ENDED.search(sentence) or (sign and source.is_remark(remark)):
            return sentence.rstrip(), remark.strip()
    stops = [match.end() for match in islice(STOP.finditer(said), _SIGNS)]
    for start, end in zip(stops, [*stops[1:], len(said)], strict=False):
        if start < len(said) and (
            source.is_remark(said[start:end]) or is_translation(said[start:end], said[:start])
        ):
            return said[:start].rstrip(), said[start:].strip()
    return said, ""
