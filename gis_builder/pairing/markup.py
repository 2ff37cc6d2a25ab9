"""Clean the markup of an issue: Markdown, checklists, images, and words that led to removed references."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from html import unescape

from gis_builder.detection.page import fences, inline_code
from gis_builder.detection.phrase_codes import Span

# Words without meaning if the reference after them is removed.
_JOINT_WORDS = """
    about and as at because between by cf due for from in into like nor of off on or per see since such than
    through to under until upon via vs with
"""
_JOINTS = frozenset(_JOINT_WORDS.split())
_NOUN_WORDS = "bug bugs issue issues pr prs pull request requests ticket tickets"
_NOUNS = frozenset(_NOUN_WORDS.split())
# If a clause has only these words, joints and a reference, all of it is removed.
_LEAD_WORDS = """
    a again already also are based be blocked blocker blocks caused closely could depends described
    discovered discussed discussion encountered extracted few fixed fixes follow-up followup found further i
    introduced is it it's likely linked loosely may maybe mentioned might more moved noticed original
    originally other parent part perhaps possibly potentially presumably previous previously probably re ref
    reference references refs regressed related relates relevant reported same seems separated similar
    somewhat spawned split spun that the these this tracked tracking was were which
"""
_LEADS = _JOINTS | _NOUNS.union(_LEAD_WORDS.split())
# Beside these words a sentence needs the reference: "we need #12 for this", "#12 broke this".
_NEEDING_WORDS = """
    address after also although before block blocks break breaks broke but cause caused causes close closed
    closes could cover created did does filed fix fixed fixes fixing found has have how if implement
    introduced is may merge merged merging might need needs once opened resolve resolved resolves reverting
    see seen should solve solved solves solving track tracks unless unlike was when where whether while why
    will would
