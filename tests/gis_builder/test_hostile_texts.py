"""Texts made to hold a build: each is as long as GitHub lets a comment be and repeats one unit.

`benchmarks/hostile_texts.py` searches for such units; those here once took from ten seconds to hours.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from gis_builder.detection import decide, explain
from gis_builder.detection.lexicon import PHRASES
from gis_builder.detection.reading import read
from gis_builder.detection.statements import MAX_CHARACTERS
from gis_builder.pairing.text import clean
from gis_builder.store.records import Thread, VerdictOutcome
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
def test_no_comment_holds_a_verdict(before: str, unit: str) -> None:
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
    ],
)
def test_no_body_holds_the_rendering(before: str, unit: str) -> None:
    assert_linear(clean, repeated(unit, before))


def test_events_that_close_and_reopen_all_day_are_read_once() -> None:
    def busy(size: int) -> Thread:
        slips = [event(kind, hours) for hours in range(size, 0, -1) for kind in ("closed", "reopened")]
        return thread(said("mia", "dup of #1"), *slips)

    assert_linear(lambda slipping: decide(slipping, kind_of), busy, 8_000)


def test_no_phrase_repeats_a_group_without_a_bound() -> None:
    for _, phrase in PHRASES:
        assert not re.search(r"\)[*+](?!\+)", phrase), phrase


def test_a_list_of_references_is_read_whole() -> None:
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
def test_what_is_beyond_what_is_read_is_uncertain_and_named(parts: object, reason: str | None) -> None:
    hostile = thread(parts, said("mia", "Closing as a dup of #7."))  # type: ignore[arg-type]
    verdict = decide(hostile, kind_of)
    if reason is None:
        assert verdict.outcome is VerdictOutcome.DUPLICATE
    else:
        assert (verdict.outcome, verdict.reason) == (VerdictOutcome.UNCERTAIN, reason)
        assert f"[{reason}]" in explain(hostile, verdict, kind_of)


def test_what_the_tracker_itself_says_has_no_limit() -> None:
    marked = thread(said("bob", "dup of #1, " * 5_000), event("marked_as_duplicate", 1, 7))
    assert decide(marked, kind_of).targets == (ref(7),)


def test_what_counts_is_the_text_of_the_whole_thread() -> None:
    plain: Thread = thread(said("mia", "dup of #1"))
    long = replace(plain, issue=replace(plain.issue, body="x" * MAX_CHARACTERS))
    assert decide(long, kind_of).reason == "too_much_text"


def test_a_sentence_without_end_is_read_in_pieces() -> None:
    reading = read("word " * 3_000 + "dup of #1", ref(100))
    assert [claim.targets for claim in reading.claims] == [(ref(1),)]


def test_letters_that_change_length_in_lower_case_move_no_reference() -> None:
    assert decide(thread(said("mia", "İİİİİİ dup of #1 İ")), kind_of).targets == (ref(1),)
