"""Find references to issues (numbers, links and file names with a number), and cut them out of a text.

Only the form of a reference counts, so that texts of duplicates don't lose more than other texts. Each finder
searches for the number first and then looks at its surroundings, which is fast and takes linear time. Words
that make no sense without a reference are cut with it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping

from gis_builder.detection.issue_references import edited
from gis_builder.detection.lexicon import Span

_NUMBER = r"([1-9][0-9]{0,6})(?![A-Za-z0-9_]|\.[0-9])"
_LINK = re.compile(
    rf"(?:issues|pulls|pull|discussions)/{_NUMBER}(?:[/?#][^\s()<>\[\]\"'`|,]*[^\s()<>\[\]\"'`|,.;:!?*_])?"
)
# The text before a number is matched backwards, so that it is read only once.
_ADDRESS_BACKWARDS = re.compile(r"(?:/(?:[0-9]++:)?[\w.-]++)++(?://:s?ptth)?")
_MAX_ADDRESS = 200
_HASH = re.compile(rf"#{_NUMBER}")
_WORD_BACKWARDS = re.compile(r"[\w./-]*+(?!#)")
_NAME = re.compile(r"[A-Za-z][\w.-]{2,}(?:/[\w.-]+)?|[A-Za-z][\w.-]*/[\w.-]+")
_MAX_NAME = 140
_SHORT = re.compile(rf"(?<![A-Za-z0-9_-])(?:gh|GH)-{_NUMBER}")
_NOUN = re.compile(
    r"(?P<noun>(?:issue|Issue|ISSUE|bug|Bug|BUG|ticket|Ticket|PR|pr|pull request|Pull [rR]equest)[sS]?)"
    r"(?P<gap>[ \t]*+(?:\b(?:no|nr|number|id)\b\.?[ \t]*+)?[:#]?[ \t]*+|[-_/])"
    r"(?P<number>[1-9][0-9]{0,6})(?![A-Za-z0-9]|\.[0-9]|-[0-9]{2}-[0-9])"
)
_AND_NUMBER = re.compile(
    rf"[ \t]*+(?:,|/|&|\band\b|\bor\b)[ \t]*+(?:(?:and|or)[ \t]++)?#?{_NUMBER}"
)
_MIN_ATTACHED_DIGITS = 3  # issue1234 is a reference, PR2 and bug1 may be names

# A stack frame as gdb, lldb, ASan, PHP and Node print it: the number is the depth.
_FRAME = re.compile(
    r":?[ \t]++(?:0x[0-9a-fA-F]+|[^\s(]{1,200} ?\(|/|<|[^\n]{0,200}\b(?:at|in) )"
)
_FRAME_LEAD = re.compile(r"[ \t\xa0>|*]*(?:[0-9:.]+[ \t]+)?$")
# Words before numbers in the output of compilers and debuggers.
_NUMBERED = re.compile(
    r"\b(?:frame|thread|candidate|attributes|unnamed_addr|nounwind|uwtable|readnone|readonly|generic"
    r"|integer|float) $"
)
_COLOUR_LEAD = re.compile(
    r"(?:colou?rs?|background|fill|stroke|border|shadow|hex|rgb)\b[^\n#]{0,24}$",
    re.IGNORECASE,
)
_COLOUR_DIGITS = (3, 6)
_LEAD = 48  # characters examined before a number

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


def reference_spans(text: str) -> list[Span]:
    """The span of every reference in order; overlapping ones (`issue #12`) are merged into the first."""
    spans: list[Span] = []
    if "issues/" in text or "pull" in text or "discussions/" in text:
        spans += _links(text)
    if "#" in text:
        spans += _hashes(text)
    if "gh-" in text or "GH-" in text:
        spans += (match.span() for match in _SHORT.finditer(text))
    spans += _nouns(text)
    merged: list[Span] = []
    for start, end in sorted(spans):
        last_start, last_end = merged[-1] if merged else (0, 0)
        if start < last_end:
            merged[-1] = (last_start, max(end, last_end))
        else:
            merged.append((start, end))
    return merged


def _links(text: str) -> Iterator[Span]:
    for match in _LINK.finditer(text):
        start, end = match.span()
        address = _before(text, start, _ADDRESS_BACKWARDS, _MAX_ADDRESS)
        if address:
            start -= len(address)
        elif _is_in_word(text, start) or text[max(0, start - 1) : start] in ("_", "-"):
            continue
        if text[max(0, start - 2) : start] == "](":
            yield from _markdown_link(text, start, end)
        else:
            yield start, end


def _is_in_word(text: str, position: int) -> bool:
    """Whether a word continues there; in scripts without blanks a word may begin: "与#12重复"."""
    before = text[max(0, position - 1) : position]
    return before.isascii() and before.isalnum()


def _before(
    text: str,
    position: int,
    backwards: re.Pattern[str],
    max_length: int,
) -> str:
    """The text before `position` that matches a pattern backwards, or an empty string."""
    reversed_text = text[max(0, position - max_length) : position][::-1]
    match = backwards.match(reversed_text)
    return match[0][::-1] if match else ""


def _markdown_link(text: str, start: int, end: int) -> Iterator[Span]:
    closed = text.find(")", end, end + 200)
    label = text.rfind("[", max(0, start - 300), start - 2)
    if closed < 0 or label < 0 or "\n" in text[label:closed]:
        yield start, end
    else:
        yield label, label + 1
        yield start - 2, closed + 1


def _hashes(text: str) -> Iterator[Span]:
    for match in _HASH.finditer(text):
        start, end = match.span()
        before = text[start - 1] if start else "\n"
        if _is_in_word(text, start) or before in "_.-":
            name = _NAME.fullmatch(_before(text, start, _WORD_BACKWARDS, _MAX_NAME))
            if name:
                yield start - len(name[0]), end
            continue
        is_path = before == "/" and not text[max(0, start - 2) : start - 1].isdigit()
        if is_path or before in "&#$%{\\" or _is_format(text, start):
            continue
        if not _is_frame(text, start, end) and not _is_colour(text, start, end):
            yield start, end


def _nouns(text: str) -> Iterator[Span]:
    for match in _NOUN.finditer(text):
        start = match.start()
        if _is_in_word(text, start) and not text[start - 1].isdigit():
            continue
        if match["gap"] or len(match["number"]) >= _MIN_ATTACHED_DIGITS:
            yield match.end("noun"), match.end()
            is_plural = match["noun"][-1] in "sS"
            following = _AND_NUMBER.match(text, match.end()) if is_plural else None
            while following is not None:  # "issues 12, 13 and 14"
                yield following.span()
                following = _AND_NUMBER.match(text, following.end())


def _is_frame(text: str, start: int, end: int) -> bool:
    # The start of the line; 0 if it is before the characters that are examined.
    line = text.rfind("\n", max(0, start - _LEAD - 1), start) + 1
    lead = text[max(line, start - _LEAD) : start]
    if _NUMBERED.search(lead):
        return True
    if start - line > _LEAD or not _FRAME_LEAD.fullmatch(lead):
        return False
    return _FRAME.match(text, end) is not None


def _is_format(text: str, start: int) -> bool:
    """Whether the number is a width in a format string, such as Rust's `{:#10}`."""
    lead = text[max(0, start - 16) : start]
    _, brace, inside = lead.rpartition("{")
    return lead.endswith(":") and brace != "" and "}" not in inside


def _is_colour(text: str, start: int, end: int) -> bool:
    if end - start - 1 not in _COLOUR_DIGITS:
        return False
    before = text[max(0, start - 1) : start]
    after = text[end : end + 1]
    if before == after and before in ("'", '"'):
        return True
    lead = text[max(0, start - _LEAD) : start]
    if after == ";" and lead.rstrip().endswith(":"):
        return True
    return _COLOUR_LEAD.search(lead) is not None


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
    replacements = replacements or {}
    edits = []
    position = 0
    for start, end in merge(text, spans, replacements):
        replacement = replacements.get(start, "")
        if not replacement:
            start, end = _widen(text, max(start, position), end)
        position = max(position, end)
        edits.append((start, position, replacement))
    return edited(text, edits)


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
