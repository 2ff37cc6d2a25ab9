from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.detection.reader import Claim, Stance
from gis_builder.detection.reading import read, read_body
from gis_builder.detection.rules import ClaimKind

from .detect_threads import REPO, ref

HERE = ref(100)
_JUMBLE = [
    "dup",
    "of",
    "#1",
    "not",
    "closing",
    "as",
    "this",
    "is",
    "same",
    "issue",
    "?",
    ".",
    ",",
    "#2",
    "yes",
    "in",
    "favor",
    "that",
]


def claims(text: str) -> list[Claim]:
    return list(read(text, HERE).claims)


def only(text: str) -> Claim:
    (claim,) = claims(text)
    return claim


def numbers(claim: Claim) -> list[int]:
    return [target.number for target in claim.targets]


@pytest.mark.parametrize(
    "text",
    [
        "Duplicate of #1",
        "dup #1",
        "Dupe: #1.",
        "this is a dup for #1",
        "Duplicate for issue #1.",
        "Dup (#1)",
        "duplcate of #1",
        "Closing as a dupilcate of #1, thanks!",
        f"Duplicate of https://github.com/{REPO}/issues/1",
        "/duplicate of #1",
        "/dup  #1",
        "Please go there. /dup #1",
        "/triage duplicate\nDuplicate of #1",
        "This duplicates #1.",
        "That's #1, of which this is a duplicate.",
        "This is #1 again, closing as a dupe.",
        "See #1. Same thing here. Closing as duplicate.",
        "Main bug is #1, which is on a milestone. Closing as dup.",
        "Looks bad, see the log. It's a dup, see #1.",
        "Duplicated by #1, closing",
        "Dup of the old long standing bug #1",
        "dup of bug 1",
        "I've found it, duplicate of #1",
        f"Dup of #1, see https://github.com/{REPO}/issues/7#issuecomment-5",
        "Dupe of issues like:\n- #1",
        "#1 is a dup of this but has more details, closing this one.",
        "Known before, so I take this for a duplication of #1.",
        "This is a duplicate otherwise of #1",
        "Ah, I reposted my own issue: #1",
        "Has nothing to do with #2, dupe of #1.",
        "Duplikat von #1",
        "Doublon de #1",
        "Duplicado de #1",
        "Duplicato di #1",
        "дубликат #1",
        "与 #1 重复",
        "#1 と重複しています",
        "#1 중복",
    ],
)
def test_a_duplicate_is_claimed_of_the_issue_named(text: str) -> None:
    assert {tuple(numbers(claim)) for claim in claims(text) if not claim.about_others} == {(1,)}
    assert all(claim.stance is not Stance.DENIED for claim in claims(text))
    assert ClaimKind.DUPLICATE in {claim.kind for claim in claims(text)}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Closing in favor of #1.", ClaimKind.FAVOUR),
        ("Superseeded by #1", ClaimKind.FAVOUR),
        ("#1 supersedes this.", ClaimKind.TRACKED),
        ("This is subsumed by the more general #1", ClaimKind.FAVOUR),
        ("Merging this into #1", ClaimKind.FAVOUR),
        ("Let's continue in #1.", ClaimKind.FAVOUR),
        ("Given #1, I'm closing in favour of that.", ClaimKind.FAVOUR),
        ("Rolling this into #1.", ClaimKind.FAVOUR),
        ("Moved to a new report: #1", ClaimKind.FAVOUR),
        ("Closing for #1", ClaimKind.FAVOUR),
        ("Redundant with #1.", ClaimKind.FAVOUR),
        ("Closing, since #1 has more logs.", ClaimKind.FAVOUR),
        ("#1 is the wider one, so I close this, since that one has more logs.", ClaimKind.FAVOUR),
        ("Please direct all further discussion there: #1", ClaimKind.FAVOUR),
        ("Closing in favour of these:\n- the wide one #1", ClaimKind.FAVOUR),
        ("Same as #1.", ClaimKind.SAME),
        ("I believe this is #1.", ClaimKind.SAME),
        ("This seems to be #1.", ClaimKind.SAME),
        ("Ah, a particularly odd case of #1", ClaimKind.SAME),
        ("This is the same underlying problem as #1", ClaimKind.SAME),
        ("#1 is exactly the same bug", ClaimKind.SAME),
        ("Whoops, this is #1.", ClaimKind.SAME),
        ("#1 と同じ問題です", ClaimKind.SAME),
        ("Already tracked in #1", ClaimKind.TRACKED),
        ("There's #1 already open for this.", ClaimKind.TRACKED),
        ("This has already been reported as #1", ClaimKind.TRACKED),
        ("covered by #1", ClaimKind.TRACKED),
        ("well covered elsewhere, e.g. #1", ClaimKind.TRACKED),
        ("#1 supersedes.", ClaimKind.TRACKED),
        ("#1 will cover this", ClaimKind.TRACKED),
        ("I think #1 covers the same problem.", ClaimKind.TRACKED),
        ("It is a known bug (#1).", ClaimKind.TRACKED),
        ("That's filed as #1.", ClaimKind.TRACKED),
        ("Existing ticket: #1", ClaimKind.TRACKED),
        ("This falls under #1", ClaimKind.TRACKED),
        ("This is really a part of #1, closing.", ClaimKind.TRACKED),
    ],
)
def test_the_other_ways_of_saying_it(text: str, kind: ClaimKind) -> None:
    assert [(claim.kind, numbers(claim)) for claim in claims(text)] == [(kind, [1])]


