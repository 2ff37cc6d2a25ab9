"""For one issue the older ones that may say the same; and, if somebody wants it, a comment or a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gis_builder._github import Notices, Shown
from gis_builder._pairs.text import render
from gis_builder._records import Issue, IssueRef
from gis_builder._suggest.calibration import RIVALS, Calibration, Evidence
from gis_builder._suggest.candidates import By, Candidate, Search, Sought
from gis_builder._suggest.comment import comment_text
from gis_builder._suggest.found import Done, Suggested, Suggestion
from gis_builder._suggest.sentences import best_sentences
from pairkit.errors import ConfigError, DataError

_LONGEST_LABEL = 50  # characters that GitHub takes
_SPARE = 10  # further candidates, in place of those that are gone by now
# What was learnt of one ranking says nothing of another.
_BY: dict[frozenset[Evidence], By] = {
    frozenset(("cosine", "words")): "both",
    frozenset(("cosine",)): "model",
    frozenset(("words",)): "words",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be done.

    Attributes:
        top: Suggestions at most.
        least: The lowest probability of what is written.
        comment: Whether a comment is wanted.
        label: A label that is wanted, if any.
        dry_run: Write nothing.
    """

    top: int = 5
    least: float = 0.9
    comment: bool = False
    label: str | None = None
    dry_run: bool = True

    def check(self, calibration: Calibration | None, *, is_new: bool) -> None:
        """Refuse what can't be done.

        Raises:
            ConfigError: It can't.
        """
        if not 1 <= self.top <= 50:
            raise ConfigError(f"top {self.top}: expected 1 to 50")
        if not 0 <= self.least <= 1:
            raise ConfigError(f"least {self.least}: a probability is from 0 to 1")
        if not self.comment and self.label is None:
            return
        if self.label is not None and not (self.label.strip() and len(self.label) <= _LONGEST_LABEL):
            raise ConfigError(f"label: expected 1 to {_LONGEST_LABEL} characters, not blanks alone")
        if is_new:
            raise ConfigError(
                "an issue that is not written yet takes neither comment nor label; give its number"
            )
        if calibration is None:
            raise ConfigError(
                "a comment or label needs to know how probable a suggestion is: give a calibration, the file"
                " calibration.json that a backtest of `gis suggest` learns"
            )


def suggest_for(
    notices: Notices, ref: IssueRef, search: Search, calibration: Calibration | None, wanted: Wanted
) -> Suggested:
    """What an issue of a server may repeat.

    Raises:
        ConfigError: What is wanted can't be done, or there is no index.
        DataError: There is no such issue, or it has no text.
        RemoteError: A server failed; run it again.
    """
    wanted.check(calibration, is_new=False)
    shown = notices.issue(ref)
    if shown is None:
        raise DataError(
            f"{ref}: no such issue (deleted, a pull request, or never there); check the number, and that the"
            " token may read the repository"
        )
    issue = shown.issue
    found = _found(notices, str(issue.ref), issue, issue.created_at, search, calibration, wanted)
    likely = [one for one in found.suggestions if (one.probability or 0) >= wanted.least]
    if not likely:
        return found
    text = comment_text(likely)
    comment: Done = "would write" if wanted.comment else "none"
    label: Done = "would write" if wanted.label else "none"
    if not wanted.dry_run:
        if wanted.label:
            label = "written" if notices.label(issue.ref, wanted.label) else "was there"
        if wanted.comment:
            comment = "written" if notices.comment(issue.ref, text).is_new else "was there"
    return replace(found, comment=comment, label=label, text=text)


def suggest_new(
    notices: Notices,
    repo: str,
    title: str,
    body: str,
    search: Search,
    calibration: Calibration | None,
    wanted: Wanted,
) -> Suggested:
    """What an issue may repeat that is not written yet; see `suggest_for`."""
    wanted.check(calibration, is_new=True)
    name = notices.repository(repo)
    plain = Issue(name, 1, title, body, "open", None, None, "NONE", "", "", None, None)
    return _found(notices, name, plain, None, search, calibration, wanted)


def _found(
    notices: Notices,
    name: str,
    issue: Issue,
    before: str | None,
    search: Search,
    calibration: Calibration | None,
    wanted: Wanted,
) -> Suggested:
    text = render(issue).text
    if not text.strip():
        raise DataError(f"{name}: no text is left of the issue to look for; it needs a title or a body")
    by: By = "both" if calibration is None else _BY[frozenset(calibration.evidence)]
    candidates = search(Sought(text, issue.repo, before, max(wanted.top, RIVALS) + _SPARE, by))
    there, gone = _as_now(notices, issue.repo, candidates, wanted.top)
    # What is gone is no rival to what is there.
    likely = _probabilities([one for one in candidates if one.number not in gone], calibration)
    sentences = best_sentences(text, [candidate.text for _, candidate in there])
    suggestions = tuple(
        Suggestion(
            number=now.issue.number,
            title=now.issue.title,
            state=now.issue.state,
            url=now.page,
            probability=probability,
            cosine=candidate.cosine,
            words=candidate.words,
            sentence=sentence,
        )
        for (now, candidate), probability, sentence in zip(there, likely, sentences, strict=False)
    )
    return Suggested(name, suggestions, len(gone), wanted.least, "none", "none", "")


def _as_now(
    notices: Notices, repo: str, candidates: Sequence[Candidate], top: int
) -> tuple[list[tuple[Shown, Candidate]], set[int]]:
    """The first candidates as they are on the server now, and the numbers of those that are gone."""
    there: list[tuple[Shown, Candidate]] = []
    gone: set[int] = set()
    for candidate in candidates:
        if len(there) == top:
            break
        now = notices.issue(IssueRef(repo, candidate.number))
        if now is None or now.issue.repo != repo:
            gone.add(candidate.number)
        else:
            there.append((now, candidate))
    return there, gone


def _probabilities(
    candidates: Sequence[Candidate], calibration: Calibration | None
) -> Sequence[float | None]:
    """Of each candidate; without a calibration what the index says."""
    if calibration is None:
        return [candidate.probability for candidate in candidates]
    known = [[getattr(candidate, name) for name in calibration.evidence] for candidate in candidates]
    return calibration.probabilities(known)
