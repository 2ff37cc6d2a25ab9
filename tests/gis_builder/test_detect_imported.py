"""Duplicate marks that importers copied into comments; they count whenever the issue was closed."""

from __future__ import annotations

import pytest

from gis_builder.store.records import VerdictOutcome
from tests.gis_builder.detect_threads import DUPLICATE, call, decided, event, said

YEARS = 3 * 365 * 24.0
NOT, UNCERTAIN = VerdictOutcome.NOT, VerdictOutcome.UNCERTAIN


@pytest.mark.parametrize(
    "body",
    [
        "Comment 6:\n\n_Status changed to **Duplicate**._\n\n_Merged into issue #21._",
        "*** This bug has been marked as a duplicate of #21 ***",
        "Closing.\n\n\\*\\*\\* This issue has been marked as a duplicate of issue #21. \\*\\*\\*",
        "*** This bug is a duplicate of https://github.com/o/n/issues/21 ***",
    ],
)
def test_a_recorded_target(body: str) -> None:
    assert call(said("zoe", body, YEARS)) == (DUPLICATE, [21])
    verdict = decided(said("zoe", body, YEARS))
    assert (verdict.reason, verdict.confidence) == ("imported_mark", 0.99)


@pytest.mark.parametrize(
    "line",
    [
        "_Status changed to **Duplicate**._",
        "- Changed state: **Duplicate**",
        "- **status**: open --> closed-duplicate",
        "* **resolution** set to *duplicate*",
        "Updated **resolution** to **duplicate**",
    ],
)
def test_a_recorded_status_with_the_only_named_issue(line: str) -> None:
    assert call(said("zoe", f"See #21.\n\n{line}", YEARS)) == (DUPLICATE, [21])
    assert call(said("zoe", line, YEARS)) == (UNCERTAIN, [])


@pytest.mark.parametrize(
    "later",
    ["_Status changed to **Fixed**._", "_Status changed to **Fixed**._\n\n_Merged into issue #-21._"],
)
def test_a_later_status_replaces_the_mark(later: str) -> None:
    merged = said("zoe", "_Status changed to **Duplicate**._\n\n_Merged into issue #21._", YEARS)
    assert call(merged, said("zoe", later, YEARS - 1))[0] is not DUPLICATE


def test_marks_and_reopenings_of_this_tracker_outweigh_the_imported_mark() -> None:
    merged = said("zoe", "_Merged into issue #21._", YEARS)
    verdict = decided(merged, event("marked_as_duplicate", 1, 7))
    assert ([target.number for target in verdict.targets], verdict.reason) == ([7], "marked_event")
    assert call(merged, event("reopened", 40))[0] is not DUPLICATE


@pytest.mark.parametrize(
    "body",
    [
        "Merged into #21.",
        "> _Merged into issue #21._",
        "```\n*** This bug has been marked as a duplicate of #21 ***\n```",
        "*** This bug has been marked as a duplicate of bug 21 in the old tracker",
        "The status of the duplicate entry in the table is wrong.",
    ],
)
def test_other_texts(body: str) -> None:
    assert decided(said("zoe", body, YEARS)).reason != "imported_mark"
    assert call(said("zoe", body, YEARS))[0] is not DUPLICATE