@pytest.mark.parametrize(
    "text",
    [
        "This generates duplicate symbols, see #1",
        "We have a lot of duplicate code since #1.",
        "We should disallow duplicate nils. See also my comment in #1.",
        "I couldn't find a duplicate of this, only #1",
        "The fix was the same as for #1",
        "I'm in favour of this. See #1.",
        "Fixed by #1",
        "Related to #1",
        "Going by that report moving to the new menus will need a patch: #1",
        "Shadows are dropped as part of #1, so there is little to do.",
        "Colour themes as tracked in #1 won't help.",
        "similar to #1 but not on Windows",
        "This is blocked on #1",
        "for the same reason I like #1",
        "`dup of #1`",
        "> dup of #1",
        "Duplicate of #",
        "possible duplicates: #1",
    ],
)
def test_no_claim_is_made(text: str) -> None:
    assert [claim for claim in claims(text) if not claim.about_others] == []


@pytest.mark.parametrize(
    ("text", "stance"),
    [
        ("dup of #1", Stance.ASSERTED),
        ("I'm pretty sure this is a dup of #1", Stance.ASSERTED),
        ("Closing as dup of #1, ok?", Stance.ASSERTED),
        ("Probably a dup of #1", Stance.HEDGED),
        ("I think this is a duplicate of #1", Stance.HEDGED),
        ("This may or may not be a dup of #1", Stance.HEDGED),
        ("Not sure if this is a dup of #1", Stance.OPEN),
        ("Possibly a dup of #1. Closing.", Stance.HEDGED),
        ("Nominating for closing as a dupe of #1.", Stance.HEDGED),
        ("I propose to close this as a duplicate of #1", Stance.HEDGED),
        ("Maybe dup of #1, maybe our own bug.", Stance.OPEN),
        ("Possibly a dup of #1. No way to tell.", Stance.OPEN),
        ("Dup of #1?", Stance.ASKED),
        ("Isn't this a duplicate of #1 ?", Stance.ASKED),
        ("Not a dup of #1", Stance.DENIED),
        ("This isn't really a duplicate of #1", Stance.DENIED),
        ("I don't think that it's a dupe of #1", Stance.DENIED),
        ("It's only close to being a duplicate of #1", Stance.DENIED),
        ("Not a regression, dup of #1", Stance.ASSERTED),
    ],
)
def test_how_firmly_it_is_put(text: str, stance: Stance) -> None:
    assert only(text).stance is stance


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("Dup of #1 and #2", [1, 2]),
        ("Dup of #1, #2, and also #3.", [1, 2, 3]),
        ("Dup of #1 (cc #2)", [1]),
        ("Dup of #1, see also #2", [1]),
        ("Either #1 or #2, closing as a dupe of either #1 or #2", [1, 2]),
        ("Dup of #1. Fixed by #2", [1]),
    ],
)
def test_which_of_several_are_meant(text: str, targets: list[int]) -> None:
    assert [target for claim in claims(text) for target in numbers(claim)] == targets


@pytest.mark.parametrize(
    "text",
    [
        "#1 is a dup of #2",
        "#1 was closed as a duplicate of #2",
        "Closing #1 as a dup of #2",
        "#1 is a duplicate of this",
        "closed #1 in favour of this",
        "#1 duplicates this",
        "Same cause reported in another thread, closed that one as duplicate of this.",
    ],
)
def test_claims_about_other_issues(text: str) -> None:
    assert claims(text)
    assert all(claim.about_others for claim in claims(text))


def test_a_chain_names_its_own_target_first() -> None:
    own, other = claims("Dup of #1 which is itself a dup of #2")
    assert (numbers(own), own.about_others) == ([1], False)
    assert other.about_others


@pytest.mark.parametrize(
    "text", ["Dupe of ^---", "dup of that one", "a dupe of the above", "closing in favor of that"]
)
def test_pointing_back(text: str) -> None:
    assert only(text).points_back
    assert only(text).targets == ()


@pytest.mark.parametrize(
    "text", ["Looks like a dupe; thanks!", "Yes, this is a duplicate.", "Dup.", "Sorry for the dup!"]
)
def test_a_claim_without_a_number(text: str) -> None:
    assert only(text).targets == ()
    assert not only(text).points_back


def test_the_remarks_of_a_text() -> None:
    assert read("Yes, closing.", HERE).agrees
    assert read("No, that was our prune bug.", HERE).disagrees
    assert read("I don't believe so.", HERE).disagrees
    assert read("Hm, actually, no.", HERE).disagrees
    assert read("I take that back.", HERE).disagrees
    assert not read("It isn't fixed yet.", HERE).gives_other_reason
    assert read("I don't think this is a bug.", HERE).gives_other_reason
    assert read("Thanks, I missed that.", HERE).thanks
    assert read("That's a different bug.", HERE).says_different
    assert not read("I use a different machine.", HERE).says_different
    assert read("Works for me on 2.0", HERE).gives_other_reason
    assert read("Reopening, it is back.", HERE).reopens
    assert not read("Please reopen if it comes back.", HERE).reopens
    assert read("I meant #2", HERE).claims[0].corrects


def test_a_body_only_guesses() -> None:
    assert [c.stance for c in read_body("This is a duplicate of #1, sorry.", HERE).claims] == [Stance.HEDGED]
    assert read_body("In #1 they wrote: closing as duplicate of #2", HERE).claims == ()
    assert read_body("Same as #1", HERE).claims == ()
    assert read_body("Same as #1", HERE).mentions == (ref(1),)


def test_what_was_said_is_quoted_shortly() -> None:
    assert only("Well,\n  dup of #1. Bye.").said == "Well, dup of #1"
    assert len(only("dup of #1 " + "and so on " * 60).said) == 200


@given(st.lists(st.sampled_from(_JUMBLE)))
def test_any_jumble_of_words_is_read(words: list[str]) -> None:
    text = " ".join(words)
    reading = read(text, HERE)
    assert all(set(claim.targets) <= set(reading.mentions) for claim in reading.claims)
