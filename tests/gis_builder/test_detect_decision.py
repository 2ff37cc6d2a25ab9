"""Marks, labels and notes beside what people say, and marks that importers copied into comments."""

import json

from tests.support.shorthand import each_line, parametrize

from .detect_threads import DUPLICATE, check, decided, event, ref, said, talks

YEARS = 3 * 365 * 24.0


@parametrize(
    "expected, lines",
    talks(rf"""
        A mark beats words, and the last mark stands
            #1 !marked 3 #1 | !closed 0
            #1 !marked 3 #1 | bob 2: dup of #2 | !closed 0
            #1 !marked 4 #2 | !marked 3 #1 | !closed 0
            #1 !closed 0 #1
        Removing a mark or reopening revokes earlier claims, unless it was an accident
            unmarked mia 3: Duplicate of #1 | !marked 3 #1 | !unmarked 2 #1 | !closed 0
            unmarked mia 2: Duplicate of #1 | !unmarked 2 #1 | !closed 0
            reopened mia 50: Duplicate of #1 | !marked 50 #1 | !closed 50 | !reopened 20 | !closed 0
            #1 mia 50: Duplicate of #1 | !closed 50 | !reopened 20 | !closed 0 | mia: Dup of #1 after all.
            #1 mia 0.2: Duplicate of #1 | !closed 0.2 | !reopened 0.1 | !closed 0
        A status that another tracker recorded counts at any time, with the only named issue
            #21 zoe {YEARS}: See #21.\n\n_Status changed to **Duplicate**._
            #21 zoe {YEARS}: See #21.\n\n- Changed state: **Duplicate**
            #21 zoe {YEARS}: See #21.\n\n- **status**: open --> closed-duplicate
            #21 zoe {YEARS}: See #21.\n\n* **resolution** set to *duplicate*
            #21 zoe {YEARS}: See #21.\n\nUpdated **resolution** to **duplicate**
            no_target zoe {YEARS}: _Status changed to **Duplicate**._
        A target that it recorded
            #21 zoe {YEARS}: Comment 6:\n\n_Status changed to **Duplicate**._\n\n_Merged into issue #21._
            #21 zoe {YEARS}: *** This bug has been marked as a duplicate of #21 ***
            #21 zoe {YEARS}: Done.\n\n\*\*\* This issue has been marked as a duplicate of issue #21. \*\*\*
            #21 zoe {YEARS}: *** This bug is a duplicate of https://github.com/o/n/issues/21 ***
        A later status, a mark or a reopening replaces it
            no zoe {YEARS}: _Merged into issue #21._ | zoe 9: _Status changed to **Fixed**._
            no zoe {YEARS}: _Merged into issue #21._ | zoe 9: Fixed.\n\n_Merged into issue #-21._
            #7 zoe {YEARS}: _Merged into issue #21._ | !marked 1 #7
            no zoe {YEARS}: _Merged into issue #21._ | !reopened 40
        Texts that are no record
            no zoe {YEARS}: Merged into #21.
            no zoe {YEARS}: > _Merged into issue #21._
            no zoe {YEARS}: ```\n*** This bug has been marked as a duplicate of #21 ***\n```
            no zoe {YEARS}: *** This bug has been marked as a duplicate of bug 21 in the old tracker
            no zoe {YEARS}: The status of the duplicate entry in the table is wrong.
    """),
)
def test_marks(expected, lines):
    check(expected, lines)


LABELS = [{"labels": (label,)} for label in ("duplicate", "kind/duplicate")]
OTHER_LABELS = """
    Status: Duplicate | dupe | closed-duplicate | invalid/duplicate | Duplikat | duplicado | 重复 | 중복
"""
LABELS_IN_DOUBT = """
    not a duplicate | no-dup | possible-duplicate | Potential Duplicate | likely_duplicate | duplicate?
    | duplicate-candidate | needs-duplicate-check | mögliches Duplikat
    | non-duplicate | has_duplicates | deduplication | kein Duplikat | posible duplicado | 非重复 | 중복 아님
"""


