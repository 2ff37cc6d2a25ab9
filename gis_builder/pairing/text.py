"""Render an issue to the text that stands in the dataset, by one rule for every issue.

The rule: title, an empty line, body. In both:

1. newlines are of one kind, Unicode is composed (NFC), NUL, control, zero-width and lone surrogate characters
go, and of a tower of combining marks all but thirty;
2. HTML comments, tags that importers write around texts, lines that only name people ("by **login**:",
"cc @login"), checklists ("I searched for duplicates") and instructions of templates go; HTML's entities are
written out;
3. credentials become `[secret]`, e-mail addresses `[email]`, names in `/home/NAME` `user`;
4. images become their alternative text;
5. statements that the issue is, may be or is not a duplicate go as a whole;
6. every reference to an issue or pull request goes, whichever it points at: `#12`, `owner/name#12`, `GH-12`,
   links, `issue 12`, `issue-12.rs`. Hex colours, stack frames, `#[attributes]` and headings stay. With it go
   the words that only lead to it: "(see #12)", "Related to #12.";
7. blanks at line ends, lines of bare markup and empty lines in a row go. Code stays.

Steps 5 and 6 keep the label out of the text. They go by form alone: were only the partner's number taken out,
the hole would tell the label.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from gis_builder.detection.page import comments
from gis_builder.detection.tokens import Span
from gis_builder.pairing.duplicate_notes import find_duplicate_notes
from gis_builder.pairing.markup import (
    bylines,
    checklists,
    cut,
    html_to_text,
    images_to_words,
    instructions,
    merge,
    segments,
    tidy_blanks,
    with_stub,
    without_home_folders,
)
from gis_builder.pairing.references import find_references
from gis_builder.pairing.secrets import scrub_secrets
from gis_builder.settings.pairs import TextSettings
from gis_builder.store.records import DuplicateCluster, Issue, IssueRef, IssueText
from pairkit.app.printable import normalize

_MOST_PASSES = 8
_WORD = re.compile(r"[^\W_]+")
_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
# Controls (tab and newline stay), lone surrogates, zero-width marks and non-characters.
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\u2060\ufeff\ufffe\uffff\ud800-\udfff]")


@dataclass(slots=True)
class RenderedTexts:
    """Every issue's text, or why it has none."""

    usable: dict[IssueRef, IssueText] = field(default_factory=dict)
    rejected: dict[IssueRef, str] = field(default_factory=dict)
    removed: Counter[str] = field(default_factory=Counter)  # of the usable ones, by kind


def render_issues(
    issues: Iterable[Issue], clusters: Iterable[DuplicateCluster], settings: TextSettings
) -> RenderedTexts:
    """Render every issue once; pull requests, empty and tiny texts are rejected with a reason code."""
    partners = {member: cluster.members for cluster in clusters for member in cluster.members}
    texts = RenderedTexts()
    for issue in issues:
        if issue.is_pull:
            texts.rejected[issue.ref] = "pull_request"
            continue
        rendered = render(issue, partners.get(issue.ref, ()))
        reason = unusable(rendered.text, settings)
        if reason:
            texts.rejected[issue.ref] = reason
        else:
            texts.usable[issue.ref] = rendered
            texts.removed.update(rendered.removed)
    return texts


def render(issue: Issue, members: Collection[IssueRef] = ()) -> IssueText:
    """The issue's text; `members` is its cluster, and only decides how a removed reference is counted."""
    removed: Counter[str] = Counter()
    partners = [member for member in members if member != issue.ref]
    title = " ".join(clean(issue.title, removed, partners).split())
    body = clean(issue.body, removed, partners)
    text = f"{title}\n\n{body}" if title and body else title or body
    return IssueText(issue.ref, text, issue.created_at, dict(sorted(removed.items())))


def has_word(text: str) -> bool:
    """Whether a text says anything: signs do not, and `Edit:` only announces it."""
    return any(match[0].lower() != "edit" for match in _WORD.finditer(text))


def unusable(text: str, settings: TextSettings) -> str | None:
    """The reason code why a rendered text can't be used, or None."""
    if not has_word(text):
        return "text_empty"
    words = [word for word in text.split() if any(map(str.isalnum, word))]
    if len(words) < settings.min_words or sum(map(len, words)) < settings.min_chars:
        return "text_too_short"
    return None


def clean(text: str, removed: Counter[str] | None = None, partners: Collection[IssueRef] = ()) -> str:
    """Apply the rule until nothing changes, so that cleaning a clean text changes nothing."""
    removed = Counter() if removed is None else removed
    for _ in range(_MOST_PASSES):
        before = removed.total()
        text = _pass(text, removed, partners)
        if removed.total() == before:
            break
    return text


def _pass(text: str, removed: Counter[str], partners: Collection[IssueRef]) -> str:
    text = _tidy_characters(text)
    text = _cut_counted(text, comments(text), "html_comment", removed)
    text, secrets = scrub_secrets(text)
    removed.update(secrets)
    text = _counted(without_home_folders(text), "home_folder", removed)
    text = "".join(piece if code else _clean_prose(piece, removed) for piece, code in segments(text))
    text = _cut_references(text, removed, partners)
    return tidy_blanks(text)


def _tidy_characters(text: str) -> str:
    """One kind of newline, NFC, nothing invisible or half (lone surrogates), 30 marks on a letter at most."""
    text = _BREAKS.sub("\n", text)
    text = _INVISIBLE.sub("", text)
    return normalize("NFC", text)


def _clean_prose(text: str, removed: Counter[str]) -> str:
    text = _counted(html_to_text(text), "html", removed)
    text = _cut_counted(text, bylines(text), "byline", removed)
    text = _cut_counted(text, checklists(text), "checklist", removed)
    text = _cut_counted(text, instructions(text), "instruction", removed)
    text = _counted(images_to_words(text), "image", removed)
    notes = find_duplicate_notes(text, find_references(text))
    return _cut_counted(text, notes, "duplicate_note", removed)


def _cut_references(text: str, removed: Counter[str], partners: Collection[IssueRef]) -> str:
    found = find_references(text)
    if not found:
        return text
    removed.update("partner_reference" if r.points_at(partners) else "issue_reference" for r in found)
    return cut(text, [with_stub(text, span) for span in merge(text, [r.span for r in found])])


def _counted(replaced: tuple[str, int], kind: str, removed: Counter[str]) -> str:
    text, count = replaced
    if count:
        removed[kind] += count
    return text


def _cut_counted(text: str, spans: list[Span], kind: str, removed: Counter[str]) -> str:
    if not spans:
        return text
    removed[kind] += len(spans)
    return cut(text, spans)
