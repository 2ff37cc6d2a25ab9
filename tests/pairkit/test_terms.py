"""The terms of a text in any script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.similarity.terms import places, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Can't open the_file 12 times!", ["can", "t", "open", "the_file", "12", "times"]),
        ("Straße, café", ["straße", "café"]),
        ("cafe\u0301", ["cafe\u0301"]),  # a combining accent
        ("합병 #1 중복", ["합병", "1", "중복"]),  # Korean has blanks
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("合并至 #1", ["合并", "并至", "1"]),
        ("字", ["字"]),
        ("カードが届く。", ["カー", "ード", "ドが", "が届", "届く"]),
        ("เปิดไม่ได้", ["เป", "ปิ", "ิด", "ดไ", "ไม", "ม่", "่ไ", "ได", "ด้"]),
        ("打开 Excel文件", ["打开", "excel", "文件"]),
        ("?! …", []),
        ("", []),
    ],
)
def test_terms_by_script(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@given(st.text())
def test_places_are_those_of_the_terms(text: str) -> None:
    found = [*places(text)]
    assert [text[start:end].lower() for _, start, end in found] == [term for term, _, _ in found]
    if text.lower() == text:
        assert [term for term, _, _ in found] == terms(text)


@given(st.text())
def test_every_letter_and_digit_is_in_a_term(text: str) -> None:
    found = set("".join(terms(text)))
    assert {letter for letter in text.lower() if letter.isalnum()} <= found


@given(st.lists(st.text("abc", min_size=1)))
def test_words_are_found_between_blanks(words: list[str]) -> None:
    assert terms(" ".join(words)) == words