@each_line(r"""
    expected, comment, fields
    # of an unknown closer
    #1 | mia 0.001: Closing in favour of #1. | {"closed_by": null}
    #1 | | {"title": "(dup of #1) The window flickers"}
    #1 | | {"title": "[duplicate] It flickers", "body": "Ah, that's #1."}
    no | | {"title": "dup(2) is called twice", "body": "see #1"}
    #1 | | {"body": "It flickers.\u000a\u000aEDIT: duplicate of #1"}
    no | | {"title": "Duplicate tabs", "body": "Is this a duplicate? I searched."}
    claim_not_acted_on | | {"body": "This might be a duplicate of #1."}
    #1 | mia: Yes, it is. Closing. | {"body": "This might be a duplicate of #1."}
    no | mia: #1 | {}
    no | mia: #1 | {"labels": ["deduplication"]}
""")
def test_labels_and_notes(expected, comment, fields):
    check(expected, [comment] if comment else [], **json.loads(fields))


@parametrize("fields", [{"state_reason": "duplicate"}, *LABELS])
def test_a_closing_label_needs_a_named_original(fields):
    for words, expected in (
        ("#1", "#1"),
        ("Known, see #1.", "#1"),
        ("Known.", "no_target"),
    ):
        check(expected, [f"mia: {words}"], **fields)


@parametrize("labels, expected", [(OTHER_LABELS, "#1"), (LABELS_IN_DOUBT, "no_claim")])
def test_only_a_label_without_a_doubt_calls_it_a_duplicate(labels, expected):
    for label in labels.split("|"):
        check(expected, ["mia: Handled in #1."], labels=(label.strip(),))


MARKED_BY_LABEL = talks(r"""
    A claim names the original, whatever else the thread says
        #1 bob 99: Duplicate of #1 | mia: Fixed in the last release, see #2 for the list.
        #1 mia 9: This might be a dup of #1 | mia: Depends on #2.
        #1 mia: See #2 for the list. | bob -9000: dup of #1
    The closing statement is about the original
        #1 mia: #1
        #1 mia: Handled in #1.
        #1 mia: Fixed in #1
        #1 mia: Closing, please see #1 for details.
        #1 mia: This will be resolved by #1.
        #1 mia: Will be done in #1.
        #1 mia: The original is #1.
        #1 mia: We already have an issue for this (#1).
        #1 mia: Please watch #1 for updates, which was created for it.
        #1 mia: See #1 and the pull request #501.
        #1 mia 0.1: We have a ticket for that: #1
    An issue that is only mentioned is not the original
        only_mentioned mia: This depends on #1.
        only_mentioned mia: This is blocked by #1.
        only_mentioned mia: It was caused by #1.
        only_mentioned mia: Related to #1.
        only_mentioned mia: This is similar to #1, but not the same.
        only_mentioned mia: Please wait until #1 is released.
        only_mentioned mia: The workaround of #1 helps.
        only_mentioned mia: See #1 and #2.
        only_mentioned mia: I opened #1 for the rest.
        only_mentioned mia: See #1 for the follow-up.
        only_mentioned mia: We decided in #1 not to do this.
        only_mentioned mia: Broken since #1.
        only_mentioned mia: Same release as #1
        only_mentioned mia: Split from #1
        only_mentioned mia: Follow-up: #1
        only_mentioned mia: Thanks to #1
        only_mentioned mia: Not a duplicate of #1.
        only_mentioned bob 9: Duplicate of #1 | ann 5: That's a different bug than #1. | mia: Closing.
        only_mentioned mia: Kein Duplikat von #1
        only_mentioned bob 99: See #1 | mia: Closing.
        only_mentioned mia 20: See #1 | mia: Closing.
        only_mentioned ann 200: depends on #1 | mia: Duplicate.
        only_mentioned bob 20: I tried all builds that came after #1 landed there | mia: Closing as duplicate.
        no_target mia: It died on test #1.
        no_target mia: Focus goes back to link #1.
        no_target mia: Use {color:#205081}blue{color}, not '#999'.
""")


@parametrize("fields", [{"state_reason": "duplicate"}, *LABELS])
@parametrize("expected, lines", MARKED_BY_LABEL)
def test_a_label_names_no_original(expected, lines, fields):
    check(expected, lines, **fields)


def test_a_closing_as_duplicate_confirms_a_claim_from_before_a_reopening():
    lines = [
        "mia 50: Dup of #1.",
        "mia 40: Reopening to change the version.",
        "mia: See #2 for all that is new.",
    ]
    check("#1", lines, state_reason="duplicate")


@parametrize(
    "body",
    [
        "It died on test #1.",
        "Focus goes back to link #1.",
        "color: '#100'",
        "Unlike #1, it is random.",
    ],
)
def test_a_label_and_a_number_in_the_body_are_no_duplicate(body):
    assert decided(body=body, state_reason="duplicate").outcome is not DUPLICATE


