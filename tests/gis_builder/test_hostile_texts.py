"""Hostile texts take linear time: each has GitHub's maximum length and repeats one unit.

`benchmarks/hostile_texts.py` finds such units; these once took from ten seconds to hours.
"""

from pathlib import Path

from gis_builder.crawling.ticket_index import Place, TicketIndex
from gis_builder.trackers.ticket_files import Link, Ticket
from tests.support.linear import assert_linear, repeated
from tests.support.shorthand import parametrize, table

from .detect_threads import DUPLICATE, decided, event, explained, ref, said

MAX_CHARACTERS = 4_000_000  # of a thread that is read
NUMBERS = [f"#{number}" for number in range(1, 501)]


@table(r"""
    before, unit
    Duplicate of #2 | , #3
    Duplicate of #2 | " and #3"
    "dup of\n" | "#3\n"
    "" | "dup of #12, "
    "" | "duplicate of #3 ~~a "
    "" | "closing as a duplicate. "
    "" | "the very "
    same | " "
    "dup of #1. " | -
    "dup of #1. " | .
    "dup of #1 " | `
    "dup of #1 " | "<pre "
    "" | dup
    "" | "status: "
    status | "_to "
    "" | "_merged into "
    "" | "*** this bug is a duplicate of "
""")
def test_hostile_comments(before, unit):
    assert_linear(lambda text: decided(said("mia", text)), repeated(unit, before))


@table(r"""
    before, unit
    see | " "
    x | -
""")
def test_hostile_cells_of_links(before, unit):
    def resolved(cell):
        index = TicketIndex({})
        index.add(Ticket("2", (Link("2", cell),)), "a/b", Place(Path(), 0))
        index.resolve()

    assert_linear(resolved, repeated(unit, before, "x"), 16_000)


def test_many_events():
    def reopened(size):
        events = [
            event(kind, hours)
            for hours in range(size, 0, -1)
            for kind in ("closed", "reopened")
        ]
        return [said("mia", "dup of #1"), *events]

    assert_linear(lambda parts: decided(*parts), reopened, 8_000)


def test_a_long_list_of_references():
    verdict = decided(said("mia", f"Duplicate of {', '.join(NUMBERS[:40])}."))
    assert verdict.targets == tuple(ref(number) for number in range(1, 41))


@parametrize(
    "text, reason",
    [
        ("dup of #1, " * 5_000, "too_many_claims"),
        (f"Duplicate of {', '.join(NUMBERS[:489])}.", None),
        (f"Duplicate of {', '.join(NUMBERS)}", "too_many_claims"),
        ("dup of #1 " + "x" * MAX_CHARACTERS, "too_much_text"),
    ],
    ids=["claims", "within", "references", "text"],
)
def test_limits_of_a_thread(text, reason):
    hostile = said("bob", text, 2), said("mia", "Closing as a dup of #7.")
    verdict = decided(*hostile)
    if reason is None:
        assert verdict.outcome is DUPLICATE
    else:
        assert (verdict.outcome, verdict.reason) == ("uncertain", reason)
        assert f"[{reason}]" in explained(*hostile)


def test_marks_count_in_a_thread_over_the_limit():
    hostile = said("bob", "dup of #1, " * 5_000), event("marked_as_duplicate", 1, 7)
    assert decided(*hostile).targets == (ref(7),)


def test_the_limit_includes_the_body():
    assert (
        decided(said("mia", "dup of #1"), body="x" * MAX_CHARACTERS).reason
        == "too_much_text"
    )


def test_a_very_long_sentence_is_read_in_pieces():
    assert decided(said("mia", "word " * 3_000 + "dup of #1")).targets == (ref(1),)


def test_letters_with_a_longer_lower_case():
    assert decided(said("mia", "İİİİİİ dup of #1 İ")).targets == (ref(1),)
