"""The claims and remarks in single texts."""

from textwrap import dedent

from hypothesis import given
from hypothesis import strategies as st

from gis_builder.detection.claim_reader import Stance
from gis_builder.detection.reading import read, read_body
from tests.support.shorthand import parametrize, table, values

from .detect_threads import ref

HERE = ref(100)
_WORDS = "dup of #1 not closing as this is same issue ? . , #2 yes in favor that"


def only(text):
    (claim,) = read(text, HERE).claims
    return claim


def rows(table):
    """Pairs of a heading and an indented text below it."""
    pairs, heading = [], ""
    for line in dedent(table).strip().splitlines():
        if line.startswith(" "):
            pairs.append((heading, line.strip().replace("\\n", "\n")))
        else:
            heading = line
    return pairs


def summary(text):
    """The kinds and targets of the claims about this issue, or `others` for claims about other issues."""
    claims = read(text, HERE).claims
    own = [
        claim
        for claim in claims
        if not claim.about_others and claim.stance is not Stance.DENIED
    ]
    parts = (
        f"{c.kind} {','.join(f'#{target.number}' for target in c.targets)}" for c in own
    )
    return "; ".join(dict.fromkeys(parts)) or ("others" if claims else "nothing")


@parametrize(
    "expected, text",
    rows(r"""
        duplicate #1
            this is a dup for #1
            Duplicate for issue #1.
            duplcate of #1
            Closing as a dupilcate of #1, thanks!
            Duplicate of https://github.com/o/n/issues/1
            /duplicate of #1
            Please go there. /dup #1
            /triage duplicate\nDuplicate of #1
            Main bug is #1, which is on a milestone. Closing as dup.
            Looks bad, see the log. It's a dup, see #1.
            I've found it, duplicate of #1
            Dup of #1, see https://github.com/o/n/issues/7#issuecomment-5
            This is a duplicate otherwise of #1
            Ah, I reposted my own issue: #1
            Has nothing to do with #2, dupe of #1.
            Not #2, dup of #1
            Dup of #1 (cc #2)
            Dup of #1, see also #2
            Dup of #1. Fixed by #2
            Dup of #1 which is itself a dup of #2
            See #1. Same thing here. Closing as duplicate.
        duplicate #1,#2
            Dup of #1 and #2
            Either #1 or #2, closing as a dupe of either #1 or #2
        duplicate #1,#2,#3
            Dup of #1, #2, and also #3.
        favour #1
            Superseeded by #1
            This is subsumed by the more general #1
            Merging this into #1
            Let's continue in #1.
            Given #1, I'm closing in favour of that.
            Moved to a new report: #1
            Redundant with #1.
            Closed as _won't fix_ in favor of #1
            Updated #1 with this info, will close
            I've added your log to #1. Closing.
            Closing, since #1 has more logs.
            #1 is the wider one, so I close this, since that one has more logs.
            Please direct all further discussion there: #1
            Closing in favour of these:\n- the wide one #1
        same #1
            I believe this is #1.
            Ah, a particularly odd case of #1
            This is the same underlying problem as #1
            the same issue as [#1], just a different way to trigger it
            See #1, same problem.
            This is the same issue as [#1](https://github.com/o/n/issues/1).
            The same issue as [this one](https://github.com/o/n/issues/1), just in another menu.
        tracked #1
            #1 supersedes this.
            well covered elsewhere, e.g. #1
            #1 supersedes.
            #1 will cover this
            It is a known bug (#1).
            That's filed as #1.
            This is [a known issue](https://github.com/o/n/issues/1).
            Tracked in [the other ticket](https://github.com/o/n/issues/1).
            Existing ticket: #1
            This falls under #1
            This is really a part of #1, closing.
        same #1; duplicate #1
            This is #1 again, closing as a dupe.
        nothing
            This generates duplicate symbols, see #1
            We should disallow duplicate nils. See also my comment in #1.
            I couldn't find a duplicate of this, only #1
            The fix was the same as for #1
            I'm in favour of this. See #1.
            Related to #1
            Going by that report moving to the new menus will need a patch: #1
            Shadows are dropped as part of #1, so there is little to do.
            Colour themes as tracked in #1 won't help.
            similar to #1 but not on Windows
            for the same reason I like #1
            Duplicate of #
            Updated #1 with this info.
            I've added your log to #1. Fixed, closing.
        others
            #1 is a dup of #2
            #1 was closed as a duplicate of #2
            Closing #1 as a dup of #2
            #1 is a duplicate of this
            closed #1 in favour of this
            #1 duplicates this
            Same cause reported in another thread, closed that one as duplicate of this.
    """),
)
def test_claims(expected, text):
    assert summary(text) == expected


