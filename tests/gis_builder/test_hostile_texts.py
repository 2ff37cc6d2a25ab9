"""Hostile texts take linear time: each has GitHub's maximum length and repeats one unit.

`benchmarks/hostile_texts.py` finds such units; these once took from ten seconds to hours.
"""

from __future__ import annotations

import re

import pytest

from gis_builder.detection import decide, explain
from gis_builder.detection.lexicon import PHRASES
from gis_builder.detection.reading import read
from gis_builder.detection.statements import MAX_CHARACTERS
from gis_builder.pairing.text import clean
from gis_builder.store.issue_records import Thread, VerdictOutcome
from tests.support.linear import assert_linear, repeated

from .detect_threads import event, kind_of, ref, said, thread


def judged(text: str) -> object:
    return decide(thread(said("mia", text)), kind_of)


@pytest.mark.parametrize(
    ("before", "unit"),
    [
        ("Duplicate of #2", ", #3"),
        ("Duplicate of #2", " and #3"),
        ("dup of\n", "#3\n"),
        ("", "dup of #12, "),
        ("", "duplicate of #3 ~~a "),
        ("", "closing as a duplicate. "),
        ("", "the very "),
        ("same", " "),
        ("dup of #1. ", "-"),
        ("dup of #1. ", "."),
        ("dup of #1 ", "`"),
        ("dup of #1 ", "<pre "),
        ("", "dup"),
        ("", "status: "),
        ("status", "_to "),
        ("", "_merged into "),
        ("", "*** this bug is a duplicate of "),
    ],
)
def test_hostile_comments(before: str, unit: str) -> None:
    assert_linear(judged, repeated(unit, before))


@pytest.mark.parametrize(
    ("before", "unit"),
    [
        ("issue", " "),
        ("", "issues/1-"),
        ("", "dup #1\n"),
        ("# ", "duplicat"),
        ("", "\u0301\u0316"),
        ("", "<!--\n```\n```\n"),
        ("", "<a "),
        ("", "&amp;"),
        ("", "cc @a, @b\n"),
        ("cc", " @a"),
        ("", "/home/"),
        ("", "a clear and concise description of "),
        ("", "same as #1 "),
        ("", "![a]("),
        ("", "issues 1, "),
        ("", "C:\\Users\\a b "),
        ("", "a@b:"),
    ],
)
def test_hostile_bodies(before: str, unit: str) -> None:
    assert_linear(clean, repeated(unit, before))


def test_many_events() -> None:
    def reopened(size: int) -> Thread:
        events = [event(kind, hours) for hours in range(size, 0, -1) for kind in ("closed", "reopened")]
        return thread(said("mia", "dup of #1"), *events)

    assert_linear(lambda many: decide(many, kind_of), reopened, 8_000)


def test_phrases_have_no_unbounded_groups() -> None:
    for _, phrase in PHRASES:
        assert not re.search(r"\)[*+](?!\+)", phrase), phrase


def test_a_long_list_of_references() -> None:
    many = ", ".join(f"#{number}" for number in range(1, 41))
    verdict = decide(thread(said("mia", f"Duplicate of {many}.")), kind_of)
    assert verdict.targets == tuple(ref(number) for number in range(1, 41))


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (said("bob", "dup of #1, " * 5_000, 2), "too_many_claims"),
        (said("bob", "Duplicate of " + ", ".join(f"#{n}" for n in range(1, 490)) + ".", 2), None),
        (said("bob", "Duplicate of " + ", ".join(f"#{n}" for n in range(1, 501)), 2), "too_many_claims"),
        (said("bob", "dup of #1 " + "x" * MAX_CHARACTERS, 2), "too_much_text"),
    ],
    ids=["claims", "within", "references", "text"],
)
def test_limits_of_a_thread(parts: object, reason: str | None) -> None:
    hostile = thread(parts, said("mia", "Closing as a dup of #7."))  # type: ignore[arg-type]
    verdict = decide(hostile, kind_of)
    if reason is None:
        assert verdict.outcome is VerdictOutcome.DUPLICATE
    else:
        assert (verdict.outcome, verdict.reason) == (VerdictOutcome.UNCERTAIN, reason)
        assert f"[{reason}]" in explain(hostile, verdict, kind_of)


def test_marks_count_in_a_thread_over_the_limit() -> None:
    marked = thread(said("bob", "dup of #1, " * 5_000), event("marked_as_duplicate", 1, 7))
    assert decide(marked, kind_of).targets == (ref(7),)


def test_the_limit_includes_the_body() -> None:
    long = thread(said("mia", "dup of #1"), body="x" * MAX_CHARACTERS)
    assert decide(long, kind_of).reason == "too_much_text"


def test_a_very_long_sentence_is_read_in_pieces() -> None:
    reading = read("word " * 3_000 + "dup of #1", ref(100))
    assert [claim.targets for claim in reading.claims] == [(ref(1),)]


def test_letters_with_a_longer_lower_case() -> None:
    assert decide(thread(said("mia", "İİİİİİ dup of #1 İ")), kind_of).targets == (ref(1),)
