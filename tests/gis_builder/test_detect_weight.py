"""Confidences and time limits, computed by hand: stance x kind of claim x role."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gis_builder.detection import decide
from gis_builder.store.records import Comment, Thread, VerdictOutcome

from .detect_threads import CLOSED_AT, kind_of, said, thread

MINUTE, DAY, MOMENT = 1 / 60, 24.0, 2 / 3600  # hours


def confidence(*comments: Comment, **fields: object) -> float:
    """The confidence of the verdict `duplicate`, or 0 for any other."""
    verdict = decide(thread(*comments, **fields), kind_of)
    return verdict.confidence if verdict.outcome is VerdictOutcome.DUPLICATE else 0.0


@pytest.mark.parametrize(
    ("who", "words", "hours", "expected"),
    [
        ("mia", "Dup of #1.", 0.01, 0.98),
        ("max", "Dup of #1.", 0.01, 0.93),
        ("ann", "Dup of #1.", 0.01, 0.9),
        ("bob", "Dup of #1.", 0.01, 0.86),
        ("mia", "I think this is a dup of #1.", 0.01, 0.862),  # 0.88 x 0.98
        ("mia", "Is this a dup of #1?", 0.01, 0.706),  # 0.72 x 0.98
        ("mia", "Closing in favour of #1.", 0.01, 0.941),  # 0.96 x 0.98
        ("mia", "Same as #1.", 0.01, 0.902),  # 0.92 x 0.98
        ("mia", "Tracked in #1.", 0.01, 0.833),  # 0.85 x 0.98
        ("bob", "I think this is the same as #1.", 1, 0.696),  # 0.88 x 0.92 x 0.86
    ],
)
def test_confidence_is_stance_times_kind_times_role(
    who: str, words: str, hours: float, expected: float
) -> None:
    assert confidence(said(who, words, hours)) == expected


def test_inferred_late_and_disputed_claims_count_less() -> None:
    assert confidence(said("bob", "See #1", 3), said("mia", "A duplicate.")) == 0.882  # 0.9 x 0.98
    assert confidence(said("max", "dup of #1", 20 * DAY)) == 0.744  # 0.8 x 0.93
    disputed = confidence(said("mia", "dup of #1"), said("bob", "This is not a dup of #1", -1))
    assert disputed == 0.833  # 0.85 x 0.98


def test_a_claim_at_the_limit_of_strong_is_kept_beside_a_later_one() -> None:
    first, doubt = said("mia", "Closing in favour of #1.", 1), said("bob", "This is not a dup of #1.", -1)
    assert confidence(first, doubt) == 0.8  # 0.85 x 0.96 x 0.98
    both = decide(thread(first, said("mia", "Also in favour of #2.", 0.5), doubt), kind_of)
    assert [target.number for target in both.targets] == [1, 2]


def test_a_confirmed_claim_has_the_confidence_of_the_better_speaker() -> None:
    assert confidence(said("bob", "dup of #1", 2), said("mia", "Yes, closing.")) == 0.98
    assert confidence(said("mia", "dup of #1", 2), said("ann", "Yes.", 1)) == 0.98


@pytest.mark.parametrize(
    ("who", "words", "max_hours"),
    [
        ("bob", "I think this is a dup of #1.", 3 * DAY),
        ("bob", "Is this a dup of #1?", DAY),
        ("bob", "In favour of #1.", DAY),
        ("bob", "Perhaps superseded by #1.", DAY),
        ("bob", "Is it superseded by #1?", DAY),
        ("bob", "Is this the same as #1?", 0.0),
        ("bob", "Same as #1.", DAY),
        ("bob", "Perhaps the same as #1.", 2.0),
        ("bob", "Tracked in #1.", 2.0),
        ("mia", "Tracked in #1.", 1.0),
        ("mia", "Is this a dup of #1?", 10 * MINUTE),
        ("mia", "Same as #1.", 3 * DAY),
        ("mia", "I think this is a dup of #1.", 3 * DAY),
    ],
)
def test_maximum_time_before_the_closing(who: str, words: str, max_hours: float) -> None:
    assert confidence(said(who, words, max_hours)) > 0
    assert confidence(said(who, words, max_hours + MOMENT)) == 0


def test_an_assertion_holds_a_week_and_as_the_last_word_a_year() -> None:
    dup = "dup of #1"
    assert confidence(said("bob", dup, 7 * DAY)) == 0.86
    assert confidence(said("bob", dup, 7 * DAY + MOMENT)) == 0.688  # 0.8 x 0.86
    assert confidence(said("bob", dup, 365 * DAY)) == 0.688
    assert confidence(said("bob", dup, 365 * DAY + MOMENT)) == 0
    assert confidence(said("bob", dup, 8 * DAY), said("max", "Hm.", 7.5 * DAY)) == 0


@pytest.mark.parametrize(
    ("who", "max_hours"), [("mia", 7 * DAY), ("max", DAY), ("ann", DAY), ("bob", 10 * MINUTE)]
)
def test_maximum_time_after_the_closing(who: str, max_hours: float) -> None:
    same = "In favour of #1."
    assert confidence(said(who, same, -max_hours)) > 0
    assert confidence(said(who, same, -max_hours - MOMENT)) == 0


def test_after_the_closing_only_the_closer_may_guess() -> None:
    guess = "I think this is a dup of #1."
    assert confidence(said("max", guess, -0.1)) == 0
    assert confidence(said("mia", guess, -0.1)) == 0.862


def test_the_closers_other_remark_outweighs_claims_of_others() -> None:
    claim = said("bob", "dup of #1", 5)
    twelve = "The old clock was taken out last week and nobody will miss"
    assert confidence(claim, said("mia", twelve)) == 0.86
    assert confidence(claim, said("mia", f"{twelve} it.")) == 0
    assert confidence(claim, said("mia", f"{twelve} it, see #1.")) == 0.86
    guess = said("mia", "same as #1", 5)
    assert confidence(guess, said("mia", "Nobody will miss it.")) == 0.902
    assert confidence(guess, said("mia", "Nobody will ever miss it.")) == 0


def test_a_bot_closes_at_once_or_for_another_reason() -> None:
    for name in ("bors", "release-bot", "some_robot"):
        assert confidence(said("bob", "dup of #1", 0.9), closed_by=name) > 0
        assert confidence(said("bob", "dup of #1", 1.1), closed_by=name) == 0
    assert confidence(said("bob", "dup of #1", 1.1), closed_by="robotics-fan") > 0

    assert confidence(said("max", "Duplicate of #1", DAY), closed_by="bors") == 0.93
    assert confidence(said("max", "Probably a duplicate of #1", DAY), closed_by="bors") == 0


def test_a_bot_that_closes_counts_as_a_maintainer() -> None:
    assert confidence(said("bot", "Closing as a duplicate of #1", is_bot=True)) == 0.93


def test_an_authors_note_counts_if_it_asserts_a_duplicate() -> None:
    assert confidence(title="Flicker (duplicate of #1)") == 0.9
    assert confidence(title="Flicker (possible duplicate of #1)") == 0
    assert confidence(body="It flickers.\n\nEDIT: dup of #1") == 0.9
    assert confidence(body="It flickers.\n\nEDIT: same as #1") == 0


def test_the_last_change_replaces_an_unknown_closing_time() -> None:
    early: Thread = thread(said("bob", "Same as #1.", DAY), closed_at=None)
    assert decide(early, kind_of).outcome is VerdictOutcome.DUPLICATE
    later = replace(early, issue=replace(early.issue, updated_at="2020-02-01T00:00:00Z"))
    assert decide(later, kind_of).outcome is not VerdictOutcome.DUPLICATE
    assert later.issue.updated_at > CLOSED_AT


@pytest.mark.parametrize(
    ("parts", "fields", "reason", "expected"),
    [
        ((), {"state": "open", "closed_at": None}, "open", 1.0),
        ((said("mia", "Thanks."),), {}, "no_claim", 0.99),
        ((said("bob", "dup of #1", 30), said("mia", "Not a dup of #1.")), {}, "disputed", 0.9),
        ((said("bob", "dup of #1", 30), said("mia", "Fixed in 2.0.")), {}, "fixed", 0.9),
        ((said("bob", "This is a duplicate of #1?", 900),), {}, "claim_not_acted_on", 0.5),
    ],
)
def test_confidence_of_other_verdicts(
    parts: tuple[Any, ...], fields: dict[str, Any], reason: str, expected: float
) -> None:
    verdict = decide(thread(*parts, **fields), kind_of)
    assert (verdict.reason, verdict.confidence) == (reason, expected)
