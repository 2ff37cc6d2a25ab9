"""Find the sentences in a piece of an answer, without markup, quotes and remarks."""

from __future__ import annotations

import html
import re
from itertools import islice, pairwise

from llm_labeler.parsing.phrases import (
    ABOUT,
    BOLD_LABEL,
    COLONS,
    LABEL,
    NOTE,
    is_remark,
    may_be_sentence,
    why_no_sentence,
)
from llm_labeler.parsing.source_text import (
    ENDED,
    STOP,
    SourceText,
    has_words,
    is_translation,
    joined,
    sentences_of,
    size_of,
    tidy,
)
from llm_labeler.records import Item, Items
from pairkit.base.system.machine import batched

_CODE = re.compile(r"(?:[A-Za-z_$][\w.$ ]{0,40}:?= ?|[A-Za-z_.]{2,30}\()(?=[\"'`])")
_LINK = re.compile(
    r"[\s\"”'’」*_.!?。)]*(?:(?:vs\.?|versus|becomes?|to|into|变成|改为"
    r"|[-=–—>→⇒⟶➔➜:|/~≠↔⇔]+)[\s*_]*)+[\"“'‘「]?(?=\S)",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    joined(r"""
    "(?P<a>[^"\n]{2,2000})"|“(?P<b>[^“”\n]{2,2000})[”“]|„(?P<c>[^“”„\n]{2,2000})[“”]
    |「(?P<d>[^「」\n]{2,2000})」
    |«(?P<e>[^«»\n]{2,2000})»|\*\*(?P<f>[^*\n]{2,2000}(?<![:：]))\*\*
""")
)
_OFFERS = re.compile(
    r"(?:[:：→说是为或]|\b(?:say|write|be|is|are|or|and|as|becomes?|to|use|alternatively|like),?"
    r"|^\d{1,3}\s*[,;])$",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[\dA-Fa-f]{1,6}|[A-Za-z]{2,8});")  # of HTML
_QUOTES = '"“”„「」«»'
_INNER_APOSTROPHE = re.compile(r"(?<=\w)’(?=\w)")
_CLOSER = dict(zip("“„「『«‘\"'`", "”“」』»’\"'`", strict=True))
# Emphasis with its words, or one end of it: the other may be before the mark of a list
# or cut off. Not products, `count(*)`, `*.txt` or `two **kwargs`.
_STARS = re.compile(
    r"(?<![A-Za-z\d_*])(\*{1,3})(?=[\w\"“'‘「(\[¿¡])([^*]*[^\s*])\1(?![A-Za-z\d_*])"
    r"|^\*{2,3}(?=[^\s*])|(?<=[^\s*])\*{2,3}$"
)
_UNDERSCORES = re.compile(r"(_{1,3})([^_](?:.*[^_])?)\1")
# An underscore at the beginning or end of a word.
_OUTER_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_OPENERS = dict(zip(")）]】}", "(（[【{", strict=True))
_BEHIND = re.compile(
    r" [-–—~]+ |\s?—+\s?|\s(?:#|//|←|<-+|\|)\s?|\s+(?:->|→|⇒|=>)\s+"
    r"|\s+(?=[\[(（])|(?<=[.!?。])(?=[（(])"
)
_SEPARATORS = re.compile(r"\s+(?:[|/]|--)\s+|\s*[;；、]\s*|\s+OR\s+|\t+|(?<=[.!?]),\s*")
_MAX_MATCHES = 12  # in one line
_MAX_LAYERS = 5  # of quotes, labels and remarks around a sentence
_MAX_LABEL_WORDS = 6
_DASHES = "-–—~"
_BRACKET_IN_FRONT = re.compile(
    r"(?:\[[^\[\]\n]{1,40}\]|\([^()\n]{1,40}\)|（[^（）\n]{1,40}）|【[^【】\n]{1,40}】)[:：\s]*"
)
_EMOJI = "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u23e9-\u23ff\ufe0f\u200d]"
_ANY_EMOJI = re.compile(_EMOJI)
# The lookbehinds keep a long run from being tried from each of its characters, in
# quadratic time.
_EMOJIS = re.compile(rf"\A(?:{_EMOJI}|\s)+|(?<!{_EMOJI})(?<!\s)(?:{_EMOJI}|\s)+\Z")


