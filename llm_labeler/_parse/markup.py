"""What clothes an answer: line ends, invisible signs, HTML, code fences."""

from __future__ import annotations

import re
from html import unescape
from unicodedata import numeric

from llm_labeler._parse.names import polarity_of, role_of

_BREAK = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPACE = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f]")
_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]")
# NUL and the like, and halves of surrogate pairs, which no file can hold.
_BROKEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_CIRCLED = re.compile(
    r"^([ \t>*]*)(?:([①-⑳㉑-㉟㊱-㊿❶-❿⓫-⓴➀-➓⓵-⓾])|(\d{1,2})\ufe0f?\u20e3)"
    r"(?=[ \t]*\S)(?![^\n]*[①-⑳❶-❿➀-➓⓵-⓾\u20e3])",
    re.MULTILINE,
)

_PAGE = re.compile(r"\s*(?:<!doctype\s+html|<html\b)", re.IGNORECASE)
_XML = re.compile(r"(?<!\s)\s*+<\?xml[^<>]{0,200}\?>")
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][\w.-]{0,40})(?P<fields>\s[^<>]{0,1000})?/?>")
_FIELD = re.compile(r"([\w:.-]{1,40})\s?=\s?(?:\"([^\"]*)\"|'([^']*)')")
_CDATA = re.compile(r"<!\[CDATA\[|\]\]>|<!--")
_INLINE = frozenset((
    "b", "i", "u", "em", "strong", "code", "span", "mark", "small", "sup", "sub", "font", "a", "s", "del",
    "ins", "big", "tt", "kbd", "q", "cite", "abbr", "body", "html"
))  # fmt: skip
_LAYOUT = frozenset((
    "p", "div", "br", "hr", "tr", "td", "th", "tbody", "thead", "table", "ul", "ol", "dl", "head", "title",
    "center", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article"
))  # fmt: skip
_WIKI_HEADING = re.compile(r"^ {0,3}={2,6} {0,3}([^=\n]{1,80}?) {0,3}={2,6} {0,3}$", re.MULTILINE)
_WIKI_LINK = re.compile(r"^\[\[(?:category|kategorie):[^\[\]\n]{1,80}\]\]$", re.MULTILINE | re.IGNORECASE)
_UNDERLINED = re.compile(r"^([^\W\d_][^\n]{0,80}[^\W_])\n(={3,80}|-{3,80}|~{3,80}|\^{3,80})$", re.MULTILINE)
_LATEX = re.compile(
    r"\\(?:begin|end)\{[a-zA-Z*]{1,20}\}(?:\[[^\[\]\n]{0,60}\])?|\\documentclass\S{0,60}|\\usepackage\S{0,60}"
)
_LATEX_ITEM = re.compile(r"\\item\b[ \t]*(?:\[[^\[\]\n]{0,40}\])?[ \t]*")
_LATEX_STYLE = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|sc)|emph|underline)\{([^{}\n]{0,1000})\}|\\(?:boxed|text|mbox"
    r"|fbox)\{([^{}\n]{0,1000})\}"
)
_FENCE = re.compile(
    r"[ \t]*(?:`{3,}|~{3,})(?:[\w+-]*(?=[ \t]*$)|(?:json|text|txt|markdown|md|plaintext|python)\b)?"
)


def plain(raw: str) -> str:
    """`raw` with one kind of line end and of space, circled numbers as `1. `, and U+FFFD for broken signs."""
    text = raw if raw.isascii() else _SPACE.sub(" ", _UNSEEN.sub("", raw))
    text = _BROKEN.sub("\ufffd", _BREAK.sub("\n", text))
    return text if text.isascii() else _CIRCLED.sub(_as_number, text)


def _as_number(match: re.Match[str]) -> str:
    number = int(numeric(match[2])) if match[2] else int(match[3])
    return f"{match[1]}{number}. "


def without_tags(text: str) -> str | None:
    """`text` with tags as line ends, bullets and labels; None for a page that lists nothing."""
    if "<" not in text:
        return text
    if _PAGE.match(text) is not None:
        if "<li" not in text.lower():
            return None
        text = text[max(text.lower().find("<body"), 0) :]
    text = _CDATA.sub("", _XML.sub("", text))
    tags = list(_TAG.finditer(text))
    parts: list[str] = []
    place = 0
    for tag, following in zip(tags, [*tags[1:], None], strict=False):
        parts.append(text[place : tag.start()])
        instead = _instead_of(tag, following)
        parts.append(tag.group() if instead is None else instead)
        place = tag.end()
    bare = "".join((*parts, text[place:]))
    return bare if bare == text else unescape(bare)


def _instead_of(tag: re.Match[str], following: re.Match[str] | None) -> str | None:
    """What stands for a tag; None where it is none of markup, but of the text."""
    name = tag["name"].lower()
    if name in _INLINE:
        return ""
    if name in _LAYOUT:
        return "\n"
    if name == "dt":
        return ":**\n" if tag["end"] else "\n**"
    if name == "dd":
        return "\n"
    if name == "li":
        return "\n" if tag["end"] else "\n- "
    if not tag["end"] and (said := _sentence_field(tag["fields"] or "")):
        return f"\n- {said}\n"
    role = role_of(name)
    is_leaf = following is not None and bool(following["end"]) and following["name"].lower() == name
    if tag["end"]:
        return "\n"
    if role is None and not is_leaf:
        return "\n" if following is not None else None
    label = name.replace("_", " ").replace("-", " ")
    if not is_leaf:
        return f"\n{label}:\n" if polarity_of(label) else "\n"
    if role == "echo":
        return "\nOriginal: "
    if role == "side":
        return "\nExplanation: "
    return f"\n- {label}: " if polarity_of(label) else "\n- "


def _sentence_field(fields: str) -> str:
    """The attribute that holds a sentence, as in `<paraphrase text="…"/>`; empty if none does."""
    values = ((name, double or single) for name, double, single in _FIELD.findall(fields))
    return next((value for name, value in values if role_of(name) == "sentence" and " " in value.strip()), "")


def without_latex(text: str) -> str:
    """`text` with the items of LaTeX's lists as bullets."""
    if "\\" not in text:
        return text
    bare = _LATEX_ITEM.sub("\n- ", _LATEX.sub("\n", text))
    bare = bare.replace("``", "“").replace("''", "”")
    return _LATEX_STYLE.sub(lambda match: match[1] or match[2] or "", bare)


def with_headings(text: str) -> str:
    """`text` with headings of Markdown for those that are underlined, and those of wikis."""
    text = _WIKI_LINK.sub("", _WIKI_HEADING.sub(r"# \1", text)) if "==" in text or "[[" in text else text
    return _UNDERLINED.sub(lambda m: f"# {m[1]}" if 2 * len(m[2]) >= len(m[1]) else m[0], text)


def with_line_ends(text: str) -> str:
    """`text` with line ends that were written with a backslash."""
    return text.replace("\\r", "").replace("\\n", "\n").replace('\\"', '"').replace("\\t", " ")


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
    start, end = held[0], held[-1] + 1
    inner = [part for part in parts[start:end] if part[0]]
    between = [part for part in parts[start:end] if not part[0]]
    before, after = [*parts[:start], *between], parts[end:]
    return "\n".join(_joined(before)), "\n\n".join(_joined(inner)), "\n".join(_joined(after))


def _joined(parts: list[tuple[bool, list[str]]]) -> list[str]:
    return ["\n".join(lines) for _, lines in parts]


def _has_words(lines: list[str]) -> bool:
    return any(character.isalnum() for line in lines for character in line)