@parametrize(
    "stance, text",
    rows("""
        asserted
            dup of #1
            I'm pretty sure this is a dup of #1
            Closing as dup of #1, ok?
            Not a regression, dup of #1
        hedged
            Probably a dup of #1
            I think this is a duplicate of #1
            This may or may not be a dup of #1
            Possibly a dup of #1. Closing.
            I propose to close this as a duplicate of #1
        open
            Nominating for closing as a dupe of #1.
            Not sure if this is a dup of #1
            Maybe dup of #1, maybe our own bug.
            Possibly a dup of #1. No way to tell.
        asked
            Dup of #1?
            Isn't this a duplicate of #1 ?
        denied
            Not a dup of #1
            This isn't really a duplicate of #1
            I don't think that it's a dupe of #1
            It's only close to being a duplicate of #1
    """),
)
def test_stance(stance, text):
    assert only(text).stance == stance


@table("""
    texts, points_back
    ['Dupe of ^---', 'dup of that one', 'a dupe of the above', 'closing in favor of that'] | True
    ['Looks like a dupe; thanks!', 'Yes, this is a duplicate.', 'Dup.', 'Sorry for the dup!'] | False
""")
def test_claims_without_a_number(texts, points_back):
    for text in texts:
        assert (only(text).targets, only(text).points_back) == ((), points_back)


@parametrize(
    "field, positive, negative",
    [
        *values(
            """
                agrees | ['Yes, closing.'] | []
                gives_other_reason | ["I don't think this is a bug.", 'Works for me'] | ["It isn't fixed yet."]
                thanks | ['Thanks, I missed that.'] | []
                says_different | ["That's a different bug."] | ['I use a different machine.']
                reopens | ['Reopening, it is back.'] | ['Please reopen if it comes back.']
            """,
        ),
        (
            "disagrees",
            [
                "No, that was our prune bug.",
                "I don't believe so.",
                "Hm, actually, no.",
                "I take that back.",
            ],
            ["Dup of #1, no doubt."],
        ),
    ],
)
def test_remarks(field, positive, negative):
    assert all(getattr(read(text, HERE), field) for text in positive)
    assert not any(getattr(read(text, HERE), field) for text in negative)


def test_a_correction():
    assert only("I meant #2").corrects


def test_a_body_only_guesses():
    assert [
        c.stance for c in read_body("This is a duplicate of #1, sorry.", HERE).claims
    ] == [Stance.HEDGED]
    assert read_body("In #1 they wrote: closing as duplicate of #2", HERE).claims == ()
    assert read_body("Same as #1", HERE).claims == ()
    assert read_body("Same as #1", HERE).mentions == (ref(1),)


def test_quotes_are_shortened():
    assert only("Well,\n  dup of #1. Bye.").said == "Well, dup of #1"
    assert len(only("dup of #1 " + "and so on " * 60).said) == 200


@given(st.lists(st.sampled_from(_WORDS.split())))
def test_any_words_are_read(words):
    text = " ".join(words)
    reading = read(text, HERE)
    assert all(set(claim.targets) <= set(reading.mentions) for claim in reading.claims)
