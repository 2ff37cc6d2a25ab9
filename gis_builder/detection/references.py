"""Marker what a text points at: `#12`, `owner/name#12`, `GH-12`, links, and `issue 12` in words."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from gis_builder.store.records import IssueRef

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
    """List the references in a masked text in order of place.

    A repository with the name of `home` under another owner is taken for `home` before it moved.
    """
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
