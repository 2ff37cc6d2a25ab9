"""A text prepared for reading: masked, with hidden references and the spans of its sentences.

Masking removes what isn't the writer's own statement: quotes, code, hidden, folded or struck text, and
checklists. Each masked character becomes a space and line breaks stay, so positions don't change. Delimiters
are paired in one pass, so that a text with many of them takes linear time.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import chain, takewhile

from gis_builder.detection.issue_references import (
    REFERENCE_MARK,
    Reference,
    could_refer,
    edited,
    find_references,
    hide_references,
)
from gis_builder.detection.lexicon import (
    ENGLISH,
    Code,
    CodedSentence,
    Span,
    code_pattern,
    has_any,
    has_claim_stem,
    language_of,
    sentence_spans,
    tokenise,
)
from gis_builder.store import IssueRef
from gis_builder.trackers.markup import ANY, markup

_COMMENT_OR_FENCE = re.compile(r"<!--|^ {0,3}(`{3,}+(?=[^`\n]*$)|~{3,}+)", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[ \t]*$", re.MULTILINE)
_FENCE_BEGINS = re.compile(r"^ {0,3}(?:`{3}|~{3})", re.MULTILINE)
_INDENT = ("    ", "\t")
_LIST_ITEM = re.compile(r"[ \t]{0,3}(?:[-*+]|\d{1,9}[.)])[ \t]")
_TICKS_OR_BREAK = re.compile(r"`++|\n")
_TILDES_OR_BREAK = re.compile(r"~~|\n")
_TAG = re.compile(r"<(/?)(pre|code|blockquote|details)\b[^<>]*+>", re.IGNORECASE)
# The head of a text from Google Code, whose importers put all of it into `<pre>`.
_FROM_GOOGLE_CODE = re.compile(
    r"(?:<a id=\"c\d{1,4}\"></a>Comment \d{1,4}(?: by [^\n]{1,99})?:?|by \*\*[^\n]{1,99}\*\*:)\n\n<pre>"
)
_QUOTE = re.compile(r"^[ \t]*+>[^\n]*$", re.MULTILINE)
_CHECKBOX = re.compile(r"^[ \t]*+[-*+][ \t]++\[[ xX]\][^\n]*$", re.MULTILINE)
_MAIL_HEADER = re.compile(
    r"^On [^\n]{8,120}(?:\n[^\n]{1,80})?wrote:[ \t]*+$", re.MULTILINE
)
_NOT_BREAK = re.compile(r"[^\n]")
# Makes line ends uniform, and replaces İ, the only character with a longer lower case.
_ONE_FOR_ONE = str.maketrans("\rİ", " I")

_CLAIM_STEMS, _REFERRING_STEMS, _ANSWERING_STEMS, _BACK_STEMS = (
    tuple(ENGLISH[f"{name}_stems"])
    for name in ("claim", "referring", "answering", "back")
)
_POINTING = re.compile(
    rf"\b(?:is|it's|just|really)\b[^.]{{0,30}}{REFERENCE_MARK}|^{REFERENCE_MARK}"
)

# "related to #1", "depends on #1", "not #1"
RELATES = code_pattern(
    "[RELATED SIMILAR_TO DIFFERENT]| [NOT NO] [OF ARTICLE ISSUE FILLER DUPLICATE SAME SAME_AS]{0,4} REFERENCE"
)
_POINTS = code_pattern(
    "[SEE FIXED TRACKED REPORTED COVERS FAVOUR MOVED SAME SAME_AS DUPLICATE DUPLICATES PART_OF] .{0,8}"
    " REFERENCE"
    "| THIS FILLER? IS [^COMMA]{0,12} REFERENCE"
    "| REFERENCE FILLER{0,2} [SEE TRACKED REPORTED FAVOUR MOVED SAME SAME_AS DUPLICATE]"
)
_FEW_WORDS = 1
_SHORT = 300  # characters
ANY_ISSUE = IssueRef("", 0)  # of a text that belongs to no issue


def mask(text: str) -> str:
    """Return `text` with quotes, code, hidden comments and checklists blanked, at the same length."""
    text = text.translate(_ONE_FOR_ONE) if "\r" in text or "İ" in text else text
    text = _blank(text, fences(text))
    if "    " in text or "\t" in text:
        # First, since the other steps leave blanks at the beginning of a line.
        text = _mask_indented(text)
    if head := _FROM_GOOGLE_CODE.match(text):
        text = _blank(text, [head.span()])
    for sign, find_spans in (
        ("<", _hidden),
        ("<", _tagged),
        ("`", inline_code),
        ("~~", _struck),
    ):
        if sign in text:
            text = _blank(text, find_spans(text))
    if has_any(text, ("{", "[", "<", "bq.", "bc.", ">>>")):
        text = _mask_other_markup(text)
    for sign, pattern in ((">", _QUOTE), ("[", _CHECKBOX), ("wrote:", _MAIL_HEADER)):
        if sign in text:
            text = _blank(text, (match.span() for match in pattern.finditer(text)))
    return text


def _mask_other_markup(text: str) -> str:
    """Mask quotes, code and tags in the markup of other trackers, which people also write on GitHub."""
    rules = markup(ANY)
    hidden = (
        block.span for block in rules.blocks(text) if block.becomes in ("code", "quote")
    )
    text = _blank(text, hidden)
    for rule in rules.inline_rules(text):
        text = _blank(text, _tags(text, rule.pattern))
    return text


def _tags(text: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    """Spans of the tags around visible texts; an address stays instead of a text that names no issue."""
    for match in pattern.finditer(text):
        groups = match.groupdict()
        start = end = match.end()
        if "text" in groups:
            start, end = match.span("text")
        address = (groups.get("url") or "").lower()
        is_issue = could_refer(address) and (
            "github.com/" in address or address[0] == "#"
        )
        if is_issue and not could_refer(groups["text"].lower()):
            start, end = match.span("url")
        yield match.start(), start
        yield end, match.end()


def comments(text: str) -> list[Span]:
    """Spans of HTML comments outside fenced code, without unclosed ones."""
    if "<!--" not in text:
        return []
    return [span for span, is_fence in _comments_and_fences(text) if not is_fence]


def fences(text: str) -> list[Span]:
    """Spans of fenced code outside HTML comments; an unclosed fence runs to the end."""
    if "```" not in text and "~~~" not in text:
        return []
    return [span for span, is_fence in _comments_and_fences(text) if is_fence]


def _comments_and_fences(text: str) -> Iterator[tuple[Span, bool]]:
    position = 0
    last_end = text.rfind("-->")
    while opening := _COMMENT_OR_FENCE.search(text, position):
        fence = opening[1]
        if fence:
            position = _fence_end(text, opening.end(), fence)
            yield (opening.start(), position), True
        elif opening.end() <= last_end:
            position = text.index("-->", opening.end()) + len("-->")
            yield (opening.start(), position), False
        else:
            # After an unclosed comment only fences matter: continue at the next line that may open one.
            fence_line = _FENCE_BEGINS.search(text, opening.end())
            if fence_line is None:
                return
            position = fence_line.start()


def _fence_end(text: str, position: int, fence: str) -> int:
    for closing in _FENCE.finditer(text, position):
        if closing[1][0] == fence[0] and len(closing[1]) >= len(fence):
            return closing.end()
    return len(text)


def _blank(text: str, spans: Iterable[Span]) -> str:
    blanks = ((*span, _NOT_BREAK.sub(" ", text[slice(*span)])) for span in spans)
    return edited(text, blanks)


def _hidden(text: str) -> list[Span]:
    """HTML comments; an unclosed one hides the rest of the text."""
    spans = comments(text)
    unclosed = text.find("<!--", spans[-1][1] if spans else 0)
    return [*spans, (unclosed, len(text))] if unclosed >= 0 else spans


def _tagged(text: str) -> Iterator[Span]:
    """Spans of `<pre>`, `<details>` and similar elements; an unclosed one extends to the end."""
    name = ""
    start = 0
    depth = 0
    for tag in _TAG.finditer(text):
        if not depth and not tag[1]:
            name = tag[2].lower()
            start = tag.start()
            depth = 1
        elif depth and tag[2].lower() == name:
            depth += -1 if tag[1] else 1
            if not depth:
                yield start, tag.end()
    if depth:
        yield start, len(text)


def inline_code(text: str) -> Iterator[Span]:
    """Spans from each run of backticks to the next run of the same length on its line."""
    runs = [match.span() for match in _TICKS_OR_BREAK.finditer(text)]
    partners: list[int | None] = [None] * len(runs)
    next_run: dict[int, int] = {}  # by length, while walking from right to left
    for index in range(len(runs) - 1, -1, -1):
        start, end = runs[index]
        if text[start] == "\n":
            next_run = {}
        else:
            partners[index] = next_run.get(end - start)
            next_run[end - start] = index
    index = 0
    while index < len(runs):
        start, _ = runs[index]
        partner = partners[index]
        if partner is not None:
            _, end = runs[partner]
            yield start, end
            index = partner
        index += 1


def _struck(text: str) -> Iterator[Span]:
    """Spans from a `~~` before a word to the next `~~` after a word on the same line."""
    opened: int | None = None
    for match in _TILDES_OR_BREAK.finditer(text):
        start, end = match.span()
        if text[start] == "\n":
            opened = None
        elif opened is None:
            if end < len(text) and not text[end].isspace():
                opened = start
        elif start > opened + 2 and not text[start - 1].isspace():
            yield opened, end
            opened = None


def _mask_indented(text: str) -> str:
    """Mask indented code; indented text below a list item belongs to the item and isn't code."""
    lines = text.split("\n")
    after_blank = True
    in_list = False
    in_code = False
    for number, line in enumerate(lines):
        if not line.strip():
            after_blank = True
            continue
        is_indented = line.startswith(_INDENT)
        in_code = is_indented and not in_list and (after_blank or in_code)
        if in_code:
            lines[number] = " " * len(line)
        elif not is_indented:
            in_list = _LIST_ITEM.match(line) is not None or (
                in_list and not after_blank
            )
        after_blank = False
    return "\n".join(lines)


