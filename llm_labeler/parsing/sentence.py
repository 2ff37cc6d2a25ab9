"""Decide whether a piece of an answer is a sentence; remove its label, markup, quotes and remarks."""

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
    """The reason to drop the value of a JSON key or a column; "" if it is a sentence, None if unknown."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])|[_\W]+", " ", name[:80]).strip() or name[:80]
    if ECHO_NAME.match(plain):
        return "echo"
    if SIDE_NAME.match(plain):
        return "side_field"
    return "" if SENTENCE_NAME.search(plain) else None


def polarity_of(name: str) -> Polarity | None:
    """The polarity that a name or heading states; None for neither or both."""
    positive, negative = POSITIVE.search(name[:200]) is not None, NEGATIVE.search(name[:200]) is not None
    return None if positive == negative else "positive" if positive else "negative"


def tidy(piece: str) -> str:
    """Collapse white space."""
    return " ".join(piece.split())


def has_words(piece: str) -> bool:
    """Whether a piece has a letter or a digit."""
    return any(map(str.isalnum, piece))


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
        """Compute the features of a text once."""
        text = tidy(text)
        return cls(text, fold(text), frozenset(words(text)), size_of(text))

    def equals(self, piece: str) -> bool:
        """Whether a piece equals this text but for case, spaces and punctuation."""
        return bool(self.folded) and len(piece) < 3 * len(self.text) + 50 and fold(piece) == self.folded

    def resembles(self, piece: str) -> bool:
        """Whether at least half of the words of a piece are in this text."""
        piece_words = {*words(piece[:2000])}
        return bool(piece_words) and 2 * len(piece_words & self.words) >= len(piece_words)

    def is_as_long_as(self, piece: str) -> bool:
        """Whether a piece is long enough for a rewrite."""
        return 5 * size_of(piece) >= 2 * self.size

    def begins(self, pattern: re.Pattern[str], piece: str) -> re.Match[str] | None:
        """The match at the beginning of a piece; None if this text begins with the pattern, too."""
        match = pattern.match(piece)
        return None if match is None or pattern.match(self.text) else match

    def lacks(self, characters: str | re.Pattern[str]) -> bool:
        """Whether this text has none of these characters, or no match of this pattern."""
        if isinstance(characters, str):
            return not any(character in self.text for character in characters)
        return characters.search(self.text) is None

    def is_remark(self, piece: str) -> bool:
        """Whether a piece, unlike this text, is about words or sentences."""
        return META.search(piece[:500]) is not None and self.lacks(META) and not self.resembles(piece)


def why_no_sentence(piece: str, source: SourceText, *, in_list: bool = False) -> str | None:
    """The reason why a piece is not a sentence, by its words; None if it may be one."""
    bare = piece.lstrip("#*_>[(（ ")
    if NOTHING.fullmatch(piece[:120]) or (source.begins(REFUSAL, bare) and not source.resembles(piece)):
        return "refusal" if has_words(piece) else "unparsable"
    if source.begins(ECHO, bare) or source.equals(bare.strip("\"'“”*_ ")):
        return "echo"
    if source.begins(NOTE, bare):
        return "closing_note"
    if in_list:
        return None
    if source.begins(THINKS, bare):
        return "thinking"
    if source.begins(CLOSING, bare) and not source.resembles(piece):
        return "closing_note"
    return "preamble" if is_heading(piece, source) else None


def is_heading(piece: str, source: SourceText) -> bool:
    """Whether a piece is a heading or an introduction."""
    bare = piece.strip("#*_ ")
    if bare.endswith((":", "：")) and not source.text.endswith((":", "：")):
        return size_of(bare) <= 12 or ABOUT.search(bare) is not None
    if re.match(r"#{1,6} ", piece) or (
        re.fullmatch(r"\*\*[^*]+\*\*", piece) and not source.is_as_long_as(bare)
    ):
        return True
    return lead_end(bare, source) == len(bare) > 0 or LABEL.fullmatch(f"{bare}:") is not None


def names_answer(line: str) -> bool:
    """Whether a line, or a sentence within it, begins with a label such as `Synonyms:`."""
    labels = (LABEL.match(line, start) for start in (0, *(stop.end() for stop in STOP.finditer(line))))
    return any(label and polarity_of(label.group()) for label in labels)


def lead_end(piece: str, source: SourceText) -> int:
    """End index of the introduction at the beginning of a piece; 0 without one."""
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
_MAX_MATCHES = 12  # in one line
_BRACKET_IN_FRONT = re.compile(
    r"(?:\[[^\[\]\n]{1,40}\]|\([^()\n]{1,40}\)|（[^（）\n]{1,40}）|【[^【】\n]{1,40}】)[:：\s]*"
)
_EMOJI = "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u23e9-\u23ff\ufe0f\u200d]"
_ANY_EMOJI = re.compile(_EMOJI)
# The lookbehinds keep a long run from being tried from each of its characters, in quadratic time.
_EMOJIS = re.compile(rf"\A(?:{_EMOJI}|\s)+|(?<!{_EMOJI})(?<!\s)(?:{_EMOJI}|\s)+\Z")


def refine(piece: str, source: SourceText, *, is_value: bool = False) -> list[Item]:
    """The items of one piece of an answer: its sentence, an echo before it, and remarks after it."""
    text = tidy(piece)
    if not has_words(text):
        return [Item(text, "unparsable")] if text else []
    echo, text = _split_echo(text, source)
    if (reason := why_no_sentence(text, source, in_list=True)) is not None:
        return [Item(text, reason)]
    items = [Item(echo, "echo")] if echo else []
    if not is_value and (quoted := quoted_sentences(text, source)):
        return items + quoted
    remarks: list[Item] = []
    for _ in range(5):
        before = text
        text = without_label(without_emphasis(text, source), source)
        text = unquoted(text) if not is_value or source.lacks(_QUOTES) else text
        text, remark = _split_remark(text, source)
        remarks += [Item(remark, "remark")] if remark else []
        if text == before:
            break
    if not has_words(text):
        return [Item(tidy(piece), "preamble")]  # a label without a sentence
    return [*items, Item(text, why_no_sentence(text, source, in_list=True)), *remarks]


def _split_echo(text: str, source: SourceText) -> tuple[str, str]:
    """Split `source -> sentence` or `Original: … Antonym: …`; the echo is empty without either."""
    stem = source.text.rstrip(".!?。！？").casefold()
    index = text[: 60 + len(source.text)].casefold().find(stem) if stem else -1
    before = text[: max(index, 0)].rstrip("\"'“‘「*_ ")
    if index >= 0 and (not before or before.endswith((":", "："))):
        rest = text[index + len(stem) :]
        label = LABEL.match(rest.lstrip(" \"”'’」*_.!?。/|;,"))
        start = len(text) - len(label.string) if label else index + len(stem)
        start += link.end() if not label and (link := _LINK.match(rest)) else 0
        if start > index + len(stem) and source.is_as_long_as(text[start:]):
            return text[:start].rstrip(), text[start:]
    return "", text


def without_emphasis(text: str, source: SourceText) -> str:
    """Remove bold and italic marks, and emojis at both ends."""
    if source.lacks("*") and not BOLD_LABEL.match(text):
        text = re.sub(r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}", "", text)
    text = text.strip("_") if len(text) > 2 and text[0] == text[-1] == "_" else text
    return _EMOJIS.sub("", text) or text if not _ANY_EMOJI.search(source.text) else text


def without_label(text: str, source: SourceText) -> str:
    """Remove a label such as `Positive:`."""
    for pattern in (BOLD_LABEL, LABEL, _CODE):
        match = source.begins(pattern, text)
        if match is not None and match.end() < len(text):
            rest = text[match.end() :].lstrip("*_ ")
            return rest.rstrip(";) ") if pattern is _CODE else rest
    match = _BRACKET_IN_FRONT.match(text)
    is_tag = match and match.end() < len(text) and text[0] not in source.text and size_of(match.group()) < 6
    return text[match.end() :] if match and is_tag and re.search(r"[^\W\d_]", match.group()) else text


def unquoted(text: str) -> str:
    """Remove the quotes around a whole sentence; a full stop may follow them."""
    body = text.rstrip(",;，；、 ")
    body, stop = (
        (body[:-1], body[-1]) if body[-1:] in (".", "。") and body[-2:-1] in _CLOSER.values() else (body, "")
    )
    if len(body) > 2 and _CLOSER.get(body[0]) == body[-1]:
        inner = body[1:-1].strip()
        first = inner.find(body[-1])
        if body[0] == body[-1]:  # an inner quote follows a space, or is an apostrophe
            is_within = inner[first - 1 : first].isalnum() and inner[first + 1 : first + 2].isalnum()
            encloses = first < 0 or is_within or (first > 0 and inner[first - 1].isspace())
        else:
            encloses = first < 0 or body[0] in inner[:first] or body[-1] == "’"
        if encloses:
            return inner if ENDED.search(inner) else inner + stop
    if text[:1] in _QUOTES and not {*_QUOTES} & {*text[1:]}:
        return text[1:].strip()
    return text[:-1].strip() if text[-1:] in _QUOTES and not {*_QUOTES} & {*text[:-1]} else text


def quoted_sentences(text: str, source: SourceText) -> list[Item]:
    """Quoted whole sentences and the text around them: `You could say "…" or "…"`."""
    if not source.lacks(_QUOTES) or unquoted(text) != text:
        return []
    spans = [match for match in _QUOTED.finditer(text) if 2 * size_of(match.group()) >= source.size]
    spans = [
        match
        for match in spans
        if ENDED.search(match.group().rstrip('"”“」»*')) or not match.group()[1].islower()
    ]
    if not spans or (len(spans) == 1 and len(spans[0].group()) >= len(text) - 2):
        return []
    before = text[: spans[0].start()].rstrip(" *_(-–—•")
    if before and not _OFFERS.search(before):
        return []
    items: list[Item] = []
    for start, span in zip([0, *(span.end() for span in spans)], spans, strict=False):
        quoted = span[span.lastgroup or 0].strip()
        items += [Item(text[start : span.start()].strip(), "remark")]
        items += [Item(quoted, "echo" if source.equals(quoted) else None)]
    items.append(Item(text[spans[-1].end() :].strip(), "remark"))
    return [item for item in items if has_words(item.text)]


def _split_remark(text: str, source: SourceText) -> tuple[str, str]:
    """Split off a remark after a sentence: in brackets, after a dash, or a sentence about sentences."""
    bare = text.rstrip('.。!?;, *_"”')
    opener = _OPENERS.get(bare[-1:], "")
    start = bare.rfind(opener) if opener else -1
    if start > 1 and source.lacks("()（）[]【】{}"):
        sentence, inner = text[:start].rstrip(), bare[start + 1 : -1]
        is_remark = bare == text or ENDED.search(sentence) or source.is_remark(inner)
        if is_remark or opener not in "(（" or is_translation(inner, sentence):
            return sentence, text[start:]
    for match in islice(_BEHIND.finditer(text), _MAX_MATCHES):
        sentence, remark = text[: match.start()], text[match.end() :]
        sign = match.group().strip()
        signs = "-–—~" if sign[:1] in tuple("-–—~") else "#/|→←" if sign else "()（）[]"
        if not remark or not source.lacks(signs) or 3 * size_of(sentence) < source.size:
            continue
        if ENDED.search(sentence) or (sign and source.is_remark(remark)):
            return sentence.rstrip(), remark.strip()
    stops = [match.end() for match in islice(STOP.finditer(text), _MAX_MATCHES)]
    for start, end in zip(stops, [*stops[1:], len(text)], strict=False):
        piece = text[start:end]
        is_note = NOTE.match(piece) is not None and source.lacks(NOTE)
        if piece and (is_note or source.is_remark(piece) or is_translation(piece, text[:start])):
            return text[:start].rstrip(), text[start:].strip()
    return text, ""
