"""The claims that stand in a thread: later statements confirm, replace, dispute or void earlier ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from gis_builder.detect.claims import Claim, ClaimKind, Stance
from gis_builder.detect.evidence import Role, Statement
from gis_builder.records import IssueRef

_ANSWER_REACH = 2  # comments after a claim within which a bare "yes" or "no" answers it
_ANSWER_WORDS = 30


class Fate(StrEnum):
    """What became of a claim."""

    STANDS = "stands"
    DISPUTED = "disputed"  # "not a dup", "a different bug"
    REOPENED = "reopened"
    UNMARKED = "unmarked"  # the mark was taken back
    FIXED = "fixed"  # the issue was then closed as fixed, or as no bug


@dataclass(slots=True)
class Standing:
    """A claim in its thread, with the issues it was found to mean and what became of it."""

    claim: Claim
    targets: tuple[IssueRef, ...]
    statement: Statement
    place: int
    stance: Stance
    is_inferred: bool = False  # the text names no issue; the nearest earlier one is meant
    confirmed_by: Statement | None = None
    fate: Fate = Fate.STANDS
    is_disputed_later: bool = False  # by a bystander, when the issue was closed already

    @property
    def stands(self) -> bool:
        """Whether nothing later took the claim back."""
        return self.fate is Fate.STANDS

    def confirm(self, statement: Statement, stance: Stance = Stance.ASSERTED) -> None:
        """Somebody else, or the speaker again, holds the claim to be true."""
        self.confirmed_by = statement
        if stance is Stance.ASSERTED or self.stance is Stance.ASKED:
            self.stance = stance


@dataclass(slots=True)
class Ledger:
    """Hears a thread's statements in order of time and keeps the claims."""

    issue: IssueRef
    closed_at: str
    could_be_meant: Callable[[IssueRef], bool]  # whether a mention may be what a claim without a number means
    standings: list[Standing] = field(default_factory=list)
    heard: list[Statement] = field(default_factory=list)

    def hear(self, statement: Statement) -> None:
        """Take in the next statement."""
        if statement.reading.reopens:
            self.void(Fate.REOPENED)
        own = [claim for claim in statement.reading.claims if self._counts(claim, statement)]
        made = [claim for claim in own if claim.stance is not Stance.DENIED]
        for claim in own:
            if claim.stance is Stance.DENIED:
                self._dispute(statement, claim.targets)
        if statement.role is not Role.BOT and not own:
            self._answer(statement)
        for claim in made:
            self._take_up(claim, statement)
        self.heard.append(statement)

    def void(self, fate: Fate, targets: tuple[IssueRef, ...] = ()) -> None:
        """Take back every standing claim, or only those on one of `targets`."""
        for standing in self.standings:
            if standing.stands and (not targets or set(targets) & set(standing.targets)):
                standing.fate = fate

    def _dispute(self, statement: Statement, targets: tuple[IssueRef, ...]) -> None:
        """Void the disputed claims; once the issue is closed, only those with authority can do that."""
        if statement.when <= self.closed_at or statement.role in (Role.CLOSER, Role.MAINTAINER):
            self.void(Fate.DISPUTED, targets)
            return
        for standing in self.standings:
            if not targets or set(targets) & set(standing.targets):
                standing.is_disputed_later = True

    def last_standing(self) -> Standing | None:
        """The newest claim that stands and names an issue."""
        return next((s for s in reversed(self.standings) if s.stands and s.targets), None)

    def _take_up(self, claim: Claim, statement: Statement) -> None:
        if not claim.targets and not claim.points_back and claim.stance is not Stance.ASKED:
            earlier = self.last_standing() or self._revived(statement)
            if earlier is not None:
                earlier.confirm(statement, claim.stance)
                return
        targets = claim.targets or self._meant()
        self.standings.append(
            Standing(claim, targets, statement, len(self.heard), claim.stance, is_inferred=not claim.targets)
        )

    def _revived(self, statement: Statement) -> Standing | None:
        """The last claim that was disputed or overtaken by a fix, when the closer takes it up again."""
        if statement.role not in (Role.CLOSER, Role.MAINTAINER):
            return None
        for standing in reversed(self.standings):
            if standing.fate in (Fate.DISPUTED, Fate.FIXED) and standing.targets:
                standing.fate = Fate.STANDS
                return standing
        return None

    def _meant(self) -> tuple[IssueRef, ...]:
        """What a claim without a number means: the issue named last before it."""
        rejected = {ref for standing in self.standings if not standing.stands for ref in standing.targets}
        for statement in reversed(self.heard):
            for mention in reversed(self.meant_by(statement)):
                if mention not in rejected:
                    return (mention,)
        return ()

    def meant_by(self, statement: Statement) -> tuple[IssueRef, ...]:
        """The other issues that a statement names."""
        mentions = statement.reading.mentions
        return tuple(ref for ref in mentions if ref != self.issue and self.could_be_meant(ref))

    def _answer(self, statement: Statement) -> None:
        """Hear a statement that claims nothing: it may answer the last claim or give another reason."""
        reading = statement.reading
        last = self.last_standing()
        if last is None:
            return
        is_near = len(self.heard) - last.place <= _ANSWER_REACH
        is_late = statement.when > self.closed_at
        is_principal = statement.role is not Role.OTHER
        named = tuple(ref for ref in reading.mentions if ref in last.targets)
        differs = reading.says_different and (is_near or named)
        if ((reading.disagrees and is_near) or differs) and not reading.agrees:
            self._dispute(statement, named)
        elif reading.agrees and (is_near if is_principal else self._is_short_answer(statement, last)):
            last.confirm(statement)
        elif reading.says_otherwise and statement.role is Role.CLOSER:
            if not is_late:
                self.void(Fate.FIXED)
        elif reading.thanks and is_near and is_principal:
            last.confirm(statement)

    def _is_short_answer(self, statement: Statement, last: Standing) -> bool:
        """Whether a bystander's "yes" answers the claim: it follows at once, and is short."""
        return len(self.heard) - last.place == 1 and statement.reading.words <= _ANSWER_WORDS

    def _counts(self, claim: Claim, statement: Statement) -> bool:
        """Whether a claim is about this issue, and somebody's.

        A bot's suggestion is nobody's claim; a bot that closes says what a person told it. "I meant #2" takes
        a claim of the same speaker to be one.
        """
        if claim.about_others:
            return False
        if claim.corrects:
            return any(standing.statement.who == statement.who for standing in self.standings)
        if statement.role is not Role.BOT:
            return True
        is_action = claim.is_command or (claim.is_closing and claim.stance is Stance.ASSERTED)
        return claim.kind is ClaimKind.DUPLICATE and is_action
