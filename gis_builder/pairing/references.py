"""Find references to issues: numbers, links and file names with a number.

Only the form of a reference counts, so that texts of duplicates don't lose more than other texts. Each finder
searches for the number first and then looks at its surroundings, which is fast and takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from gis_builder.detection.phrase_codes import Span
from gis_builder.store import IssueRef

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


@dataclass(frozen=True, slots=True)
class IssueMention:
    """A span of text that refers to an issue; `repo` is None if it doesn't name a repository."""

    start: int
    end: int
    number: int
    repo: str | None = None

    @property
    def span(self) -> Span:
        """Start and end."""
        return self.start, self.end

    def points_at(self, partners: Collection[IssueRef]) -> bool:
        """Whether it may refer to one of `partners`."""
        for partner in partners:
            is_home = self.repo is None or self.repo.lower() == partner.repo.lower()
            if is_home and self.number == partner.number:
                return True
        return False


def find_references(text: str) -> list[IssueMention]:
    """Every reference in order; overlapping ones (`issue #12`) are merged into the first."""
    references: list[IssueMention] = []
    if "issues/" in text or "pull" in text or "discussions/" in text:
        references += _links(text)
    if "#" in text:
        references += _hashes(text)
    if "gh-" in text or "GH-" in text:
        for match in _SHORT.finditer(text):
            references.append(IssueMention(*match.span(), int(match[1])))
    references += _nouns(text)
    references.sort(key=lambda reference: (reference.start, -reference.end))
    merged: list[IssueMention] = []
    for reference in references:
        last = merged[-1] if merged else None
        if last is None or reference.start >= last.end:
            merged.append(reference)
        elif reference.end > last.end:
            merged[-1] = replace(last, end=reference.end)
    return merged


def _links(text: str) -> Iterator[IssueMention]:
    for match in _LINK.finditer(text):
        start, end = match.span()
        number = int(match[1])
        repo = None
        address = _before(text, start, _ADDRESS_BACKWARDS, _MAX_ADDRESS)
        if address:
            start -= len(address)
            owner_and_name = address.split("/")[-3:-1]
            if len(owner_and_name) == 2 and all(owner_and_name):
                repo = "/".join(owner_and_name)
        elif _is_in_word(text, start) or text[max(0, start - 1) : start] in ("_", "-"):
            continue
        if text[max(0, start - 2) : start] == "](":
            yield from _markdown_link(text, start, end, number, repo)
        else:
            yield IssueMention(start, end, number, repo)


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


def _markdown_link(
    text: str,
    start: int,
    end: int,
    number: int,
    repo: str | None,
) -> Iterator[IssueMention]:
    closed = text.find(")", end, end + 200)
    label = text.rfind("[", max(0, start - 300), start - 2)
    if closed < 0 or label < 0 or "\n" in text[label:closed]:
        yield IssueMention(start, end, number, repo)
    else:
        yield IssueMention(label, label + 1, number, repo)
        yield IssueMention(start - 2, closed + 1, number, repo)


def _hashes(text: str) -> Iterator[IssueMention]:
    for match in _HASH.finditer(text):
        start, end = match.span()
        before = text[start - 1] if start else "\n"
        if _is_in_word(text, start) or before in "_.-":
            name = _NAME.fullmatch(_before(text, start, _WORD_BACKWARDS, _MAX_NAME))
            if name:
                repo = name[0] if "/" in name[0] else None
                yield IssueMention(start - len(name[0]), end, int(match[1]), repo)
            continue
        is_path = before == "/" and not text[max(0, start - 2) : start - 1].isdigit()
        if is_path or before in "&#$%{\\" or _is_format(text, start):
            continue
        if not _is_frame(text, start, end) and not _is_colour(text, start, end):
            yield IssueMention(start, end, int(match[1]))


def _nouns(text: str) -> Iterator[IssueMention]:
    for match in _NOUN.finditer(text):
        start = match.start()
        if _is_in_word(text, start) and not text[start - 1].isdigit():
            continue
        if match["gap"] or len(match["number"]) >= _MIN_ATTACHED_DIGITS:
            yield IssueMention(match.end("noun"), match.end(), int(match["number"]))
            is_plural = match["noun"][-1] in "sS"
            following = _AND_NUMBER.match(text, match.end()) if is_plural else None
            while following is not None:  # "issues 12, 13 and 14"
                yield IssueMention(*following.span(), int(following[1]))
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
