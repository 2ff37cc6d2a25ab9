from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.detection.reader import Claim, Stance
from gis_builder.detection.reading import read, read_body
from gis_builder.detection.rules import ClaimKind

from .detect_threads import REPO, ref

HERE = ref(100)
_WORDS = "dup of #1 not closing as this is same issue ? . , #2 yes in favor that"


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
        "this is a dup for #1",
        "Duplicate for issue #1.",
        "duplcate of #1",
        "Closing as a dupilcate of #1, thanks!",
        f"Duplicate of https://github.com/{REPO}/issues/1",
        "/duplicate of #1",
        "Please go there. /dup #1",
        "/triage duplicate\nDuplicate of #1",
        "This is #1 again, closing as a dupe.",
        "See #1. Same thing here. Closing as duplicate.",
        "Main bug is #1, which is on a milestone. Closing as dup.",
        "Looks bad, see the log. It's a dup, see #1.",
        "I've found it, duplicate of #1",
        f"Dup of #1, see https://github.com/{REPO}/issues/7#issuecomment-5",
        "This is a duplicate otherwise of #1",
        "Ah, I reposted my own issue: #1",
        "Has nothing to do with #2, dupe of #1.",
        "Duplikat von #1",
        "Doublon de #1",
        "Duplicado de #1",
        "Duplicato di #1",
        "дубликат #1",
        "#1 と重複しています",
        "#1 중복",
    ],
)
def test_duplicate_claims(text: str) -> None:
    assert {tuple(numbers(claim)) for claim in claims(text) if not claim.about_others} == {(1,)}
    assert all(claim.stance is not Stance.DENIED for claim in claims(text))
    assert ClaimKind.DUPLICATE in {claim.kind for claim in claims(text)}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Superseeded by #1", ClaimKind.FAVOUR),
        ("#1 supersedes this.", ClaimKind.TRACKED),
        ("This is subsumed by the more general #1", ClaimKind.FAVOUR),
        ("Merging this into #1", ClaimKind.FAVOUR),
        ("Let's continue in #1.", ClaimKind.FAVOUR),
        ("Given #1, I'm closing in favour of that.", ClaimKind.FAVOUR),
        ("Moved to a new report: #1", ClaimKind.FAVOUR),
        ("Redundant with #1.", ClaimKind.FAVOUR),
        ("Closing, since #1 has more logs.", ClaimKind.FAVOUR),
        ("#1 is the wider one, so I close this, since that one has more logs.", ClaimKind.FAVOUR),
        ("Please direct all further discussion there: #1", ClaimKind.FAVOUR),
        ("Closing in favour of these:\n- the wide one #1", ClaimKind.FAVOUR),
        ("I believe this is #1.", ClaimKind.SAME),
        ("Ah, a particularly odd case of #1", ClaimKind.SAME),
        ("This is the same underlying problem as #1", ClaimKind.SAME),
        ("well covered elsewhere, e.g. #1", ClaimKind.TRACKED),
        ("#1 supersedes.", ClaimKind.TRACKED),
        ("#1 will cover this", ClaimKind.TRACKED),
        ("It is a known bug (#1).", ClaimKind.TRACKED),
        ("That's filed as #1.", ClaimKind.TRACKED),
        ("Existing ticket: #1", ClaimKind.TRACKED),
        ("This falls under #1", ClaimKind.TRACKED),
        ("This is really a part of #1, closing.", ClaimKind.TRACKED),
    ],
)
def test_other_kinds_of_claims(text: str, kind: ClaimKind) -> None:
    assert [(claim.kind, numbers(claim)) for claim in claims(text)] == [(kind, [1])]


@pytest.mark.parametrize(
    "text",
    [
        "This generates duplicate symbols, see #1",
        "We should disallow duplicate nils. See also my comment in #1.",
        "I couldn't find a duplicate of this, only #1",
        "The fix was the same as for #1",
        "I'm in favour of this. See #1.",
        "Related to #1",
        "Going by that report moving to the new menus will need a patch: #1",
        "Shadows are dropped as part of #1, so there is little to do.",
        "Colour themes as tracked in #1 won't help.",
        "similar to #1 but not on Windows",
        "for the same reason I like #1",
        "Duplicate of #",
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
def test_stance(text: str, stance: Stance) -> None:
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
def test_targets(text: str, targets: list[int]) -> None:
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


def test_a_chain_of_claims() -> None:
    own, other = claims("Dup of #1 which is itself a dup of #2")
    assert (numbers(own), own.about_others) == ([1], False)
    assert other.about_others


@pytest.mark.parametrize(
    ("texts", "points_back"),
    [
        (["Dupe of ^---", "dup of that one", "a dupe of the above", "closing in favor of that"], True),
        (["Looks like a dupe; thanks!", "Yes, this is a duplicate.", "Dup.", "Sorry for the dup!"], False),
    ],
)
def test_claims_without_a_number(texts: list[str], points_back: bool) -> None:
    for text in texts:
        assert (only(text).targets, only(text).points_back) == ((), points_back)


@pytest.mark.parametrize(
    ("field", "positive", "negative"),
    [
        ("agrees", ["Yes, closing."], []),
        (
            "disagrees",
            ["No, that was our prune bug.", "I don't believe so.", "Hm, actually, no.", "I take that back."],
            ["Dup of #1, no doubt."],
        ),
        (
            "gives_other_reason",
            ["I don't think this is a bug.", "Works for me on 2.0"],
            ["It isn't fixed yet."],
        ),
        ("thanks", ["Thanks, I missed that."], []),
        ("says_different", ["That's a different bug."], ["I use a different machine."]),
        ("reopens", ["Reopening, it is back."], ["Please reopen if it comes back."]),
    ],
)
def test_remarks(field: str, positive: list[str], negative: list[str]) -> None:
    assert all(getattr(read(text, HERE), field) for text in positive)
    assert not any(getattr(read(text, HERE), field) for text in negative)


def test_a_correction() -> None:
    assert only("I meant #2").corrects


def test_a_body_only_guesses() -> None:
    assert [c.stance for c in read_body("This is a duplicate of #1, sorry.", HERE).claims] == [Stance.HEDGED]
    assert read_body("In #1 they wrote: closing as duplicate of #2", HERE).claims == ()
    assert read_body("Same as #1", HERE).claims == ()
    assert read_body("Same as #1", HERE).mentions == (ref(1),)


def test_quotes_are_shortened() -> None:
    assert only("Well,\n  dup of #1. Bye.").said == "Well, dup of #1"
    assert len(only("dup of #1 " + "and so on " * 60).said) == 200


@given(st.lists(st.sampled_from(_WORDS.split())))
def test_any_words_are_read(words: list[str]) -> None:
    text = " ".join(words)
    reading = read(text, HERE)
    assert all(set(claim.targets) <= set(reading.mentions) for claim in reading.claims)
