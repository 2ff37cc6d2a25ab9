"""Find references to issues and pull requests in a text, and hide them from the reading of its words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from gis_builder.store import GITHUB, IssueRef, Thread
from pairkit.base.printable import comparable

# Scripts without blanks between words: "#12の重複", "与#12重复".
UNSPACED = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_REFERENCE = re.compile(
    rf"""
    (?:https?://|(?<![\w.-]))(?:www\.)?github\.com/(?P<url_repo>[\w.-]+/[\w.-]+)/(?P<url_kind>issues|pull)/
        (?P<url_number>\d{{1,7}})
        (?P<url_rest>(?:/(?:files|commits))?/?(?:\?[\w=&%.-]*)?(?:\#[\w-]+)?)(?:(?![\w/])|(?={UNSPACED}))
    | (?<![\w/&.-])(?P<repo>[\w-][\w.-]*/[\w.-]+)\#(?P<repo_number>[1-9]\d{{0,6}})(?![\w])
    | (?:(?<![^\W_])(?<![/&.-])|(?<=\d/)|(?<={UNSPACED}))(?P<name>[A-Za-z][\w.-]*)?
        \#(?P<number>[1-9]\d{{0,6}})(?:(?!_?[^\W_]|-|\.\d)|(?={UNSPACED}))
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
_SIGNS = [
    re.compile(rf"{sign}\d")
    for sign in (
        "#",
        "/issues/",
        "/pull/",
        "gh-",
        r"issues? +(?:n\S{0,8} *)?",
        r"bugs? +(?:n\S{0,8} *)?",
        r"tickets? +(?:n\S{0,8} *)?",
        r"dup\w{0,12} +(?:of|to) +",
    )
]
# A label of a link that only points: "[this issue](https://...)", but not "[a known issue](https://...)".
_POINTING_LABEL = re.compile(
    r"\[(?:(?:this|that|the|another|an?|other|older|earlier|existing|original) ){0,3}"
    r"(?:this|that|one|here|issue|bug|ticket|report|thread)\]\(\Z",
    re.IGNORECASE,
)
Edit = tuple[int, int, str]  # start and end of a span, and its new words
REFERENCE_MARK = "\x01"
REST_OF_REFERENCE = "\x02"


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
    if match["url_repo"]:
        return _linked(match, home, homes)
    if match["number"]:
        return _numbered(match, home, homes)
    start, end = match.span()
    if match["repo"]:
        repo = _same_home(match["repo"], home, homes)
        return Reference(IssueRef(repo, int(match["repo_number"])), start, end)
    group = next(group for group in ("gh_number", "spoken", "bare") if match[group])
    # Only the number is the reference: the rules need the words of "dup of 12".
    return Reference(IssueRef(home, int(match[group])), match.start(group), end)


def _linked(match: re.Match[str], home: str, homes: set[str]) -> Reference:
    """The reference of a link."""
    repo = _same_home(match["url_repo"].removesuffix(".git"), home, homes)
    ref = IssueRef(repo, int(match["url_number"]))
    _, hash_sign, anchor = match["url_rest"].partition("#")
    is_anchored = bool(hash_sign) and _FIRST_POST.fullmatch(anchor) is None
    is_pull = match["url_kind"].lower() == "pull"
    return Reference(ref, *match.span(), is_anchored, is_pull)


def _numbered(match: re.Match[str], home: str, homes: set[str]) -> Reference | None:
    """The reference of `#12` or `name#12`, unless the number is of a line, a colour or another tracker."""
    text = match.string
    start, end = match.span()
    if _OTHER_REGISTER.search(text, max(0, start - 24), start):
        return None
    name = match["name"]
    is_colour = len(match["number"]) in _COLOUR_LENGTHS and not name
    if is_colour and _COLOUR_BEFORE.search(text, max(0, start - 24), start):
        return None
    is_pull = bool(
        (name or "").lower() in ("pr", "pull")
        or _PULL_BEFORE.search(text, max(0, start - 16), start)
        or _LANDED_AFTER.match(text, end)
    )
    ref = IssueRef(_named(name, home, homes), int(match["number"]))
    return Reference(ref, start, end, is_pull=is_pull)


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


def hide_references(text: str, references: Iterable[Reference]) -> str:
    """Replace each reference by a mark of the same length, so that links aren't read as words."""
    edits = []
    for reference in references:
        rest = REST_OF_REFERENCE * (reference.end - reference.start - 1)
        edits.append((reference.start, reference.end, REFERENCE_MARK + rest))
    return edited(text, edits)


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with other words at some spans, which are in order and don't overlap."""
    pieces = []
    position = 0
    for start, end, words in edits:
        pieces.append(text[position:start])
        pieces.append(words)
        position = end
    pieces.append(text[position:])
    return "".join(pieces)