"""
_NEEDING = frozenset(_NEEDING_WORDS.split())
# After these words a reference is the subject of a clause: "I think #12 broke this".
_BEFORE_SUBJECT_WORDS = "assume believe guess now suppose suspect think today yesterday"
_BEFORE_SUBJECT = _NEEDING | _JOINTS | frozenset(_BEFORE_SUBJECT_WORDS.split())
_GOES_ON = re.compile(r"[ \t]+([a-z]+)")
_WORD = re.compile(
    r"(?:(?<=[\s(\[,;:.!?>*_])|^)(?P<word>[A-Za-z][A-Za-z'-]*)(?P<stop>[.:]?)[ \t]*\Z"
)
_ABBREVIATIONS = frozenset(("cf", "ref", "refs", "re"))
_MAX_WORDS = 6
_WINDOW = 32  # characters; longer than each of these words
_CLAUSE_OPENS = re.compile(r"(?:^|[\n(\[;:.!?,–—>/]|(?:^|(?<=\s))[-*+#]+)[ \t]*\Z")
_TAIL = re.compile(
    r"[ \t]+(?:for|on|about)[ \t]+(?:(?:more|further|some|the|full|additional)[ \t]+)?"
    r"(?:details?|info(?:rmation)?|discussion|context|background|reference|example|it|this|that)(?![\w-])"
)
_CLAUSE_ENDS = re.compile(r"[ \t]*(?:[.,;:!?)\]\n]|\Z)")
_FULL_STOP = re.compile(r"[ \t]*[.,;:]")

_BETWEEN = re.compile(r"[ \t]*(?:,|/|&|\band\b|\bor\b)?[ \t]*(?:\band\b|\bor\b)?[ \t]*")
_MAX_BETWEEN = 10
_WRAPPERS = {
    "(": ")",
    "[": "]",
    "<": ">",
    "*": "*",
    "_": "_",
    "~": "~",
    '"': '"',
}

# Lines of a template's checklist ("I searched …", "Read the …") and their headings, not tasks or headings of
# an issue ("Search box loses focus", "Rows are duplicated").
CHECKLIST = re.compile(
    r"""
    ^[ \t]*[-*+][ \t]+\[[ xX]?\][ \t]*(?:
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
BYLINE = re.compile(
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
INSTRUCTION = re.compile(
    r"^[ \t]*(?:(?:what steps will reproduce the problem|what is the expected output|what do you see instead"
    r"|what version of the product are you using|on what operating system"
    r"|please (?:provide|use) (?:any |labels and )?additional information below"
    r"|a clear and concise description of [^\n.]{1,80}|if applicable, add screenshots[^\n.]{0,80}"
    r"|add any other context [^\n.]{1,80})[?.:]?[ \t]*){1,2}$",
    re.MULTILINE | re.IGNORECASE,
)
_IMAGE = re.compile(
    r"!\[([^\[\]\n]{0,300})\]\([^()\s]{0,1500}(?:[ \t]+\"[^\"\n]{0,200}\")?\)"
)
_IMAGE_TAG = re.compile(r"<img\b[^<>]{0,1500}>", re.IGNORECASE)
_ALT = re.compile(r"(?<![\w-])alt=(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_HOLLOW_LINE = re.compile(
    r"[ \t]*(?:#{1,6}|[-*+](?:[ \t]+\[[ xX]?\])?|>+|\[[^\[\]\n]{1,40}\]:)"
)
_MAX_HOLLOW = 60
_BLANK_LINES = re.compile(r"\n{3,}")


def replaced_reference(text: str, span: Span) -> tuple[Span, str]:
    """The span of a reference with the words that make no sense without it, and their replacement."""
    start, end = _with_brackets(text, *span)
    tail = _TAIL.match(text, end)
    clause_end = tail.end() if tail else end
    ends = _CLAUSE_ENDS.match(text, clause_end) is not None
    if ends:
        leads = _words_start(text, start, _LEADS)
        joints = _joints_start(text, start)
        if leads < start and _CLAUSE_OPENS.search(text, max(0, leads - _WINDOW), leads):
            return _whole_clause(text, leads, clause_end), ""
        if tail is None and joints < start:
            return (joints, end), ""
    if (start, end) == span:
        needed = _another_issue(text, *span, ends=ends)
        if needed:
            return needed
    if ends and tail is None:
        return (start, end), ""
    return span, ""


def _another_issue(
    text: str,
    start: int,
    end: int,
    *,
    ends: bool,
) -> tuple[Span, str] | None:
    """The reference with its noun, and "another issue", if its sentence needs an object or a subject."""
    reference = text[start:end].lstrip(" \t")
    start = end - len(reference)
    goes_on = _GOES_ON.match(text, end)
    is_part = reference[0] in "[]()<>-_/" or text[end : end + 1] == ":"
    if is_part or not (ends or goes_on):
        return None
    first = _words_start(text, start, _NOUNS)
    before = text[max(0, first - _WINDOW) : first]
    opens = _CLAUSE_OPENS.search(before)
    if opens and goes_on and not ends:
        is_needed = first < start or goes_on[1] in _NEEDING
    else:
        word = _WORD.search(before)
        needing = _NEEDING if ends else _BEFORE_SUBJECT
        is_needed = word is not None and word["word"].lower() in needing
    if not is_needed or ":" in text[first:start]:
        return None
    last = before.rstrip(" \t")[-1:]
    is_first = opens and last in ("", "\n", ".", "!", "?")
    return (first, end), "Another issue" if is_first else "another issue"


def _joints_start(text: str, position: int) -> int:
    """The start of words such as "such as in issue"; a noun without a joint stays: "hit this bug"."""
    joints = _words_start(text, position, _JOINTS)
    if joints < position:
        return joints
    with_noun = _words_start(text, position, _JOINTS | _NOUNS)
    first = re.match(r"[A-Za-z]+", text[with_noun : with_noun + _WINDOW])
    if first is None or first[0].lower() in _NOUNS:
        return position
    return with_noun


def _words_start(text: str, position: int, vocabulary: frozenset[str]) -> int:
    """The start of the longest run of these words before a position."""
    for _ in range(_MAX_WORDS):
        window = max(0, position - _WINDOW)
        match = _WORD.search(text[window:position])
        word = match["word"].lower() if match else ""
        if match is None or word not in vocabulary:
            break
        if match["stop"] == "." and word not in _ABBREVIATIONS:
            break
        position = window + match.start()
    return position


def _whole_clause(text: str, start: int, end: int) -> Span:
    """The span of a whole clause with one of the stops around it."""
    window = text[max(0, start - _WINDOW) : start]
    before = window.rstrip(" \t")[-1:]
    if before in (",", ";", "–", "—", "-") and _CLAUSE_ENDS.match(text, end):
        return text.rfind(before, 0, start), end
    stop = _FULL_STOP.match(text, end)
    if stop is None:
        return start, end
    after = text[stop.end() : stop.end() + 1]
    if before in ("(", "[") and after not in (")", "]"):
        return start, end
    return start, stop.end()


def _with_brackets(text: str, start: int, end: int) -> Span:
    """The span of a reference with the brackets that contain nothing else."""
    opening, closing = _around(text, start, end)
    after = text[closing : closing + 1]
    if opening >= 0 and text[opening] in "([" and after in (")", "]"):
        return opening, closing + 1
    return start, end


def _around(text: str, start: int, end: int) -> Span:
    """The places before and after a span, or beyond blanks on both sides, as in "( #12 )"."""
    if text[max(0, start - 1) : start] == " " == text[end : end + 1]:
        return start - 2, end + 1
    return start - 1, end


def cut(
    text: str, spans: Iterable[Span], replacements: Mapping[int, str] | None = None
) -> str:
    """Remove `spans`, their brackets, and words that join them; `replacements` are by the start of a span."""
    pieces = []
    position = 0
    for start, end in merge(text, spans, replacements or ()):
        replacement = replacements.get(start, "") if replacements else ""
        if not replacement:
            start, end = _widen(text, max(start, position), end)
        pieces.append(text[position:start])
        pieces.append(replacement)
        position = max(position, end)
    pieces.append(text[position:])
    return "".join(pieces)


def merge(text: str, spans: Iterable[Span], apart: Container[int] = ()) -> list[Span]:
    """Sort `spans` and merge those that overlap or have only a comma or an "and" between them.

    Spans that start at `apart` are only merged if they overlap.
    """
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged:
            last_start, last_end = merged[-1]
            joins = start not in apart and _only_joins(text, last_end, start)
            if start <= last_end or joins:
                merged[-1] = (last_start, max(end, last_end))
                continue
        merged.append((start, end))
    return merged


def _only_joins(text: str, start: int, end: int) -> bool:
    """Whether the text between two spans is at most a comma or an "and"."""
    is_short = end - start <= _MAX_BETWEEN
    return is_short and _BETWEEN.fullmatch(text, start, end) is not None


def _widen(text: str, start: int, end: int) -> Span:
    opening, closing = _around(text, start, end)
    while (
        opening >= 0
        and closing < len(text)
        and _WRAPPERS.get(text[opening]) == text[closing]
    ):
        start = opening
        end = closing + 1
        opening = start - 1
        closing = end
    follows = text[end] if end < len(text) else "\n"
    if follows in " \t" and (start == 0 or text[start - 1] == "\n"):
        return start, end + 1
    if start > 0 and text[start - 1] in " \t" and follows in " \t\n.,;:!?)]}":
        return start - 1, end
    return start, end


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


def html_to_text(text: str) -> tuple[str, int]:
    """Remove tags that importers write around texts, and replace HTML entities by their characters."""
    tags = entities = 0
    if "<" in text:
        text, tags = _replace(text, _TAG, _tag_replacement, _with_hidden_code(text))
    if "&" in text:
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
    pieces: list[str] = []
    position = count = 0
    for match in pattern.finditer(text if searched is None else searched):
        words = replacement(text, match)
        if words is not None:
            pieces += (text[position : match.start()], words)
            position = match.end()
            count += 1
    pieces.append(text[position:])
    return "".join(pieces), count


def _character(_: str, entity: re.Match[str]) -> str | None:
    if entity["shown"]:
        return None
    return unescape(entity[0]).replace("\xa0", " ")


def _with_hidden_code(text: str) -> str:
    """The text with all of its inline code as backticks."""
    pieces: list[str] = []
    position = 0
    for start, end in inline_code(text) if "`" in text else ():
        pieces += (text[position:start], "`" * (end - start))
        position = end
    pieces.append(text[position:])
    return "".join(pieces)


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
    before = text[max(0, tag.start() - _WINDOW) : tag.start()]
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
    images = tags = 0
    if "![" in text:
        text, images = _replace(text, _IMAGE, _label, _with_hidden_code(text))
    if "<img" in text.lower():
        text, tags = _replace(text, _IMAGE_TAG, _alternative, _with_hidden_code(text))
    return text, images + tags


def _label(text: str, image: re.Match[str]) -> str:
    return text[slice(*image.span(1))]


def _alternative(text: str, image: re.Match[str]) -> str:
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
