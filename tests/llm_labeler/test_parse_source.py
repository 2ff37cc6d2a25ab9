from __future__ import annotations

import pytest

from llm_labeler._parse import parse_answer
from llm_labeler._parse.source import Source
from llm_labeler._scripts import is_translation

LATIN, VIETNAMESE, CYRILLIC, GREEK = "The bridge", "Cầu đã đóng cửa", "Мост закрыт", "Η γέφυρα έκλεισε"
HAN, KANA, HANGUL, ARABIC, HINDI = (
    "旧桥已经关闭",
    "橋は閉まっています",
    "다리가 닫혔다",
    "الجسر مغلق",
    "पुल बंद है",
)
SCRIPTS = (LATIN, CYRILLIC, GREEK, HAN, HANGUL, ARABIC, HINDI)


@pytest.mark.parametrize("one", SCRIPTS)
@pytest.mark.parametrize("other", SCRIPTS)
def test_scripts_are_told_apart(one: str, other: str) -> None:
    assert is_translation(one, other) is (one != other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (VIETNAMESE, LATIN),
        (KANA, HAN),
        ("1234", LATIN),
        (LATIN, "1234"),
        ("桥", LATIN),
        ("мир", LATIN),  # as short as an abbreviation
        ("", ""),
        ("GPS定位系统", HAN),
    ],
)
def test_no_translations(one: str, other: str) -> None:
    assert not is_translation(one, other)


def test_four_letters_are_enough() -> None:
    assert is_translation("мост", LATIN)


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("The old bridge is closed.", 2),
        ("The old bridge that we knew so well is closed.", 4),
        ("桥关了。", 2),
    ],
)
def test_two_fifths_of_a_sentence_are_long_enough(text: str, least: int) -> None:
    source = Source.of(text)
    assert source.is_as_long_as("桥" * least)
    assert source.is_as_long_as("Old " * least)
    assert not source.is_as_long_as("Old " * (least - 1))


def test_sentences_in_another_script_are_read_where_only_labels_are_in_that_of_the_source() -> None:
    said = ["这座古老的桥已经关闭了。", "那座桥不再通行了。"]
    raw = f"| A | B |\n|---|---|\n| Formal | {said[0]} |\n| Casual | {said[1]} |"
    items = parse_answer(raw, text="The old bridge is closed.")
    assert [item.text for item in items if item.reason is None] == said


ENGLISH = ("The dog is not afraid of thunder.", "Thunder has never scared the dog.")
CHINESE = ("这只狗不怕打雷。", "雷声从来没有吓到过这只狗。")
RUSSIAN = ("Собака не боится грома.", "Гром никогда не пугал эту собаку.")


@pytest.mark.parametrize("header", ["| English | 中文 |", "| A | B |", "| Text | Translation |"])
@pytest.mark.parametrize(
    ("text", "left", "right", "expected"),
    [
        ("The dog is afraid of thunder.", ENGLISH, CHINESE, ENGLISH),
        ("The dog is afraid of thunder.", CHINESE, ENGLISH, ENGLISH),
        ("Собака боится грома.", RUSSIAN, CHINESE, RUSSIAN),
    ],
)
def test_of_columns_in_two_scripts_the_one_of_the_source_counts(
    header: str, text: str, left: tuple[str, ...], right: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    if "Translation" in header and left is CHINESE:
        header = "| Translation | Text |"
    rows = "\n".join(f"| {one} | {other} |" for one, other in zip(left, right, strict=True))
    items = parse_answer(f"{header}\n|---|---|\n{rows}", text=text)
    assert tuple(item.text for item in items if item.reason is None) == expected
