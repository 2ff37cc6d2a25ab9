"""Render an issue as the text of the dataset, with the same rules for every issue.

The text is the title, an empty line and the body. In both:

1. newlines are made uniform, Unicode is composed (NFC); control, zero-width and lone surrogate characters
   are removed, as are more than thirty combining marks on a letter;
2. HTML comments, tags that importers write around texts, lines with only names of people ("by **login**:",
   "cc @login"), checklists ("I searched for duplicates"), template instructions and other lines that many
   issues of the repository repeat are removed; HTML entities are replaced by their characters, except those
   of escaped tags (`&lt;br&gt;`); tags and images in inline code stay;
3. credentials become `[secret]` (a line that encodes one is decoded), e-mail addresses `[email]`, login names
   in paths and prompts, and names before e-mail addresses, `user`; login names of people who are addressed or
   quoted ("cc @ann") `@user`;
4. images become their alternative text;
5. statements that the issue is, may be or is not a duplicate are removed;
6. all references to issues and pull requests are removed: `#12`, `owner/name#12`, `GH-12`, links, `issue 12`,
   `issue-12.rs`, with the words that lead to them: "(see #12)", "Related to #12."; if a sentence needs the
   reference, "another issue" replaces it; hex colours, stack frames, `#[attributes]` and headings stay;
7. blanks at line ends and repeated empty lines are removed, and lines of bare markup outside code.

Steps 5 and 6 keep the label out of the text. They depend only on the form: if only references to the partner
were removed, the gap would reveal the label.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct, field

from gis_builder.detection.lexicon import Span
from gis_builder.detection.page import comments
from gis_builder.pairing.duplicate_notes import find_duplicate_notes
from gis_builder.pairing.markup import (
    REMOVED_LINES,
    html_to_text,
    images_to_words,
    segments,
    tidy_blanks,
    without_login_names,
)
from gis_builder.pairing.references import (
    cut,
    merge,
    reference_spans,
    replaced_reference,
)
from gis_builder.pairing.secrets import scrub_secrets, without_names, without_people
from gis_builder.settings import TextSettings
from gis_builder.store import Issue, IssueRef, IssueText
from pairkit.base.printable import normalize, same_width
from pairkit.similarity.terms import segmented, terms

_MAX_PASSES = 8
_WORD = re.compile(r"[^\W_]+")
_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
# Control characters except tab and newline, lone surrogates, invisible characters and non-characters.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufffe\uffff\ud800-\udfff]"
)

# One of several templates, or one that was used for some years, reaches this share; people's phrases don't.
_MIN_SHARE = 0.05
_MIN_ISSUES = 100  # in smaller repositories nothing is removed
_REDUCED_EVERY = 1_000  # issues between reductions of the counts by one
_LINE = re.compile(r"^(?![ ]{4}|\t)[^\n]{1,200}$", re.MULTILINE)  # except indented code
_MARKS = re.compile(r"^(?:(?:[-*+>]|\[[ xX]?\]|\d{1,2}[.)])[ \t]+)+")
_BOLD = re.compile(r"(\*\*|__)(?:(?!\1).)+\1[:：]?")
_ANSWER_OR_CODE = re.compile(r"\d|[:：].*\w|[{};=\\]")

Templates = Mapping[str, Collection[str]]  # by repository


class RenderedTexts(Struct):
    """The text of each issue, or the reason why it has none."""

    usable: dict[IssueRef, IssueText] = {}
    rejected: dict[IssueRef, str] = {}
    removed: Counter[str] = field(default_factory=Counter)  # from usable texts, by kind


def render_issues(
    issues: Iterable[Issue], templates: Templates, settings: TextSettings
) -> RenderedTexts:
    """Render the issues; pull requests, empty and short texts are rejected with a reason code."""
    texts = RenderedTexts()
    for issue in issues:
        if issue.is_pull:
            texts.rejected[issue.ref] = "pull_request"
            continue
        rendered = render(issue, templates.get(issue.repo, ()))
        reason = unusable(rendered.text, settings)
        if reason:
            texts.rejected[issue.ref] = reason
        else:
            texts.usable[issue.ref] = rendered
            texts.removed.update(rendered.removed)
    return texts


def render(issue: Issue, template: Collection[str] = ()) -> IssueText:
    """The text of an issue, without the lines of its repository's template."""
    removed = Counter[str]()
    title = " ".join(clean(issue.title, removed).split())
    body = clean(without_template(issue.body, template, removed), removed)
    text = f"{title}\n\n{body}".strip()
    counts = dict(sorted((+removed).items()))
    return IssueText(issue.ref, text, issue.created_at, counts)


def has_word(text: str) -> bool:
    """Whether a text has a word; `Edit:` alone is what a removed note leaves."""
    return any(match[0].lower() != "edit" for match in _WORD.finditer(text))


