"""Turn a masked text into sentences, each a string of lexicon codes with the places of its tokens.

Sentences have a greatest length and a list of references is one token, so that what a rule may span is
bounded and the time that reading takes grows with the length of the text, whatever it says.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

from gis_builder.detection.lexicon import PHRASES, UNSPACED_PHRASES, WORDS, Code, code_pattern
from gis_builder.store.records import IssueRef

Span = tuple[int, int]


# Scripts that write without blanks: "#12の重複", "与#12重复".
_UNSPACED = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_REFERENCE = re.compile(
    rf"""
    https?://(?:www\.)?github\.com/(?P<url_repo>[\w.-]+/[\w.-]+)/(?P<url_kind>issues|pull)/
        (?P<url_number>\d{{1,7}})
        (?P<url_rest>(?:/(?:files|commits))?(?:\?[\w=&%.-]*)?(?:\#[\w-]+)?)(?:(?![\w/])|(?={_UNSPACED}))
    | (?<![\w/&.-])(?P<repo>[\w-][\w.-]*/[\w.-]+)\#(?P<repo_number>[1-9]\d{{0,6}})(?![\w])
    | (?:(?<![\w/&.-])|(?<={_UNSPACED}))(?P<name>[A-Za-z][\w.-]*)?
        \#(?P<number>[1-9]\d{{0,6}})(?:(?![\w-]|\.\d)|(?={_UNSPACED}))
    | (?<![\w/])GH-(?P<gh_number>[1-9]\d{{0,6}})\b
    | (?<![\w/])(?:issues?|bugs?|tickets?)\ +(?:no\.?\ *|number\ +|nr\.?\ *)?
        (?P<spoken>[1-9]\d{{0,6}})\b(?![.,:]\d|%)
    | (?<![\w/])(?:dup(?:licate|e)?)\ +(?:of|to)\ +(?P<bare>[1-9]\d{{0,6}})\b(?![.,]\d|%)
    """,
    re.VERBOSE | re.IGNORECASE,
)
# A word straight before "#12" that says the number belongs to another register.
_OTHER_REGISTER = re.compile(
    r"\b(?:rfcs?|peps?|jeps?|jira|bugzilla|gcc|gitlab|cve)(?: (?:pr|issue|pull request|bug))?[ :]*\Z",
    re.IGNORECASE,
)
_PULL_BEFORE = re.compile(r"\b(?:pr|pull request) ?\Z", re.IGNORECASE)
_LANDED_AFTER = re.compile(r"\s(?:has |have |is |was |just )?(?:been )?(?:landed|merged)\b", re.IGNORECASE)
# Words written against "#12" that say what it is, not which repository it is in.
_PLAIN_PREFIX = frozenset(
    {"issue", "issues", "bug", "bugs", "ticket", "pr", "pull", "no", "nr", "gh", "of", "see", "fixes"}
)
# Each begins with a letter or sign that is fixed, which is what the engine finds fast.
_SIGNS = tuple(map(re.compile, (r"#\d", r"/issues/\d", r"/pull/\d", r"gh-\d")))
_SPOKEN = tuple(
    map(
        re.compile,
        (
            r"issues? +(?:n\S{0,8} )?\d",
            r"bugs? +(?:n\S{0,8} )?\d",
            r"tickets? +(?:n\S{0,8} )?\d",
            r"dup\w{0,12} (?:of|to) +\d",
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Reference:
    """One mention of an issue or pull request; `start` and `end` are positions in the text."""

    ref: IssueRef
    start: int
    end: int
    is_anchored: bool = False  # a link to one comment of the thread, often not the thread that is meant
    is_pull: bool = False  # by its link or by what the text says of it: "PR #12", "#12 has landed"


def could_refer(lower_text: str) -> bool:
    """Whether a lower-case text could name an issue; a "no" is certain."""
    return any(sign.search(lower_text) for sign in _SIGNS) or any(word.search(lower_text) for word in _SPOKEN)


def find_references(text: str, home: str, former_names: Collection[str] = ()) -> list[Reference]:
    """List the references in a masked text in order of place."""
    if not could_refer(text.lower()):
        return []
    homes = {name.lower() for name in former_names}
    found = (_reference(match, home, homes) for match in _REFERENCE.finditer(text))
    return [reference for reference in found if reference is not None]


def _reference(match: re.Match[str], home: str, homes: set[str]) -> Reference | None:
    start, end = match.span()
    if match["url_repo"]:
        ref = IssueRef(
            _same_home(match["url_repo"].removesuffix(".git"), home, homes), int(match["url_number"])
        )
        rest = match["url_rest"]
        is_anchored = "#" in rest and not rest.endswith("#issue")
        return Reference(ref, start, end, is_anchored, match["url_kind"].lower() == "pull")
    if match["repo"]:
        return Reference(
            IssueRef(_same_home(match["repo"], home, homes), int(match["repo_number"])), start, end
        )
    if match["number"]:
        if _OTHER_REGISTER.search(match.string, max(0, start - 24), start):
            return None
        ref = IssueRef(_named(match["name"], home, homes), int(match["number"]))
        return Reference(ref, start, end, is_pull=_is_called_pull(match.string, start, end))
    for group in ("gh_number", "spoken", "bare"):
        if match[group]:
            # Only the number is the reference: "dup of 12" keeps its words for the grammar.
            return Reference(IssueRef(home, int(match[group])), match.start(group), end)
    return None


def _is_called_pull(text: str, start: int, end: int) -> bool:
    is_named = _PULL_BEFORE.search(text, max(0, start - 16), start) is not None
    return is_named or _LANDED_AFTER.match(text, end) is not None


def _named(name: str | None, home: str, homes: set[str]) -> str:
    """The repository of `name#12`: a sibling under the owner of `home`."""
    if name is None or name.lower() in _PLAIN_PREFIX:
        return home
    return _same_home(f"{home.partition('/')[0]}/{name}", home, homes)


def _same_home(repo: str, home: str, homes: set[str]) -> str:
    is_home = repo.lower() in homes or repo.rpartition("/")[2].lower() == home.rpartition("/")[2].lower()
    return home if is_home else repo


# Words one slip away from "duplicate" that mean something else.
_NO_SLIP = frozenset(
    {"duplication", "duplicating", "deduplicate", "duplex", "duplicates", "duplicated", "replicate"}
)
_MOST_SLIPS = 2


@lru_cache(maxsize=1 << 16)
def code_of(word: str) -> Code:
    """The code of one lower-case word; slips of the pen in "duplicate" count as the word."""
    code = WORDS.get(word)
    if code is not None:
        return code
    if word.endswith("n't"):
        return Code.NOT
    if word.endswith(("'s", "'re")):
        return Code.THIS if word in ("that's", "it's", "they're") else Code.WORD
    if "-dup" in word:
        return code_of(word.rpartition("-")[2])
    return _slip_code(word)


def _slip_code(word: str) -> Code:
    if word[:1] != "d" or not 6 <= len(word) <= 12 or not {"p", "b"} & set(word) or word in _NO_SLIP:
        return Code.WORD
    if _slips(word, "duplicate") <= _MOST_SLIPS and word[-1] not in "ds":
        return Code.DUPLICATE
    if _slips(word, "duplicates") <= _MOST_SLIPS and word.endswith("s"):
        return Code.DUPLICATES
    return Code.DUPLICATED if _slips(word, "duplicated") <= _MOST_SLIPS and word.endswith("d") else Code.WORD


def _slips(word: str, meant: str) -> int:
    """Edit distance with insertions, deletions, substitutions and swaps of neighbours (each 1)."""
    before: list[int] = []
    row = list(range(len(meant) + 1))
    for i, letter in enumerate(word, 1):
        before, last = row, before
        row = [i]
        for j, wanted in enumerate(meant, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == meant[j - 2] and word[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]


REFERENCE_MARK, _REST_OF_REFERENCE = "\x01", "\x02"
_GAP = r"(?:[ \t]++(?:\n[ \t]*+)?|\n[ \t]*+)"
_LONGEST_SENTENCE = 4000  # characters; what is longer is data, not prose, and is read in pieces
# "#1, #2 and also #3", in codes.
_REFERENCE_LIST = code_pattern(
    "REFERENCE (?:[COMMA AND]{1,3} ALSO? OF? ARTICLE? ISSUE? COMMA? REFERENCE"
    " | AND? ALSO? COMMA? ISSUE? REFERENCE)++"
)


def _phrases() -> list[str]:
    """Every phrase as a branch; its empty group is last, so that the first letter can rule the branch out."""
    spaced = [
        f"(?:{rule.replace(' ', _GAP)})(?!\\w)(?P<{code}_{i}>)" for i, (code, rule) in enumerate(PHRASES)
    ]
    return spaced + [f"(?:{rule})(?P<{code}_u{i}>)" for i, (code, rule) in enumerate(UNSPACED_PHRASES)]


_TOKEN = re.compile(
    "|".join(
        [
            r"(?P<blank>[ \t]++)",
            rf"(?P<reference>{REFERENCE_MARK}{_REST_OF_REFERENCE}*+)",
            *_phrases(),
            r"(?P<abbreviation>(?:e\.g|i\.e|cf|etc|vs|approx|resp|incl)\.)",
            r"(?P<cjk>[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])",
            r"(?P<word>@?[^\W_]++(?:['.-][^\W_]++)*+)",
            r"(?P<and>[&+/])",
            r"(?P<ask>\?)",
            r"(?P<lesser>[,:;()\[\]、，：（）—–\n]|(?<!-)-++(?=\s)|->|=>|→|⇒|…)",
        ]
    )
)
# What is fixed stands first, and what must not stand before it is looked back at: the engine then skips from
# stop to stop instead of looking back from every character.
_SENTENCE_END = re.compile(
    r"[.!?;\n。！？；](?:"
    # A run of stops from where it begins, or behind the one that ends an abbreviation.
    r"(?<=[.!?;])(?:(?<![.!?;][.!?;])|(?<=\be\.g\..)|(?<=\bi\.e\..)|(?<=\bcf\..)|(?<=\betc\..)|(?<=\bvs\..))"
    r"(?<!\be\.g.)(?<!\bi\.e.)(?<!\bcf.)(?<!\betc.)(?<!\bvs.)"
    # "It's a known issue; see #1" is one statement.
    r"(?:(?<!known issue.)(?<!known bug.)(?<!known problem.)"
    rf"|(?!(?<=[.;])\s{{1,3}}(?:see|cf\.?) {REFERENCE_MARK}))"
    r"[.!?;]*+(?=[\s)\]*_\"']|\Z)[)\]*_\"']*+"
    r"|(?<=[。！？；])"
    r"|(?<=\n)(?:[ \t]*+\n\s*+|(?=[ \t]*+(?:[-*+]|\d{1,9}[.)])[ ])))"
)


@dataclass(frozen=True, slots=True)
class CodedSentence:
    """One statement: `codes[i]` is the lexicon code of the token at `spans[i]` of the text."""

    codes: str
    spans: tuple[Span, ...]
    references: tuple[tuple[Reference, ...], ...]  # those of a list have one place
    is_question: bool


def hide_references(text: str, references: Sequence[Reference]) -> str:
    """Put one marker in place of each reference, so that a link's dots and words are not read as text."""
    pieces, place = [], 0
    for reference in references:
        length = reference.end - reference.start
        pieces += [text[place : reference.start], REFERENCE_MARK, _REST_OF_REFERENCE * (length - 1)]
        place = reference.end
    return "".join([*pieces, text[place:]])


def sentence_spans(text: str) -> list[Span]:
    """Where the sentences of a text stand; blank lines and list items end a sentence too."""
    spans, start = [], 0
    for end in (*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)):
        spans += [(a, b) for a, b in _pieces(text, start, end) if text[a:b].strip()]
        start = end
    return spans


def _pieces(text: str, start: int, end: int) -> Iterator[Span]:
    """A sentence whole, or cut between words where it is too long to be one."""
    while end - start > _LONGEST_SENTENCE:
        blank = text.rfind(" ", start, start + _LONGEST_SENTENCE)
        cut = blank + 1 if blank > start else start + _LONGEST_SENTENCE
        yield start, cut
        start = cut
    yield start, end


def tokenise(text: str, span: Span, by_start: dict[int, Reference]) -> CodedSentence:
    """Read one sentence of a lower-case text whose references are hidden."""
    codes: list[str] = []
    spans: list[Span] = []
    for match in _TOKEN.finditer(text, *span):
        group = match.lastgroup or ""
        if group != "blank":
            codes.append(_code(group, match))
            spans.append(match.span())
    references = [(by_start[place],) if place in by_start else () for place, _ in spans]
    is_question = "?" in text[max(0, span[1] - 4) : span[1]] or "？" in text[max(0, span[1] - 2) : span[1]]
    return _with_lists(CodedSentence("".join(codes), tuple(spans), tuple(references), is_question))


def _with_lists(sentence: CodedSentence) -> CodedSentence:
    """The sentence with each list of references as one token."""
    lists = [match.span() for match in _REFERENCE_LIST.finditer(sentence.codes)]
    if not lists:
        return sentence
    codes, spans, references, place = "", [], [], 0
    for start, end in lists:
        codes += sentence.codes[place:start] + Code.REFERENCE
        spans += [*sentence.spans[place:start], (sentence.spans[start][0], sentence.spans[end - 1][1])]
        references += [*sentence.references[place:start], tuple(chain(*sentence.references[start:end]))]
        place = end
    return replace(
        sentence,
        codes=codes + sentence.codes[place:],
        spans=(*spans, *sentence.spans[place:]),
        references=(*references, *sentence.references[place:]),
    )


def _code(group: str, match: re.Match[str]) -> str:
    if group == "word":
        return code_of(match.group())
    return _FIXED_CODES.get(group) or group.partition("_")[0]


_FIXED_CODES = {
    "reference": Code.REFERENCE,
    "abbreviation": Code.SEE,
    "cjk": Code.WORD,
    "and": Code.AND,
    "ask": Code.QUESTION,
    "lesser": Code.COMMA,
}