def refine(piece: str, source: SourceText, *, is_value: bool = False) -> Items:
    """The items of one piece of an answer: an echo, its sentence, and remarks."""
    if source.lacks("&"):
        piece = _ENTITY.sub(lambda match: html.unescape(match[0]), piece)
    text = tidy(piece)
    if not has_words(text):
        return [Item(text, "unparsable")] if text else []
    echo, text = split_echo(text, source)
    reason = why_no_sentence(text, source, in_list=True)
    if reason is not None:
        return [Item(text, reason)]
    items = [Item(echo, "echo")] if echo else []
    if not is_value:
        quoted = quoted_sentences(text, source)
        if quoted:
            return items + quoted

    remarks = []
    for _ in range(_MAX_LAYERS):
        before = text
        text = without_emphasis(text, source)
        text = without_label(text, source)
        if not is_value or source.lacks(_QUOTES):
            text = unquoted(text)
        text, remark = _split_remark(text, source)
        if remark:
            remarks.append(Item(remark, "remark"))
        if text == before:
            break
    if not has_words(text):
        return [Item(tidy(piece), "preamble")]  # a label without a sentence
    return [*items, Item(text, why_no_sentence(text, source, in_list=True)), *remarks]


def split_echo(text: str, source: SourceText) -> tuple[str, str]:
    """Split `source -> sentence` or `Original: … Antonym: …`; the echo may be empty."""
    stem = source.text.rstrip(".!?。！？")
    beginning = text[: 60 + len(source.text)]
    repeated = re.search(re.escape(stem), beginning, re.IGNORECASE)
    if not stem or repeated is None:
        return "", text
    before = text[: repeated.start()].rstrip("\"'“‘「*_ ")
    if before and not before.endswith(COLONS):
        return "", text

    end = repeated.end()
    after = text[end:]
    rest = after.lstrip(" \"”'’」*_.!?。/|;,")
    link = _LINK.match(after)
    if LABEL.match(rest):
        start = len(text) - len(rest)
    elif link:
        start = end + link.end()
    else:
        return "", text
    if start == end or not source.is_as_long_as(text[start:]):
        return "", text
    return text[:start].rstrip(), text[start:]


def without_emphasis(text: str, source: SourceText) -> str:
    """Remove bold and italic marks, and emojis at both ends."""
    if source.lacks("*") and not BOLD_LABEL.match(text):
        text = _STARS.sub(r"\2", text)
    emphasised = _UNDERSCORES.fullmatch(text)
    if emphasised and not _OUTER_UNDERSCORE.search(emphasised[2]):
        text = emphasised[2]
    if _ANY_EMOJI.search(source.text):
        return text
    return _EMOJIS.sub("", text) or text


def without_label(text: str, source: SourceText) -> str:
    """Remove a label such as `Positive:`."""
    for pattern in (BOLD_LABEL, LABEL, _CODE):
        match = source.begins(pattern, text)
        if match is not None and match.end() < len(text):
            rest = text[match.end() :].lstrip("*_ ")
            return rest.rstrip(";) ") if pattern is _CODE else rest
    match = _BRACKET_IN_FRONT.match(text)
    if match is None or text[0] in source.text:
        return text
    bracket = match.group()
    is_label = size_of(bracket) < _MAX_LABEL_WORDS and re.search(r"[^\W\d_]", bracket)
    if is_label and match.end() < len(text):
        return text[match.end() :]
    return text


