from __future__ import annotations

import pytest

from gis_builder.pairing.duplicate_notes import find_duplicate_notes
from gis_builder.pairing.markup import cut
from gis_builder.pairing.references import find_references


def without(text: str) -> str:
    return cut(text, find_duplicate_notes(text, find_references(text)))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("[duplicate] Crash on start", "Crash on start"),
        ("Crash on start (duplicate)", "Crash on start"),
        ("DUPLICATE: crash on start", "crash on start"),
        ("Crash on start [dup of #12]", "Crash on start"),
        ("Crash on start (dup of #12)", "Crash on start"),
        ("EDIT: duplicate of #12", ""),
        ("**Duplicate of #12**", ""),
        ("Duplicate of owner/name#12.", ""),
        ("Duplicate of 1234", ""),
        ("Closing as duplicate.", ""),
        ("closing as a dupe of https://github.com/o/n/issues/3", ""),
        ("It crashes. This is a duplicate of #12 and #13. It burns.", "It crashes. It burns."),
        ("Sorry if this is a duplicate, but the window hangs", "but the window hangs"),
        ("I couldn't find any duplicates.", ""),
        ("Possibly a dupilcate of #4", ""),
        ("#12, of which this is a duplicate", ""),
        ("Closing in favour of #12", ""),
        ("Superseded by #12.", ""),
        ("Same issue as #12", ""),
        ("Already tracked in #12.", ""),
        ("Duplicate of [the crash on start](https://github.com/o/n/issues/3)", ""),
        ("Not a duplicate of #12", ""),
        ("Es hängt. Ist das ein Duplikat von #12? Bei mir auch.", "Es hängt. Bei mir auch."),
        ("Même problème que #12, mais le journal reste vide", "mais le journal reste vide"),
        ("打不开。与 #12 重复。", "打不开。"),
        ("#12 と同じ問題です。落ちます。", "落ちます。"),
    ],
)
def test_notes_are_removed(text: str, left: str) -> None:
    assert without(text).strip() == left


@pytest.mark.parametrize(
    "text", [*("Duplicate symbols when linking", "重复点击按钮会崩溃", "数据重复", "行が重複します")]
)
def test_other_texts_stay(text: str) -> None:
    assert without(text) == text
