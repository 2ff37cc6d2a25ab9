from __future__ import annotations

import pytest

from llm_labeler._parse.items import after_refusal, compared
from llm_labeler._parse.source import Source
from llm_labeler._records import Item

SOURCE = Source.of("The old bridge is closed.")
ONE, TWO, THREE = "The ancient bridge is shut.", "The old bridge was shut.", "Nobody can cross the bridge."


def of(*said: str | tuple[str, str]) -> list[Item]:
    return [Item(one) if isinstance(one, str) else Item(*one) for one in said]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (of(ONE, SOURCE.text, TWO), of(ONE, (SOURCE.text, "echo"), TWO)),
        (of(SOURCE.text), of(SOURCE.text)),  # alone it is the answer, and judged as one later
        (of(ONE, "Старый мост закрыт."), of(ONE, ("Старый мост закрыт.", "remark"))),
        (of("Старый мост закрыт.", "旧桥已经关闭了。"), of("Старый мост закрыт.", "旧桥已经关闭了。")),
        (of(f"{ONE} (verb)", ("(formal)", "remark")), of(ONE, ("(verb)", "remark"), ("(formal)", "remark"))),
        (of(f"{ONE} (verb)", TWO), of(f"{ONE} (verb)", TWO)),
        (of("One;", "Two;", "Three."), of("One", "Two", "Three.")),
        (of("One;", ("Note", "preamble"), "Two;"), of("One", ("Note", "preamble"), "Two")),
        (of("One,", "Two,", "Three"), of("One", "Two", "Three")),
        (of("One;", "Two", "Three;"), of("One;", "Two", "Three;")),  # not all bear it
        (of("One;"), of("One;")),
    ],
)
def test_what_items_say_of_each_other(items: list[Item], expected: list[Item]) -> None:
    assert compared(items, SOURCE, 3) == expected


def test_a_source_that_ends_with_a_semicolon_has_rewrites_that_do() -> None:
    items = of("One;", "Two;")
    assert compared(items, Source.of("if (closed) return;"), 2) == items


def test_after_a_refusal_nothing_is_an_answer() -> None:
    items = of(("Sure.", "preamble"), ("I can't.", "refusal"), ONE, ("Bye.", "closing_note"))
    assert [item.reason for item in after_refusal(items)] == [
        "preamble",
        "refusal",
        "refusal",
        "closing_note",
    ]
    assert after_refusal(items[2:]) == items[2:]
    assert after_refusal([]) == []