def unquoted(text: str) -> str:
    """Remove the quotes around a whole sentence; a full stop may follow them."""
    body = text.rstrip(",;，；、 ")
    stop = ""
    if body.endswith((".", "。")) and body[-2:-1] in _CLOSER.values():
        stop = body[-1]
        body = body[:-1]
    if len(body) > 2 and _CLOSER.get(body[0]) == body[-1]:
        inner = body[1:-1].strip()
        if _are_a_pair(body[0], body[-1], inner):
            return inner if ENDED.search(inner) else inner + stop

    # A quote at one end only; after a digit it is a mark of inches or seconds.
    is_unit = text[-1:] == '"' and text[-2:-1].isdigit()
    if sum(map(text.count, _QUOTES)) == 1 and not is_unit:
        return text.strip(f" {_QUOTES}")
    return text


def _are_a_pair(opener: str, closer: str, inner: str) -> bool:
    """Whether no other quote in the text closes the first of the quotes around it."""
    if closer == "’":
        inner = _INNER_APOSTROPHE.sub("", inner)
    index = inner.find(closer)
    if index < 0 or inner.startswith(closer) or inner.endswith(closer):
        return True
    if opener != closer:
        is_apostrophe = closer == "’" and opener not in inner
        return is_apostrophe or opener in inner[:index]
    before = inner[:index][-1:]
    is_apostrophe = before.isalnum() and inner[index + 1 : index + 2].isalnum()
    return is_apostrophe or before.isspace()


def quoted_sentences(text: str, source: SourceText) -> Items:
    """Quoted whole sentences and the text around them: `You could say "…" or "…"`."""
    if not source.lacks(_QUOTES) or unquoted(text) != text:
        return []
    matches = [
        match for match in _QUOTED.finditer(text) if _is_whole(match.group(), source)
    ]
    if not matches or len(matches[0].group()) >= len(text) - 2:
        return []
    first, *_ = matches
    before = text[: first.start()].rstrip(" *_(-–—•")
    is_echo = source.equals(first.group().strip('"“”„「」«»* '))
    if before and not is_echo and not _OFFERS.search(before):
        return []
    behind = text[matches[-1].end() :].strip()
    is_part = behind[:1].islower() and not ABOUT.search(behind)
    if is_part and (is_echo or not before):
        return []  # `"Open" does nothing`

    items = []
    end = 0
    for match in matches:
        quoted = match[match.lastgroup or 0].strip()
        items.append(Item(text[end : match.start()].strip(), "remark"))
        items.append(Item(quoted, "echo" if source.equals(quoted) else None))
        end = match.end()
    items.append(Item(text[end:].strip(), "remark"))
    return [item for item in items if has_words(item.text)]


def _is_whole(quoted: str, source: SourceText) -> bool:
    """Whether a text in quotes is a sentence rather than words."""
    if 2 * size_of(quoted) < source.size:
        return False
    return ENDED.search(quoted.rstrip('"”“」»*')) is not None or not quoted[1].islower()


def _split_remark(text: str, source: SourceText) -> tuple[str, str]:
    """Split off a remark: in brackets, after a dash, or a sentence about sentences."""
    split = (
        _split_bracket(text, source)
        or _split_behind_sign(text, source)
        or _split_note(text, source)
    )
    return split or (text, "")


def _split_bracket(text: str, source: SourceText) -> tuple[str, str] | None:
    bare = text.rstrip('.。!?;, *_"”')
    opener = _OPENERS.get(bare[-1:], "")
    start = _start_of_bracket(bare, opener) if opener else -1
    if start <= 1 or not source.lacks("()（）[]【】{}"):
        return None
    sentence = text[:start].rstrip()
    inner = bare[start + 1 : -1]
    # Round brackets before the full stop may belong to the sentence.
    is_behind = opener not in "(（" or bare == text or ENDED.search(sentence)
    if is_behind or is_remark(inner, source) or is_translation(inner, sentence):
        return sentence, text[start:]
    return None


def _start_of_bracket(text: str, opener: str) -> int:
    """Index of the bracket that the last character closes, or else of the last one."""
    closer = text[-1]
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        depth += (text[index] == closer) - (text[index] == opener)
        if not depth:
            return index
    return text.rfind(opener)


