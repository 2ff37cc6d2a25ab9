"""Cut spans out of a text, and with references the words that make no sense without them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping

from gis_builder.detection.issue_references import edited
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
