"""Clean the markup of an issue: HTML, images, checklists, login names in paths, and blanks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape

from gis_builder.detection.issue_references import edited
from gis_builder.detection.page import fences, inline_code

# Lines of a template's checklist ("I searched …", "Read the …") and their headings, not tasks or headings of
# an issue ("Search box loses focus", "Rows are duplicated").
_CHECKLIST = re.compile(
    r"""
    ^[ \t]*[-*+][ \t]+\[[ xX]?\][ \t]*+(?:
        # "I have read …", "By submitting this, I agree …"
        (?:[^,\n]{1,80},[ ])?(?:I|we|you|(?:are|have|did)[ ]you|please|willing)\b[^\n]*?
            (?:search|duplicat|existing|already|contribut|guideline|\bread\b|\bagree\b|\bconfirm|\bchecked\b)
        # "Confirmed that …"
        | (?:agree|confirm(?:ed)?|checked)[ ](?:docs|existing|for|if|other|that|the|this|to|with)\b
        | (?:have[ ])?searched\b | have[ ]read\b | read[ ](?:our|the)\b
        | (?:(?:do|did|perform(?:ed)?|used?)[ ][^\n]{0,20})?search\W{0,3}$
        | [^\n]*?(?:
            \bsearch(?:ed|ing)?\b[^\n]{0,60}?\b(?:issue|duplicate|bug|ticket|report|question|similar|tracker)
            | \bI[ ](?:agree|confirm|searched|have[ ](?:read|searched))\b
            | \b(?:no|for|(?:not|isn't)(?:[ ]a)?|avoid[^\n]{0,20})[ ]duplicat | duplicate[ ](?:check|issue|of)
            | existing[ ]issue | already[ ](?:been[ ])?(?:report|fil)ed | (?:not|n't)[ ]already[ ]exist
            | contributing\b | contribution[ ]guid | code[ ]of[ ]conduct | \bguidelines\b
            | latest[ ](?:version|release)))[^\n]*$
    | ^\#{1,6}[ \t](?:
        [^\n]*?(?:existing[ ]issue|\b(?:I|you|we|have|ve)[ ]searched\b|\bchecklist\b)[^\n]*
        | [ \t]*searched\b[^\n]*
        # "Is this a duplicate?", "Check for duplicates"
        | [ \t]*(?:(?:I|an?|about|already|and|any|are|avoid|before|check|checked|confirm|did|existing|for|have|is
            |issues?|it|known|look|no|not|of|or|please|possible|potential|search|searched|submitting,?|that|the
            |there|this|we|you|your)[ \t]+){0,9}
            duplicat(?:es?|ions?|ed)(?:[ \t]+(?:issues?|check|reports?))?[?:]?[ \t]*)$
    """,
    re.MULTILINE | re.IGNORECASE | re.VERBOSE,
)
# Lines with only names of people: the first author, people in copy.
_BYLINE = re.compile(
    r"^[ \t]*by \*\*[^*\n]{1,80}\*\*:?[ \t]*$"
    r"|^[ \t]*(?:/?cc)\b:?(?:[ \t,]{1,4}(?:and[ \t]{1,4})?@[\w/-]{1,80}){1,30}[ \t.]*$"
    r"|^[\W_]{0,4}original (?:issue|comment) reported on code\.google\.com by [^\n]{1,120}$",
    re.MULTILINE | re.IGNORECASE,
)
# Tags that importers write around texts and addresses; a tag in backticks belongs to the issue's topic.
_TAG = re.compile(
    r"</?(?:(?P<breaks>p|br|div)|pre|a|span|font|tt)(?:[ \t][^<>`]{0,1500})?/?>",
    re.IGNORECASE,
)
# The name of a type before its parameter (`Vec<a>`), and what follows a tag that starts a paragraph.
_TYPE_NAME = re.compile(r"\b[A-Z]\w{0,30}\Z")
_MAX_TYPE_NAME = 32
_PARAGRAPH = re.compile(r"\w|[ \t]*\n")
# An escaped tag is shown as it is written: as a character, its "<" would make it a tag.
_ENTITY = re.compile(
    r"(?P<shown>&lt;(?:!--|(?i:/?(?:p|br|div|pre|a|span|font|tt|img))"
    r"(?:[ \t](?:[^<>`&]|&(?![lg]t;)){0,1500})?/?(?:>|&gt;)))"
    r"|&(?:lt|gt|amp|quot|apos|nbsp|#39|#34|#x27);"
)
# A name has blanks only on Windows and macOS, and only before a separator.
# Addresses of pages and routes (`GET /Users/search`) have no login names; those of the own machine may have.
_HOME = re.compile(
    r"(?P<page>https?://(?!localhost\b|[\d\[])[^\s?#\"'`<>|()\[\]]+)"
    r"|(?<!\bGET )(?<!\bPUT )(?<!\bPOST )(?<!\bHEAD )(?<!\bPATCH )(?<!\bDELETE )"
    r"(?P<root>/home/|(?P<blanks>/Users/|(?i:[a-z]:(?:\\\\?|/)(?:users|documents and settings)(?:\\\\?|/))))"
    r"(?!user(?![\w-]|\.\w))[^\s/\\:\"'`<>|()\[\]]{1,64}"
    r"(?(blanks)(?:(?: (?!and\b|or\b)[\w.'-]{1,32}){1,3}(?=[/\\]))?)"
)
_PROMPT = re.compile(
    r"^(?P<before>[ \t>|]{0,8}(?:\([\w.-]{1,32}\) )?\[?)(?!user@host\b)[\w.-]{1,32}@(?!\d+\.)\w[\w.-]{0,63}"
    r"(?=(?:[: ][~/][^\s$#%>]{0,200} ?| [^\s\]]{1,100}\])?[$#%>](?:[ \t]|$))",
    re.MULTILINE,
)
# Questions and instructions of Google Code's and GitHub's templates.
_INSTRUCTION = re.compile(
    r"^[ \t]*(?:(?:what steps will reproduce the problem|what is the expected output|what do you see instead"
    r"|what version of the product are you using|on what operating system"
    r"|please (?:provide|use) (?:any |labels and )?additional information below"
    r"|a clear and concise description of [^\n.]{1,80}|if applicable, add screenshots[^\n.]{0,80}"
    r"|add any other context [^\n.]{1,80})[?.:]?[ \t]*){1,2}$",
    re.MULTILINE | re.IGNORECASE,
)
REMOVED_LINES = {
    "byline": _BYLINE,
    "checklist": _CHECKLIST,
    "instruction": _INSTRUCTION,
}
_IMAGE = re.compile(
    r"!\[(?P<label>[^\[\]\n]{0,300})\]\([^()\s]{0,1500}(?:[ \t]+\"[^\"\n]{0,200}\")?\)"
    r"|(?i:<img\b[^<>]{0,1500}>)"
)
_ALT = re.compile(r"(?<![\w-])alt=(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_HOLLOW_LINE = re.compile(
    r"[ \t]*(?:#{1,6}|[-*+](?:[ \t]+\[[ xX]?\])?|>+|\[[^\[\]\n]{1,40}\]:)"
)
_MAX_HOLLOW = 60
_BLANK_LINES = re.compile(r"\n{3,}")


def segments(text: str) -> Iterator[tuple[str, bool]]:
    """Pieces of the text as (piece, is fenced code); an unclosed fence extends to the end, as on GitHub."""
    position = 0
    for start, end in fences(text):
        if start > position:
            yield text[position:start], False
        yield text[start:end], True
        position = end
    if position < len(text) or not text:
        yield text[position:], False


def html_to_text(text: str, *, decode: bool) -> tuple[str, int]:
    """Remove tags that importers write around texts; `decode` replaces HTML entities by their characters."""
    tags = entities = 0
    if "<" in text:
        text, tags = _replace(text, _TAG, _tag_replacement, _with_hidden_code(text))
    if decode and "&" in text:
        text, entities = _replace(text, _ENTITY, _character)
    return text, tags + entities


def _replace(
    text: str,
    pattern: re.Pattern[str],
    replacement: Callable[[str, re.Match[str]], str | None],
    searched: str | None = None,
) -> tuple[str, int]:
    """Replace matches, except those without a replacement, and count them.

    They are found in `searched`, a text of the same length; by default in the text.
    """
    edits = []
    for match in pattern.finditer(text if searched is None else searched):
        words = replacement(text, match)
        if words is not None:
            edits.append((*match.span(), words))
    return edited(text, edits), len(edits)


def _character(_: str, entity: re.Match[str]) -> str | None:
    if entity["shown"]:
        return None
    return unescape(entity[0]).replace("\xa0", " ")


def _with_hidden_code(text: str) -> str:
    """The text with all of its inline code as backticks."""
    spans = inline_code(text) if "`" in text else ()
    return edited(text, ((start, end, "`" * (end - start)) for start, end in spans))


def _tag_replacement(text: str, tag: re.Match[str]) -> str | None:
    """A blank if a tag that breaks the line has no blank beside it; otherwise it would join two words."""
    if _is_type_parameter(text, tag):
        return None
    if not tag["breaks"]:
        return ""
    before = text[max(0, tag.start() - 1) : tag.start()]
    after = text[tag.end() : tag.end() + 1]
    if not before or not after or before.isspace() or after.isspace():
        return ""
    return " "


def _is_type_parameter(text: str, tag: re.Match[str]) -> bool:
    """Whether a tag is the parameter of a type, such as `Vec<a>`, and not the start of a paragraph."""
    if tag[0].lower() not in ("<a>", "<p>") or _PARAGRAPH.match(text, tag.end()):
        return False
    before = text[max(0, tag.start() - _MAX_TYPE_NAME) : tag.start()]
    return _TYPE_NAME.search(before) is not None


def without_login_names(text: str) -> tuple[str, int]:
    """Replace the login name in the path of a home folder and in a prompt (`ann@thinkpad:~$`)."""
    lower = text.lower()
    paths = prompts = 0
    if "/home/" in lower or "users" in lower or "documents and settings" in lower:
        text, paths = _replace(text, _HOME, _home_of_user)
    if "@" in text:
        text, prompts = _PROMPT.subn(r"\g<before>user@host", text)
    return text, paths + prompts


def _home_of_user(_: str, path: re.Match[str]) -> str | None:
    return None if path["page"] else f"{path['root']}user"


def images_to_words(text: str) -> tuple[str, int]:
    """Replace each image by its alternative text."""
    if "![" not in text and "<img" not in text.lower():
        return text, 0
    return _replace(text, _IMAGE, _alternative, _with_hidden_code(text))


def _alternative(text: str, image: re.Match[str]) -> str:
    if image["label"] is not None:
        return text[slice(*image.span("label"))]
    alt = _ALT.search(text, *image.span())
    if alt is None:
        return ""
    return alt[1] or alt[2] or ""


def tidy_blanks(text: str) -> str:
    """Remove blanks at line ends, repeated empty lines, and prose lines of bare markup (`###`, `-`)."""
    pieces = []
    for piece, is_code in segments(text):
        lines = [line.rstrip(" \t") for line in piece.split("\n")]
        if not is_code:
            lines = [
                line
                for line in lines
                if len(line) > _MAX_HOLLOW or not _HOLLOW_LINE.fullmatch(line)
            ]
        pieces.append("\n".join(lines))
    text = _BLANK_LINES.sub("\n\n", "".join(pieces)).rstrip()
    stripped = text.lstrip()
    _, _, indent = text[: len(text) - len(stripped)].rpartition("\n")
    is_code = indent.startswith(("    ", "\t"))
    return indent + stripped if is_code else stripped