@parametrize(
    "expected, lines",
    talks(r"""
        A bare "duplicate" means an issue that was pointed at
            #1 bob 9: See #1. | mia: Duplicate.
            #1 bob 9: Is this another bug than #1? | mia: Closing as duplicate.
            #1 bob 9: Relevant issue: #1 | mia: Yes, this is a duplicate.
            #1 mia: Duplicate, see #1.
            #1 mia: Duplicate. The original is #1.
            #1 mia: #1 has the same stack trace. Closing as duplicate.
            #1 mia: A duplicate of, or at least related to, #1.
        not one that is mentioned by the way
            only_mentioned mia: Duplicate, depends on #1
            only_mentioned mia: Closing as duplicate; blocked by #1.
            only_mentioned mia: Closing as duplicate. Depends on #1.
            only_mentioned mia: This blocks #1. Closing as duplicate.
            only_mentioned mia: Duplicate. I opened #1 for the rest.
            only_mentioned mia: Duplicate. The patch is in #1.
            only_mentioned mia: As I said in #1, please search first. Duplicate.
            only_mentioned bob 9: Does this depend on #1? | mia: Duplicate.
            only_mentioned bob 9: #1 broke it | mia: Duplicate.
            only_mentioned bob 9: It depends on #1 | mia: Duplicate
            only_mentioned bob 9: There is a workaround in #1. | mia: Closing as duplicate.
            no_target mia: Duplicate; test #1 fails as well.
        Words of colours, lists and releases beside the original do not hide it
            #123 mia: Duplicate of "#123".
            #123 mia: Duplicate of the background bug #123.
            #12 mia: Duplicate of thread #12.
            #12 mia: Duplicate of this error: #12
            #12 mia: Duplicate. Link: #12
            #12 mia: Duplicate of release blocker #12
            #12 mia: Duplicate of the workaround issue #12
        Another reason, or a reopening for minutes, in the same sitting does not revoke it
            #1 mia 0.1: Duplicate of #1 | mia: Closing as wontfix.
            #1 mia 9: Duplicate of #1 | !closed 9 | !reopened 0.4 | !closed 0
            #1 mia 9: Duplicate of #1 | mia 0.2: Reopening to set the version. | mia: Closed again.
            fixed mia 9: Duplicate of #1 | mia: Works for me, closing.
            fixed mia 0.4: Duplicate of #1 | mia 0.3: Reopening, I misread this. | mia: Fixed in 4f2a9c1.
            reopened mia 9: Duplicate of #1 | mia 4: Reopening, it is another problem.
    """),
)
def test_a_bare_duplicate(expected, lines):
    check(expected, lines)


def test_named_originals_are_more_certain_than_closing_statements():
    fields = {"state_reason": "duplicate"}
    claimed = decided(
        said("bob", "Duplicate of #1", 99), said("mia", "Fixed.", 0.01), **fields
    )
    pointed = decided(said("mia", "Handled in #1"), **fields)
    assert (claimed.reason, pointed.reason) == (
        "label_and_claim",
        "label_and_reference",
    )
    assert claimed.confidence > pointed.confidence


def test_a_target_that_was_not_fetched_counts_less():
    seen, unseen = (
        decided(said("mia", "dup of #1")),
        decided(said("mia", "dup of #650")),
    )
    assert unseen.outcome is DUPLICATE
    assert unseen.confidence < seen.confidence


def test_reasons_of_marks():
    assert decided(event("marked_as_duplicate", 3, 1)).reason == "marked_event"
    pull = event("marked_as_duplicate", 1, 650, target_is_pull=True)
    assert decided(pull, event("closed", 0)).reason == "target_is_pull"
    assert decided(duplicate_of=ref(1)).reason == "duplicate_of"
    merged = decided(said("zoe", "_Merged into issue #21._", YEARS))
    assert (merged.reason, merged.confidence) == ("imported_mark", 0.99)


def test_evidence_of_a_verdict():
    (evidence,) = decided(said("mia", "Duplicate of #1")).evidence
    assert (evidence.who, evidence.targets, evidence.said) == (
        "mia",
        (ref(1),),
        "Duplicate of #1",
    )
    assert evidence.url.startswith("https://github.com/o/n/issues/100#issuecomment-")