def might_matter(text: str) -> bool:
    """Whether a comment could contain a claim; takes microseconds."""
    lower = text.lower()
    if might_guess(lower):
        return True
    if not could_refer(lower):
        return False
    return has_any(lower, _REFERRING_STEMS) or language_of(lower) is not None


def might_guess(body: str) -> bool:
    """Whether the body of an issue could call it a duplicate."""
    lower = body.lower()
    return has_any(lower, _CLAIM_STEMS) or has_claim_stem(lower)


def is_worth_reading(sentence: str) -> bool:
    """Whether a sentence, in lower case and with hidden references, could matter for duplicates."""
    if has_any(sentence, _CLAIM_STEMS) or has_any(sentence, _ANSWERING_STEMS):
        return True
    if REFERENCE_MARK in sentence:
        return (
            has_any(sentence, _REFERRING_STEMS)
            or _POINTING.search(sentence) is not None
        )
    return has_any(sentence, _BACK_STEMS) and has_any(sentence, _REFERRING_STEMS)


class PreparedText:
    """One text of `issue`; `former_names` are earlier names of its repository."""

    def __init__(
        self, text: str, issue: IssueRef, former_names: Collection[str]
    ) -> None:
        self.text = text
        self.issue = issue
        masked = mask(text)
        self.references = find_references(masked, issue.repo, former_names)
        self.hidden = hide_references(masked, self.references).lower().replace("’", "'")
        self.language = language_of(self.hidden)
        self.spans = sentence_spans(self.hidden)
        self._by_start = {reference.start: reference for reference in self.references}
        self._starts = list(self._by_start)
        self._sentences: dict[int, CodedSentence] = {}

    def sentence(self, index: int) -> CodedSentence:
        """The sentence at an index, tokenised once."""
        if index not in self._sentences:
            self._sentences[index] = tokenise(
                self.hidden,
                self.spans[index],
                self._by_start,
                self.language,
            )
        return self._sentences[index]

    def worth_reading(self) -> list[int]:
        """The indices of all sentences of a short text; of a long text the first and those that may matter."""
        is_short = len(self.hidden) <= _SHORT or self.language is not None
        return [
            index
            for index, (start, end) in enumerate(self.spans)
            if is_short or index == 0 or is_worth_reading(self.hidden[start:end])
        ]

    def references_of(self, index: int) -> list[Reference]:
        """The references in the sentence at an index."""
        start, end = self.spans[index]
        first = bisect_left(self._starts, start)
        after = bisect_left(self._starts, end)
        return self.references[first:after]

    def points_at(self) -> frozenset[IssueRef]:
        """The issues that a sentence is about: "see #1", "fixed in #1", "#1?"; not "similar to #1"."""
        refs: set[IssueRef] = set()
        for index in filter(self.is_pointer, range(len(self.spans))):
            refs.update(reference.ref for reference in self.references_of(index))
        return frozenset(refs)

    def is_pointer(self, index: int) -> bool:
        """Whether a sentence is about the issues that it refers to."""
        if not self.references_of(index):
            return False
        sentence = self.sentence(index)
        # "Is this another bug than #1?" suggests a duplicate, but "Does this depend on #1?" doesn't.
        codes = sentence.codes
        if self.relates(index) and not (
            sentence.is_question and Code.DIFFERENT in codes
        ):
            return False
        return codes.count(Code.WORD) <= _FEW_WORDS or _POINTS.search(codes) is not None

    def relates(self, index: int) -> bool:
        """Whether a sentence only compares its references with this issue, or is about a dependence."""
        return RELATES.search(self.sentence(index).codes) is not None

    @cached_property
    def only_reference(self) -> list[Reference]:
        """The only issue that the text mentions, unless a sentence only relates to it."""
        if len({reference.ref for reference in self.references}) != 1:
            return []
        for index in range(len(self.spans)):
            if self.references_of(index) and self.relates(index):
                return []
        return self.references[:1]

    def near(self, index: int) -> str:
        """The codes of a sentence and its neighbours."""
        first = max(0, index - 1)
        after = min(len(self.spans), index + 2)
        return Code.STOP.join(self.sentence(near).codes for near in range(first, after))

    def list_after(self, index: int) -> list[Reference]:
        """The references of the following sentences, up to the first sentence without one."""
        following = map(self.references_of, range(index + 1, len(self.spans)))
        return list(chain.from_iterable(takewhile(bool, following)))
