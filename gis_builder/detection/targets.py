"""Hold the targets of a verdict against what is known of them: issues, pull requests, missing, elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from gis_builder.store.records import GITHUB, IssueRef, Kind, Verdict, VerdictOutcome

KindOf = Callable[[IssueRef], Kind]

_UNSEEN = 0.9  # factor on the confidence when nobody has looked at what the target is
_REJECTED = 0.9


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as a duplicate beyond the thread's own words.

    `former_names` are what the thread's repository was called before, as owner/name. `site` is the root
    of the tracker's pages, for the links of the evidence.
    """

    allow_cross_repository: bool = False
    former_names: frozenset[str] = frozenset()
    site: str = GITHUB


DEFAULT_RULES = Rules()


def could_be_target(kind: Kind) -> bool:
    """Whether something of that kind may be a canonical issue, as far as is known."""
    return kind in (Kind.ISSUE, Kind.UNKNOWN)


def could_be_meant(ref: IssueRef, home: str, kind: Kind, *, is_called_pull: bool) -> bool:
    """Whether "a dup of that" may mean what was named as `ref`: anything but a pull request.

    What turned out to be missing was meant all the same, and so was an issue of another repository, whatever
    is known of it: were they passed over, an older reference would be taken for what was meant.
    """
    if ref.repo != home:
        return not is_called_pull
    return kind is Kind.ISSUE or (kind is not Kind.PULL and not is_called_pull)


def with_known_pulls(kind_of: KindOf, pulls: frozenset[IssueRef]) -> KindOf:
    """`kind_of` with what the thread itself shows of pull requests that were not fetched."""

    def known(ref: IssueRef) -> Kind:
        kind = kind_of(ref)
        return Kind.PULL if kind is Kind.UNKNOWN and ref in pulls else kind

    return known


def check_targets(verdict: Verdict, kind_of: KindOf, rules: Rules) -> Verdict:
    """Drop targets that can't be canonical; a duplicate of nothing that is left is not one, or uncertain."""
    if verdict.outcome is not VerdictOutcome.DUPLICATE:
        return verdict
    others = [ref for ref in verdict.targets if ref != verdict.ref]
    if not others:
        return _rejected(verdict, VerdictOutcome.NOT, "self_reference", ())
    near = [ref for ref in others if rules.allow_cross_repository or ref.repo == verdict.ref.repo]
    if not near:
        return _rejected(verdict, VerdictOutcome.UNCERTAIN, "cross_repository", others)
    kinds = {ref: kind_of(ref) for ref in near}
    usable = [ref for ref in near if could_be_target(kinds[ref])]
    if not usable:
        if Kind.MISSING in kinds.values():
            return _rejected(verdict, VerdictOutcome.UNCERTAIN, "target_missing", near)
        return _rejected(verdict, VerdictOutcome.NOT, "target_is_pull", near)
    is_seen = any(kinds[ref] is Kind.ISSUE for ref in usable)
    confidence = verdict.confidence if is_seen else round(verdict.confidence * _UNSEEN, 3)
    return replace(verdict, targets=tuple(usable), confidence=confidence)


def _rejected(verdict: Verdict, outcome: VerdictOutcome, reason: str, targets: Iterable[IssueRef]) -> Verdict:
    return replace(verdict, outcome=outcome, targets=tuple(targets), confidence=_REJECTED, reason=reason)