def unusable(text: str, settings: TextSettings) -> str | None:
    """The reason code if a rendered text can't be used."""
    if not has_word(text):
        return "text_empty"
    parts = segmented(text).split()
    words = [word for word in parts if any(map(str.isalnum, word))]
    if len(words) < settings.min_words or sum(map(len, words)) < settings.min_chars:
        return "text_too_short"
    return None


def clean(text: str, removed: Counter[str] | None = None) -> str:
    """Apply the rules until nothing is removed, at most 8 times, as what is left can form a new match.

    Entities are decoded only once (`&amp;lt;` is `&lt;`).
    """
    removed = Counter() if removed is None else removed
    for number in range(_MAX_PASSES):
        before = removed.total()
        text = _pass(text, removed, decode=number == 0)
        if removed.total() == before:
            break
    return text


def _pass(text: str, removed: Counter[str], *, decode: bool) -> str:
    """Apply each rule once, and count what it removes."""
    text = normalize("NFC", _INVISIBLE.sub("", _BREAKS.sub("\n", text)))
    text = _cut_counted(text, comments(text), "html_comment", removed)
    text, secrets = scrub_secrets(text)
    removed.update(secrets)
    text = _counted(without_login_names(text), "login_name", removed)
    text = _counted(without_names(text), "person", removed)
    pieces = []
    for piece, is_code in segments(text):
        pieces.append(piece if is_code else _clean_prose(piece, removed, decode=decode))
    text = _cut_references("".join(pieces), removed)
    return tidy_blanks(text)


def _clean_prose(text: str, removed: Counter[str], *, decode: bool) -> str:
    # First, since an entity in an image's attribute may stand for ">".
    text = _counted(images_to_words(text), "image", removed)
    text = _counted(html_to_text(text, decode=decode), "html", removed)
    for kind, pattern in REMOVED_LINES.items():
        spans = [match.span() for match in pattern.finditer(text)]
        text = _cut_counted(text, spans, kind, removed)
    text = _counted(without_people(text), "person", removed)
    plain = same_width(text)
    notes = find_duplicate_notes(plain, reference_spans(plain))
    return _cut_counted(text, notes, "duplicate_note", removed)


def _cut_references(text: str, removed: Counter[str]) -> str:
    references = reference_spans(same_width(text))
    removed["issue_reference"] += len(references)
    spans = []
    replacements = {}
    for reference in merge(text, references):
        span, words = replaced_reference(text, reference)
        spans.append(span)
        if words:
            replacements[span[0]] = words
    return cut(text, spans, replacements)


def _counted(replaced: tuple[str, int], kind: str, removed: Counter[str]) -> str:
    text, count = replaced
    removed[kind] += count
    return text


def _cut_counted(text: str, spans: list[Span], kind: str, removed: Counter[str]) -> str:
    removed[kind] += len(spans)
    return cut(text, spans)


def template_lines(issues: Iterable[Issue]) -> frozenset[str]:
    """Headings, questions and instructions that at least 5 of 100 issues of a repository repeat."""
    counts = Counter[str]()
    total = 0
    for issue in issues:
        if issue.is_pull:
            continue
        lines = set[str]()
        for piece, is_code in segments(_BREAKS.sub("\n", issue.body)):
            if not is_code:
                lines.update(match[0].strip() for match in _LINE.finditer(piece))
        counts.update(lines)
        total += 1
        if total % _REDUCED_EVERY == 0:  # to bound memory
            counts -= Counter([*counts])
    if total < _MIN_ISSUES:
        return frozenset()
    least = _MIN_SHARE * total - total // _REDUCED_EVERY
    return frozenset(
        line
        for line, count in counts.items()
        if count >= least and _is_of_template(line)
    )


def without_template(
    text: str, template: Collection[str], removed: Counter[str]
) -> str:
    """The text without these lines, except in code; they are counted."""
    if not template:
        return text
    pieces = []
    for piece, is_code in segments(_BREAKS.sub("\n", text)):
        if not is_code:
            lines = _LINE.finditer(piece)
            spans = [line.span() for line in lines if line[0].strip() in template]
            piece = _cut_counted(piece, spans, "template_line", removed)
        pieces.append(piece)
    return "".join(pieces)


def _is_of_template(line: str) -> bool:
    """Whether the form is not that of an answer, a greeting or code: "Windows 10", "Thanks!", "import os"."""
    words = _MARKS.sub("", line, 1)
    is_question = words.rstrip("*_) ").endswith(("?", "？"))
    if is_question or line.startswith("#") or _BOLD.fullmatch(words):
        return True
    if _ANSWER_OR_CODE.search(words):
        return False
    is_label = words.rstrip("*_").endswith((":", "："))
    return len(terms(words)) >= (2 if is_label else 6)
