"""Turn a masked text into sentences, each a string of lexicon codes with the spans of its tokens.

Sentences have a maximum length and a list of references is one token. So each rule spans a bounded number of
characters, and reading takes linear time for any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain

from gis_builder.detection.lexicon import (
    PHRASES,
    SIGNS,
    WORDS,
    Code,
    code_pattern,
    foreign_phrases,
)
from gis_builder.store import GITHUB, IssueRef, Thread
from pairkit.base.printable import comparable

Span = tuple[int, int]


# Scripts without blanks between words: "#12の重複", "与#12重复".
_UNSPACED = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_REFERENCE = re.compile(
    rf"""
    (?:https?://|(?<![\w.-]))(?:www\.)?github\.com/(?P<url_repo>[\w.-]+/[\w.-]+)/(?P<url_kind>issues|pull)/
        (?P<url_number>\d{{1,7}})
        (?P<url_rest>(?:/(?:files|commits))?/?(?:\?[\w=&%.-]*)?(?:\#[\w-]+)?)(?:(?![\w/])|(?={_UNSPACED}))
    | (?<![\w/&.-])(?P<repo>[\w-][\w.-]*/[\w.-]+)\#(?P<repo_number>[1-9]\d{{0,6}})(?![\w])
    | (?:(?<![^\W_])(?<![/&.-])|(?<={_UNSPACED}))(?P<name>[A-Za-z][\w.-]*)?
        \#(?P<number>[1-9]\d{{0,6}})(?:(?!_?[^\W_]|-|\.\d)|(?={_UNSPACED}))
    | (?<![\w/])GH-(?P<gh_number>[1-9]\d{{0,6}})\b
    | (?<![\w/])(?:issues?|bugs?|tickets?)\ +(?:no\.?\ *|number\ +|nr\.?\ *)?
        (?P<spoken>[1-9]\d{{0,6}})\b(?![.,:]\d|%)
    | (?<![\w/])(?:dup(?:licate|e)?)\ +(?:of|to)\ +(?P<bare>[1-9]\d{{0,6}})\b(?![.,]\d|%)
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Words before "#12" that show that it is a number in another tracker or list.
_OTHER_REGISTER = re.compile(
    r"\b(?:(?:rfcs?|peps?|jeps?|jira|bugzilla|gcc|gitlab|cve)(?: (?:pr|issue|pull request|bug))?"
    r"|lines?|steps?|rows?|columns?|pages?|sections?|chapters?|points?|options?|examples?|attempts?|builds?"
    r"|revisions?|figures?|slides?|tips?|comments?|answers?|questions?|items?|notes?|goals?|rules?)[ :]*\Z"
    r"|(?<!of )(?<!of this )\b(?:tests?"
    r"|(?:test|use) cases?|links?|versions?|releases?|milestones?|phases?|frames?|threads?|runs?|parts?"
    r"|scenarios?|solutions?|approach(?:es)?|methods?|reasons?|workarounds?|alternatives?|suggestions?"
    r"|iterations?|bullets?|ideas?|variants?|errors?|exceptions?|symptoms?) ?\Z",
    re.IGNORECASE,
)
# "color: #205081", "'#999'": three or six digits after a word or sign of a colour.
_COLOUR_BEFORE = re.compile(
    r"(?:colou?r\w*|background|fill|stroke|border|rgb)(?:-\w+)?[\"']?[ \t]?[:=(][^#\n]{0,12}\Z"
    r"|(?<!of )(?<!see )(?<!duplicate)[\"'=]\Z",
    re.IGNORECASE,
)
_COLOUR_LENGTHS = (3, 6)
_PULL_BEFORE = re.compile(r"\b(?:pr|pull request) ?\Z", re.IGNORECASE)
# The anchor of an issue's first post, which links to the issue itself: "#issue-2601234567".
_FIRST_POST = re.compile(r"issue(?:-\d+)?", re.IGNORECASE)
_LANDED_AFTER = re.compile(
    r"\s(?:has |have |is |was |just )?(?:been )?(?:landed|merged)\b", re.IGNORECASE
)
# Words attached to "#12" that aren't the name of a repository.
_PLAIN_WORDS = "issue issues bug bugs ticket pr pull no nr gh of see fixes"
_PLAIN_PREFIX = frozenset(_PLAIN_WORDS.split())
# Each begins with a literal character, which the regex engine finds fast.
_SIGNS = (
    re.compile(r"#\d"),
    re.compile(r"/issues/\d"),
    re.compile(r"/pull/\d"),
    re.compile(r"gh-\d"),
    re.compile(r"issues? +(?:n\S{0,8} *)?\d"),
    re.compile(r"bugs? +(?:n\S{0,8} *)?\d"),
    re.compile(r"tickets? +(?:n\S{0,8} *)?\d"),
    re.compile(r"dup\w{0,12} +(?:of|to) +\d"),
)

# A label of a link that only points: "[this issue](https://...)", but not "[a known issue](https://...)".
_POINTING_LABEL = re.compile(
    r"\[(?:(?:this|that|the|another|an?|other|older|earlier|existing|original) ){0,3}"
    r"(?:this|that|one|here|issue|bug|ticket|report|thread)\]\(\Z",
    re.IGNORECASE,
)

# Words similar to "duplicate" that aren't typos of it.
_SIMILAR_WORDS = (
    "duplication duplicating duplicative duplicable duplicator duplicators duplicity duplicities"
    " deduplicate deduplicates deduplicated duplex duplices replicate"
)
_NO_TYPO = frozenset(_SIMILAR_WORDS.split())
# The word that a misspelling stands for, by its last letter; any other letter: the noun "duplicate".
_TYPO_OF = {
    "s": ("duplicates", Code.DUPLICATES),
    "d": ("duplicated", Code.DUPLICATED),
}
_MAX_EDITS = 2

REFERENCE_MARK = "\x01"
_REST_OF_REFERENCE = "\x02"
_GAP = r"(?:[ \t]++(?:\n[ \t]*+)?|\n[ \t]*+)"
_WORD_END = r"(?![^\W_])"  # underscores are markup: "_won't fix_"
# Characters; longer sentences are data, not prose, and are read in pieces.
_MAX_SENTENCE = 4000
# "#1, #2 and also #3", in codes.
_REFERENCE_LIST = code_pattern(
    "REFERENCE (?:[COMMA AND]{1,3} ALSO? OF? ARTICLE? ISSUE? COMMA? REFERENCE"
    " | AND? ALSO? COMMA? ISSUE? REFERENCE)++"
)

# The stops come first and lookbehinds follow, so that the engine skips from stop to stop instead of looking
# behind at every character.
_SENTENCE_END = re.compile(
    r"[.!?;\n。！？；](?:"
    # A run of stops from its start, or after the stop of an abbreviation.
    r"(?<=[.!?;])(?:(?<![.!?;][.!?;])|(?<=\be\.g\..)|(?<=\bi\.e\..)|(?<=\bcf\..)|(?<=\betc\..)|(?<=\bvs\..))"
    r"(?<!\be\.g.)(?<!\bi\.e.)(?<!\bcf.)(?<!\betc.)(?<!\bvs.)"
    # "It's a known issue; see #1" is one statement.
    r"(?:(?<!known issue.)(?<!known bug.)(?<!known problem.)"
    rf"|(?!(?<=[.;])\s{{1,3}}(?:see|cf\.?) {REFERENCE_MARK}))"
    r"[.!?;]*+(?=[\s)\]*_\"']|\Z)[)\]*_\"']*+"
    r"|(?<=[。！？；])"
    r"|(?<=\n)(?:[ \t]*+\n\s*+|(?=[ \t]*+(?:[-*+]|\d{1,9}[.)])[ ]))"
    # "Duplicate of #1", and on the next line "Duplicate of #2"
    rf"|(?<=[{REFERENCE_MARK}{_REST_OF_REFERENCE}]\n)(?=dup(?:licat)?e? of ))"
)

_CODE_OF_NAME = dict(Code.__members__)


@dataclass(frozen=True, slots=True)
class Reference:
    """One mention of an issue or pull request; `start` and `end` are positions in the text."""

    ref: IssueRef
    start: int
    end: int
    # A link to a comment, which is often cited and not meant as a duplicate
    is_anchored: bool = False
    # A pull request, by its link or the words beside it: "PR #12", "#12 has landed"
    is_pull: bool = False


def github_links(thread: Thread, site: str) -> Thread:
    """The thread with the links of another server, such as a GitHub Enterprise, as links to github.com."""
    if site == GITHUB:
        return thread
    return _with_texts(thread, lambda text: text.replace(f"{site}/", f"{GITHUB}/"))


def comparable_thread(thread: Thread) -> Thread:
    """The thread with texts and labels as they are compared; also evidence quotes them so."""
    return _with_texts(thread, comparable)


def _with_texts(thread: Thread, change: Callable[[str], str]) -> Thread:
    issue = replace(
        thread.issue,
        title=change(thread.issue.title),
        body=change(thread.issue.body),
        labels=tuple(map(change, thread.issue.labels)),
    )
    comments = [
        replace(comment, body=change(comment.body)) for comment in thread.comments
    ]
    return replace(thread, issue=issue, comments=tuple(comments))


def could_refer(lower_text: str) -> bool:
    """Whether a lower-case text may refer to an issue; if False, it certainly doesn't."""
    return any(sign.search(lower_text) for sign in _SIGNS)


def find_references(
    text: str, home: str, former_names: Collection[str] = ()
) -> list[Reference]:
    """The references in a masked text, in order; `home` is the repository of bare numbers."""
    if not could_refer(text.lower()):
        return []
    homes = {name.lower() for name in former_names}
    references = [_reference(match, home, homes) for match in _REFERENCE.finditer(text)]
    return _join_links(text, list(filter(None, references)))


def _join_links(text: str, references: list[Reference]) -> list[Reference]:
    """The references with each Markdown link as one, since rules read it as one word."""
    joined: list[Reference] = []
    for link in references:
        if text[link.end : link.end + 1] == ")":
            last = joined[-1] if joined else None
            label = _POINTING_LABEL.search(text, max(0, link.start - 60), link.start)
            if label:
                link = replace(link, start=label.start(), end=link.end + 1)
            elif last is not None and _is_label(text, last, link):
                # "[#12](https://...)": the target is the issue that the link opens.
                link = replace(link, start=last.start - 1, end=link.end + 1)
                joined.pop()
        joined.append(link)
    return joined


def _is_label(text: str, label: Reference, link: Reference) -> bool:
    """Whether a reference is the label of a Markdown link."""
    return text[max(0, label.start - 1)] == "[" and text[label.end : link.start] == "]("


def _reference(match: re.Match[str], home: str, homes: set[str]) -> Reference | None:
    start, end = match.span()
    if match["url_repo"]:
        repo = _same_home(match["url_repo"].removesuffix(".git"), home, homes)
        rest = match["url_rest"]
        is_pull = match["url_kind"].lower() == "pull"
        _, hash_sign, anchor = rest.partition("#")
        is_anchored = bool(hash_sign) and _FIRST_POST.fullmatch(anchor) is None
        ref = IssueRef(repo, int(match["url_number"]))
        return Reference(ref, start, end, is_anchored, is_pull)
    if match["repo"]:
        repo = _same_home(match["repo"], home, homes)
        return Reference(IssueRef(repo, int(match["repo_number"])), start, end)
    if match["number"]:
        text = match.string
        if _OTHER_REGISTER.search(text, max(0, start - 24), start):
            return None
        is_colour = len(match["number"]) in _COLOUR_LENGTHS and not match["name"]
        if is_colour and _COLOUR_BEFORE.search(text, max(0, start - 24), start):
            return None
        name = (match["name"] or "").lower()
        is_pull = bool(
            name in ("pr", "pull")
            or _PULL_BEFORE.search(text, max(0, start - 16), start)
            or _LANDED_AFTER.match(text, end)
        )
        repo = _named(match["name"], home, homes)
        ref = IssueRef(repo, int(match["number"]))
        return Reference(ref, start, end, is_pull=is_pull)
    group = next(group for group in ("gh_number", "spoken", "bare") if match[group])
    # Only the number is the reference: the rules need the words of "dup of 12".
    return Reference(IssueRef(home, int(match[group])), match.start(group), end)


def _named(name: str | None, home: str, homes: set[str]) -> str:
    """The repository of `name#12`, which has the same owner as `home`."""
    if name is None or name.lower() in _PLAIN_PREFIX:
        return home
    return _same_home(f"{home.partition('/')[0]}/{name}", home, homes)


def _same_home(repo: str, home: str, homes: set[str]) -> str:
    """`home` instead of a former name of it, and instead of a fork, which has the same name."""
    lower = repo.lower()
    _, _, name = lower.rpartition("/")
    _, _, home_name = home.lower().rpartition("/")
    return home if lower in homes or name == home_name else repo


@lru_cache(maxsize=1 << 16)
def code_of(word: str) -> Code:
    """The code of one lower-case word; misspellings of "duplicate" count as that word."""
    code = WORDS.get(word)
    if code:
        return code
    if word.endswith("n't"):
        return Code.NOT
    if word.endswith(("'s", "'re")):
        return Code.THIS if word in ("that's", "it's", "they're") else Code.WORD
    if "-dup" in word:
        return code_of(word.rpartition("-")[2])
    might_be_typo = word.startswith("d") and ("p" in word or "b" in word)
    if not might_be_typo or not 6 <= len(word) <= 12 or word in _NO_TYPO:
        return Code.WORD
    target, code = _TYPO_OF.get(word[-1], ("duplicate", Code.DUPLICATE))
    return code if _edit_distance(word, target) <= _MAX_EDITS else Code.WORD


def _edit_distance(word: str, target: str) -> int:
    """Damerau-Levenshtein distance: insertions, deletions, substitutions and swaps of neighbours."""
    above: list[int] = []
    row = list(range(len(target) + 1))
    for i, letter in enumerate(word, 1):
        two_above = above
        above = row
        row = [i]
        for j, expected in enumerate(target, 1):
            substituted = above[j - 1]
            if letter != expected:
                substituted += 1
            cost = min(above[j] + 1, row[j - 1] + 1, substituted)
            can_swap = i > 1 and j > 1
            if can_swap and letter == target[j - 2] and word[i - 2] == expected:
                cost = min(cost, two_above[j - 2] + 1)
            row.append(cost)
    return row[-1]


def _phrases() -> list[str]:
    """Each phrase as a branch; its empty group is last, so that a wrong first letter ends the branch."""
    spaced = [
        f"(?:{rule.replace(' ', _GAP)}){_WORD_END}(?P<{code.name}_{i}>)"
        for i, (code, rule) in enumerate(PHRASES)
    ]
    return spaced + [
        f"(?:{rule})(?P<{code.name}_s{i}>)" for i, (code, rule) in enumerate(SIGNS)
    ]


@cache
def _token(language: str | None) -> re.Pattern[str]:
    """The pattern of a token; the phrases of another language come before the English."""
    letter = rf"(?:(?!{_UNSPACED})[^\W_])" if language else r"[^\W_]"
    foreign = foreign_phrases(language, _GAP) if language else []
    branches = [
        rf"(?P<blank>[ \t]++|\[(?={REFERENCE_MARK}))",  # also the bracket of "[#12](...)"
        rf"(?P<REFERENCE_>{REFERENCE_MARK}{_REST_OF_REFERENCE}*+)",
        *(
            f"{pattern}(?P<{code.name}_f{i}>)"
            for i, (code, pattern) in enumerate(foreign)
        ),
        *_phrases(),
        r"(?P<SEE_>(?:e\.g|i\.e|cf|etc|vs|approx|resp|incl)\.)",
        rf"(?P<WORD_>{_UNSPACED})",
        rf"(?P<word>@?{letter}++(?:['.-]{letter}++)*+)",
        r"(?P<AND_>[&+/])",
        r"(?P<QUESTION_>\?)",
        r"(?P<COMMA_>[,:;()\[\]、，：（）—–\n]|(?<!-)-++(?=\s)|->|=>|→|⇒|…)",
    ]
    return re.compile("|".join(branches))


@dataclass(frozen=True, slots=True)
class CodedSentence:
    """A sentence: `codes[i]` is the code of the token at `spans[i]`; `references[i]` are its references."""

    codes: str
    spans: tuple[Span, ...]
    references: tuple[tuple[Reference, ...], ...]  # several if the token is a list
    is_question: bool
    is_foreign: bool = False


def hide_references(text: str, references: Sequence[Reference]) -> str:
    """Replace each reference by a mark of the same length, so that links aren't read as words."""
    pieces = []
    position = 0
    for reference in references:
        length = reference.end - reference.start
        pieces.append(text[position : reference.start])
        pieces.append(REFERENCE_MARK + _REST_OF_REFERENCE * (length - 1))
        position = reference.end
    pieces.append(text[position:])
    return "".join(pieces)


def sentence_spans(text: str) -> list[Span]:
    """The spans of the sentences; blank lines and list items also end a sentence."""
    spans = []
    start = 0
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    for end in (*ends, len(text)):
        for piece_start, piece_end in _pieces(text, start, end):
            if text[piece_start:piece_end].strip():
                spans.append((piece_start, piece_end))
        start = end
    return spans


def _pieces(text: str, start: int, end: int) -> Iterator[Span]:
    """Cut a sentence between words into pieces of the maximum length."""
    while end - start > _MAX_SENTENCE:
        blank = text.rfind(" ", start, start + _MAX_SENTENCE)
        cut = blank + 1 if blank > start else start + _MAX_SENTENCE
        yield start, cut
        start = cut
    yield start, end


def tokenise(
    text: str,
    span: Span,
    by_start: dict[int, Reference],
    language: str | None = None,
) -> CodedSentence:
    """Tokenise one sentence of a lower-case text with hidden references."""
    codes = []
    spans = []
    for match in _token(language).finditer(text, *span):
        group = match.lastgroup or ""
        if group != "blank":
            codes.append(_code(group, match))
            spans.append(match.span())
    references = tuple(
        (by_start[start],) if start in by_start else () for start, _ in spans
    )
    _, end = span
    is_foreign = language is not None
    last_signs = text[max(0, end - 4) : end]
    is_question = "?" in last_signs or "？" in last_signs[-2:]
    if is_foreign and Code.QUESTION in codes:
        is_question = True
    sentence = CodedSentence(
        "".join(codes), tuple(spans), references, is_question, is_foreign
    )
    return _with_lists(sentence)


def _with_lists(sentence: CodedSentence) -> CodedSentence:
    """The sentence with each list of references as one token."""
    lists = [match.span() for match in _REFERENCE_LIST.finditer(sentence.codes)]
    if not lists:
        return sentence
    codes = ""
    spans: list[Span] = []
    references: list[tuple[Reference, ...]] = []
    position = 0
    for start, end in lists:
        codes += sentence.codes[position:start] + Code.REFERENCE
        list_start, _ = sentence.spans[start]
        _, list_end = sentence.spans[end - 1]
        spans += sentence.spans[position:start]
        spans.append((list_start, list_end))
        references += sentence.references[position:start]
        references.append(tuple(chain(*sentence.references[start:end])))
        position = end
    return replace(
        sentence,
        codes=codes + sentence.codes[position:],
        spans=(*spans, *sentence.spans[position:]),
        references=(*references, *sentence.references[position:]),
    )


def _code(group: str, match: re.Match[str]) -> str:
    if group == "word":
        return code_of(match.group())
    return _CODE_OF_NAME[group.rpartition("_")[0]]
