"""What clothes an answer: line ends, invisible signs, HTML, code fences."""

from __future__ import annotations

import re
from html import unescape
from unicodedata import numeric

_BREAK = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]")
# NUL and the like, and halves of surrogate pairs, which no file can hold.
_BROKEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_CIRCLED = re.compile(r"^([ \t>*]*)(?:([①-⑳㉑-㉟㊱-㊿❶-❿⓫-⓴➀-➓⓵-⓾])|(\d{1,2})\ufe0f?\u20e3)", re.MULTILINE)

_PAGE = re.compile(r"\s*(?:<!doctype\s+html|<html\b|<\?xml)", re.IGNORECASE)
_ITEM = re.compile(
    r"<(?:li|item|sentence|paraphrase|synonym|antonym|option)\b[^<>]{0,200}>(?:\s{0,20}<p>)?", re.IGNORECASE
)
_BLOCK_END = re.compile(
    r"<br\s{0,3}/?>|</(?:li|item|sentence|paraphrase|synonym|antonym|option|p|div|tr|h[1-6]|title)>"
    r"|</?(?:ol|ul|table)\b[^<>]{0,200}>",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"</?(?:p|div|span|tr|td|th|tbody|thead|h[1-6]|b|i|u|em|strong|code|pre|html|body|head|title|center|hr"
    r"|sentences|items|answers?|outputs?|results?|response|list)\b[^<>]{0,200}>",
    re.IGNORECASE,
)
_FENCE = re.compile(
    r"[ \t]*(?:`{3,}|~{3,})(?:[\w+-]*(?=[ \t]*$)|(?:json|text|txt|markdown|md|plaintext|python)\b)?"
)


def plain(raw: str) -> str:
    """`raw` with one kind of line end and circled numbers as `1. `; signs that can't be stored are U+FFFD."""
    text = raw if raw.isascii() else _UNSEEN.sub("", raw)
    text = _BROKEN.sub("\ufffd", _BREAK.sub("\n", text))
    return text if text.isascii() else _CIRCLED.sub(_as_number, text)


def _as_number(match: re.Match[str]) -> str:
    number = int(numeric(match[2])) if match[2] else int(match[3])
    return f"{match[1]}{number}. "


def without_html(text: str) -> str | None:
    """`text` with tags as line breaks and bullets; None for a page that lists nothing."""
    if "<" not in text:
        return text
    is_page = _PAGE.match(text) is not None
    if is_page:
        if _ITEM.search(text) is None:
            return None
        text = text[max(text.lower().find("<body"), 0) :]
    bare = _TAG.sub("", _BLOCK_END.sub("\n", _ITEM.sub("\n- ", text)))
    return bare if bare == text else unescape(bare)


def fenced(text: str) -> tuple[str, str, str]:
    """What stands before, in and after code fences; all is inside where no fence holds any text."""
    if "```" not in text and "~~~" not in text:
        return "", text, ""
    parts: list[tuple[bool, list[str]]] = [(False, [])]
    for line in text.split("\n"):
        match, inside = _FENCE.match(line), parts[-1][0]
        content = line[match.end() :] if match else line
        if match:
            inside = not inside
            parts.append((inside, []))
        closes = inside and content.rstrip().endswith("```")
        parts[-1][1].append(content.rstrip().rstrip("`") if closes else content)
        if closes:
            parts.append((False, []))
    held = [n for n, (inside, lines) in enumerate(parts) if inside and _has_words(lines)]
    if not held:
        return "", "\n".join(_joined(parts)), ""
    inner = [part for part in parts[held[0] : held[-1] + 1] if part[0]]
    between = [part for part in parts[held[0] : held[-1] + 1] if not part[0]]
    before, after = [*parts[: held[0]], *between], parts[held[-1] + 1 :]
    return "\n".join(_joined(before)), "\n\n".join(_joined(inner)), "\n".join(_joined(after))


def _joined(parts: list[tuple[bool, list[str]]]) -> list[str]:
    return ["\n".join(lines) for _, lines in parts]


def _has_words(lines: list[str]) -> bool:
    return any(character.isalnum() for line in lines for character in line)
