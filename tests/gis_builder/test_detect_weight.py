"""Confidences and time limits, computed by hand: stance x kind of claim x role."""

from dataclasses import replace

from tests.support.shorthand import parametrize, table, values

from .detect_threads import DUPLICATE, decided, event, ref, said, talk, talks

MINUTE, DAY, MOMENT = 1 / 60, 24.0, 2 / 3600  # hours
WEEK, YEAR = 7 * DAY, 365 * DAY
REMARK = "The old clock was taken out last week and nobody will miss"  # twelve words


def confidence(*parts, **fields):
    """The confidence of a duplicate, or 0 for another verdict."""
    verdict = decided(*parts, **fields)
    return verdict.confidence if verdict.outcome is DUPLICATE else 0.0


@parametrize(
    "expected, lines",
    talks(f"""
        Role
            0.98 mia: Dup of #1.
            0.93 max: Dup of #1.
            0.93 bot: Closing as a duplicate of #1
            0.9 ann: Dup of #1.
            0.86 bob: Dup of #1.
        Stance: 0.88 x 0.98, 0.72 x 0.98
            0.862 mia: I think this is a dup of #1.
            0.706 mia: Is this a dup of #1?
        Kind of claim: 0.96 x 0.98, 0.92 x 0.98, 0.85 x 0.98, 0.88 x 0.92 x 0.86
            0.941 mia: Closing in favour of #1.
            0.902 mia: Same as #1.
            0.833 mia: Tracked in #1.
            0.696 bob 1: I think this is the same as #1.
        Inferred, late or disputed afterwards: 0.9 x 0.98, 0.8 x 0.93, 0.85 x 0.98
            0.882 bob 3: See #1 | mia: A duplicate.
            0.744 max {20 * DAY}: dup of #1
            0.833 mia: dup of #1 | bob -1: This is not a dup of #1
        A confirmed claim has the confidence of the better speaker
            0.98 bob 2: dup of #1 | mia: Yes, closing.
            0.98 mia 2: dup of #1 | ann 1: Yes.
        An assertion holds a week, and as the last word a year, with 0.8 x 0.86
            0.86 bob {WEEK}: dup of #1
            0.688 bob {WEEK + MOMENT}: dup of #1
            0.688 bob {YEAR}: dup of #1
            0 bob {YEAR + MOMENT}: dup of #1
            0 bob {8 * DAY}: dup of #1 | max {7.5 * DAY}: Hm.
            0.688 bob {8 * DAY}: dup of #1 | max {7.5 * DAY}: > only a quotation
        After the closing only the closer may guess
            0 max -0.1: I think this is a dup of #1.
            0.862 mia -0.1: I think this is a dup of #1.
        The closer's other remark outweighs claims of others, and the closer's own likeness
            0.86 bob 5: dup of #1 | mia: {REMARK}
            0 bob 5: dup of #1 | mia: {REMARK} it.
            0.86 bob 5: dup of #1 | mia: {REMARK} it, see #1.
            0.902 mia 5: same as #1 | mia: Nobody will miss it.
            0 mia 5: same as #1 | mia: Nobody will ever miss it.
    """),
)
def test_confidence(expected, lines):
    assert confidence(*talk(*lines)) == float(expected)


def test_a_claim_at_the_limit_of_strong_is_kept_beside_a_later_one():
    first, doubt = (
        said("mia", "Closing in favour of #1.", 1),
        said("bob", "This is not a dup of #1.", -1),
    )
    assert confidence(first, doubt) == 0.8  # 0.85 x 0.96 x 0.98
    both = decided(first, said("mia", "Also in favour of #2.", 0.5), doubt)
    assert both.targets == (ref(1), ref(2))


def test_the_last_strong_claim_decides():
    lines = [
        "mia 5: Duplicate of #1",
        "mia 0.5: Closing in favour of #2.",
        "bob -1: This is not a dup of #2.",
    ]
    verdict = decided(*talk(*lines))
    assert (verdict.targets, verdict.confidence) == ((ref(2),), 0.8)


