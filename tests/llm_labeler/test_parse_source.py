from __future__ import annotations

import pytest

from llm_labeler._parse import parse_answer
from llm_labeler._parse.source import is_foreign

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
    assert is_foreign(one, other) is (one != other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (VIETNAMESE, LATIN),
        (KANA, HAN),
        ("1234", LATIN),
        (LATIN, "1234"),
        ("桥", LATIN),
        ("", ""),
        ("GPS定位系统", HAN),
    ],
)
def test_no_translations(one: str, other: str) -> None:
    assert not is_foreign(one, other)


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