def _split_behind_sign(text: str, source: SourceText) -> tuple[str, str] | None:
    for match in islice(_BEHIND.finditer(text), _MAX_MATCHES):
        sentence = text[: match.start()]
        remark = text[match.end() :]
        sign = match.group().strip()
        is_short = 3 * size_of(sentence) < source.size
        if not remark or is_short or not source.lacks(_similar_signs(sign)):
            continue
        if ENDED.search(sentence) or (sign and is_remark(remark, source)):
            return sentence.rstrip(), remark.strip()
    return None


def _similar_signs(sign: str) -> str:
    """The signs of which a source text with any may have a similar rewrite."""
    if not sign:
        return "()（）[]"
    return _DASHES if sign[0] in _DASHES else "#/|→←"


def _split_note(text: str, source: SourceText) -> tuple[str, str] | None:
    stops = [match.end() for match in islice(STOP.finditer(text), _MAX_MATCHES)]
    for start, end in pairwise([*stops, len(text)]):
        sentence = text[:start]
        piece = text[start:end]
        is_note = NOTE.match(piece) and source.lacks(NOTE)
        if is_note or is_remark(piece, source) or is_translation(piece, sentence):
            return sentence.rstrip(), text[start:].strip()
    return None


def restore(pieces: Items, source: SourceText) -> Items:
    """Restore lines that only begin like remarks, if sentences are missing without them."""
    missing = (source.wanted or 1) - [piece.reason for piece in pieces].count(None)
    result = []
    for piece in pieces:
        if missing > 0 and piece.reason and may_be_sentence(piece.text, source):
            missing -= 1
            piece = Item(piece.text)
        result.append(piece)
    return result


def join_sentences(pieces: Items, source: SourceText) -> Items:
    """Join lines that are single sentences of rewrites of a text of several."""
    kept = [piece.text for piece in pieces if piece.reason is None]
    width = source.width
    count = width * (source.wanted or 0)
    if width < 2 or not len(kept) == count == sum(map(len, map(sentences_of, kept))):
        return pieces
    rewrites = [Item(" ".join(lines)) for lines in batched(kept, width)]
    return rewrites + [piece for piece in pieces if piece.reason]


def split_paragraph(text: str, source: SourceText) -> Items:
    """Split a paragraph into answers at separators, or after as many sentences as the source has."""
    if source.lacks(_SEPARATORS):
        answers = [answer.strip() for answer in _SEPARATORS.split(text)]
        is_list = len(answers) > 1 and source.wanted in (None, len(answers))
        if is_list and all(map(source.is_as_long_as, answers)):
            return [*map(Item, answers)]

    sentences = sentences_of(text)
    is_answer = (
        source.text.endswith(("?", "？")) and "?" not in text and "？" not in text
    )
    if is_answer and len(sentences) > 1:
        return [Item(text, "refusal")]  # an answer to the question

    count, left_over = divmod(len(sentences), source.width)
    is_even = left_over == 0 and count > 1
    is_wanted = source.wanted != 1 and (source.width == 1 or count == source.wanted)
    if not (is_even and is_wanted):
        return [Item(text)]
    is_quoted = unquoted(text) != text or quoted_sentences(text, source)
    has_echo, _ = split_echo(text, source)
    if is_quoted or has_echo:
        return [Item(text)]
    pieces = []
    for start in range(0, len(sentences), source.width):
        piece = " ".join(sentences[start : start + source.width])
        pieces.append(Item(piece, _why_remark(piece, source)))
    return pieces


def _why_remark(piece: str, source: SourceText) -> str | None:
    """The reason of a sentence of a paragraph that is a remark; None for a rewrite."""
    if piece.startswith(("(", "（", "[", "—", "–")) and source.lacks("(（[—–"):
        return "remark"
    if is_remark(piece, source):
        return "closing_note"
    return why_no_sentence(piece, source)
