"""Marks, labels and notes beside what people say, and marks that importers copied into comments."""

from __future__ import annotations

from typing import Any

import pytest

from .detect_threads import DUPLICATE, cases, check, decided, event, ref, said

YEARS = 3 * 365 * 24.0


@pytest.mark.parametrize(
    ("expected", "lines"),
    cases(rf"""
        A mark beats words, and the last mark stands
            #1 !marked 3 #1 | !closed 0
            #1 !marked 3 #1 | bob 2: dup of #2 | !closed 0
            #1 !marked 4 #2 | !marked 3 #1 | !closed 0
            #1 !closed 0 #1
        Removing a mark or reopening revokes earlier claims, unless it was an accident
            unmarked mia 3: Duplicate of #1 | !marked 3 #1 | !unmarked 2 #1 | !closed 0
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
def test_marks(expected: str, lines: list[str]) -> None:
    check(expected, lines)


LABELS = [{"labels": (label,)} for label in ("duplicate", "kind/duplicate")]


@pytest.mark.parametrize(
    ("expected", "lines", "fields"),
    [
        ("#1", ["mia 0.001: Closing in favour of #1."], {"closed_by": None}),  # an unknown closer
        ("#1", [], {"title": "(dup of #1) The window flickers"}),
        ("#1", [], {"title": "[duplicate] It flickers", "body": "Ah, that's #1."}),
        ("no", [], {"title": "dup(2) is called twice", "body": "see #1"}),
        ("#1", [], {"body": "It flickers.\n\nEDIT: duplicate of #1"}),
        ("no", [], {"title": "Duplicate tabs", "body": "Is this a duplicate? I searched."}),
        ("claim_not_acted_on", [], {"body": "This might be a duplicate of #1."}),
        ("#1", ["mia: Yes, it is. Closing."], {"body": "This might be a duplicate of #1."}),
        *(
            (expected, [f"mia: {words}"], fields)
            for fields in ({"state_reason": "duplicate"}, *LABELS)
            for words, expected in (("#1", "#1"), ("Known, see #1.", "#1"), ("Known.", "no_target"))
        ),
        ("no", ["mia: #1"], {}),
        ("no", ["mia: #1"], {"labels": ("deduplication",)}),
    ],
)
def test_labels_and_notes(expected: str, lines: list[str], fields: dict[str, Any]) -> None:
    check(expected, lines, **fields)


def test_a_target_that_was_not_fetched_counts_less() -> None:
    seen, unseen = decided(said("mia", "dup of #1")), decided(said("mia", "dup of #650"))
    assert unseen.outcome is DUPLICATE
    assert unseen.confidence < seen.confidence


def test_reasons_of_marks() -> None:
    assert decided(event("marked_as_duplicate", 3, 1)).reason == "marked_event"
    pull = event("marked_as_duplicate", 1, 650, target_is_pull=True)
    assert decided(pull, event("closed", 0)).reason == "target_is_pull"
    assert decided(duplicate_of=ref(1)).reason == "duplicate_of"
    merged = decided(said("zoe", "_Merged into issue #21._", YEARS))
    assert (merged.reason, merged.confidence) == ("imported_mark", 0.99)


def test_evidence_of_a_verdict() -> None:
    (evidence,) = decided(said("mia", "Duplicate of #1")).evidence
    assert (evidence.who, evidence.targets, evidence.said) == ("mia", (ref(1),), "Duplicate of #1")
    assert evidence.url.startswith("https://github.com/o/n/issues/100#issuecomment-")