@parametrize("earlier", [[], ["eve"], ["bob", "bob"]])
def test_the_closer_is_the_actor_of_the_last_closing(earlier):
    guess = said("eve", "I think this is a dup of #1.", -0.1)
    for closer, expected in (("eve", 0.862), ("bob", 0.0)):
        closings = [
            replace(event("closed", 10 - place), actor=who)
            for place, who in enumerate([*earlier, closer])
        ]
        assert confidence(guess, *closings, closed_by=None) == expected


@parametrize(
    "who, words, max_hours",
    [
        *values(
            """
                bob | Is this a dup of #1? | DAY
                bob | In favour of #1. | DAY
                bob | Perhaps superseded by #1. | DAY
                bob | Is it superseded by #1? | DAY
                bob | Is this the same as #1? | 0.0
                bob | Same as #1. | DAY
                bob | Perhaps the same as #1. | 2.0
                bob | Tracked in #1. | 2.0
                mia | Tracked in #1. | 1.0
            """,
            DAY=DAY,
        ),
        ("bob", "I think this is a dup of #1.", 3 * DAY),
        ("mia", "Is this a dup of #1?", 10 * MINUTE),
        ("mia", "Same as #1.", 3 * DAY),
        ("mia", "I think this is a dup of #1.", 3 * DAY),
    ],
)
def test_maximum_time_before_the_closing(who, words, max_hours):
    assert confidence(said(who, words, max_hours)) > 0
    assert confidence(said(who, words, max_hours + MOMENT)) == 0


@parametrize(
    "who, max_hours",
    [("mia", 7 * DAY), ("max", DAY), ("ann", DAY), ("bob", 10 * MINUTE)],
)
def test_maximum_time_after_the_closing(who, max_hours):
    same = "In favour of #1."
    assert confidence(said(who, same, -max_hours)) > 0
    assert confidence(said(who, same, -max_hours - MOMENT)) == 0


def test_a_bot_closes_at_once_or_for_another_reason():
    for name in ("bors", "release-bot", "some_robot"):
        assert confidence(said("bob", "dup of #1", 0.9), closed_by=name) > 0
        assert confidence(said("bob", "dup of #1", 1.1), closed_by=name) == 0
    assert confidence(said("bob", "dup of #1", 1.1), closed_by="robotics-fan") > 0
    assert confidence(said("max", "Duplicate of #1", DAY), closed_by="bors") == 0.93
    assert (
        confidence(said("max", "Probably a duplicate of #1", DAY), closed_by="bors")
        == 0
    )


def test_an_authors_note_counts_if_it_asserts_a_duplicate():
    assert confidence(title="Flicker (duplicate of #1)") == 0.9
    assert confidence(title="Flicker (possible duplicate of #1)") == 0
    assert confidence(body="It flickers.\n\nEDIT: dup of #1") == 0.9
    assert confidence(body="It flickers.\n\nEDIT: same as #1") == 0


def test_the_last_change_replaces_an_unknown_closing_time():
    claim = said("bob", "Same as #1.", DAY)
    assert confidence(claim, closed_at=None) > 0
    assert confidence(claim, closed_at=None, updated_at="2020-02-01T00:00:00Z") == 0


@table("""
    lines, fields, reason, expected
    [] | {'state': 'open', 'closed_at': None} | open | 1.0
    ['mia: Thanks.'] | {} | no_claim | 0.99
    ['bob 30: dup of #1', 'mia: Not a dup of #1.'] | {} | disputed | 0.9
    ['bob 30: dup of #1', 'mia: Fixed in 2.0.'] | {} | fixed | 0.9
    ['bob 900: This is a duplicate of #1?'] | {} | claim_not_acted_on | 0.5
""")
def test_confidence_of_other_verdicts(lines, fields, reason, expected):
    verdict = decided(*talk(*lines), **fields)
    assert (verdict.reason, verdict.confidence) == (reason, expected)
