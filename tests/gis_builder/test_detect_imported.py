"""Duplicate marks that importers copied into comments; they count whenever the issue was closed."""

from __future__ import annotations

import pytest

from .detect_threads import DUPLICATE, call, cases, check, decided, event, said

YEARS = 3 * 365 * 24.0


@pytest.mark.parametrize(
    ("expected", "lines"),
    cases(rf"""
        A recorded status with the only named issue
            #21 zoe {YEARS}: See #21.\n\n_Status changed to **Duplicate**._
            #21 zoe {YEARS}: See #21.\n\n- Changed state: **Duplicate**
            #21 zoe {YEARS}: See #21.\n\n- **status**: open --> closed-duplicate
            #21 zoe {YEARS}: See #21.\n\n* **resolution** set to *duplicate*
            #21 zoe {YEARS}: See #21.\n\nUpdated **resolution** to **duplicate**
            no_target zoe {YEARS}: _Status changed to **Duplicate**._
        A later status replaces the mark
            no zoe {YEARS}: _Merged into issue #21._ | zoe 9: _Status changed to **Fixed**._
            no zoe {YEARS}: _Merged into issue #21._ | zoe 9: Fixed.\n\n_Merged into issue #-21._
        Other texts
            no zoe {YEARS}: Merged into #21.
            no zoe {YEARS}: > _Merged into issue #21._
            no zoe {YEARS}: ```\n*** This bug has been marked as a duplicate of #21 ***\n```
            no zoe {YEARS}: *** This bug has been marked as a duplicate of bug 21 in the old tracker
            no zoe {YEARS}: The status of the duplicate entry in the table is wrong.
    """),
)
def test_imported_marks(expected: str, lines: list[str]) -> None:
    check(expected, lines)


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
    verdict = decided(said("zoe", body, YEARS))
    assert [target.number for target in verdict.targets] == [21]
    assert (verdict.reason, verdict.confidence) == ("imported_mark", 0.99)


def test_marks_and_reopenings_of_this_tracker_outweigh_the_imported_mark() -> None:
    merged = said("zoe", "_Merged into issue #21._", YEARS)
    verdict = decided(merged, event("marked_as_duplicate", 1, 7))
    assert ([target.number for target in verdict.targets], verdict.reason) == ([7], "marked_event")
    assert call(merged, event("reopened", 40))[0] is not DUPLICATE
