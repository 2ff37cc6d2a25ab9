from __future__ import annotations

import pytest

from llm_labeler._parse import parse_answer
from llm_labeler._parse.inline import separated, with_inline_lists
from llm_labeler._parse.source import Source
from llm_labeler._records import Item

TEXT = "The old bridge is closed."
SOURCE = Source.of(TEXT)
TEN = [
    f"{who} bridge is shut."
    for who in ("The", "This", "Our", "Your", "My", "Their", "Her", "His", "Every", "That")
]
ONE, TWO = TEN[:2]


@pytest.mark.parametrize(
    "marks",
    [
        "① ② ③ ④ ⑤ ⑥ ⑦ ⑧ ⑨ ⑩",
        "#1 #2 #3 #4 #5 #6 #7 #8 #9 #10",
        "(1) (2) (3) (4) (5) (6) (7) (8) (9) (10)",
        "[1] [2] [3] [4] [5] [6] [7] [8] [9] [10]",
        "1) 2) 3) 4) 5) 6) 7) 8) 9) 10)",
        "1. 2. 3. 4. 5. 6. 7. 8. 9. 10.",
        "(a) (b) (c) (d) (e) (f) (g) (h) (i) (j)",
        "A) B) C) D) E) F) G) H) I) J)",
        "i) ii) iii) iv) v) vi) vii) viii) ix) x)",
        "First, Second, Third, Fourth, Fifth, Sixth, Seventh, Eighth, Ninth, Tenth,",
        "One: Two: Three: Four: Five: Six: Seven: Eight: Nine: Ten:",
    ],
)
def test_ten_sentences_in_one_line(marks: str) -> None:
    line = " ".join(f"{mark} {said}" for mark, said in zip(marks.split(), TEN, strict=True))
    items = parse_answer(line, text=TEXT)
    assert [item.text for item in items if item.reason is None] == TEN


@pytest.mark.parametrize("before", ["- ", "* ", "> ", "- **", "Two of them: ", ""])
def test_what_may_stand_before_a_list_in_one_line(before: str) -> None:
    found = with_inline_lists([f"{before}1) {ONE} 2) {TWO}"], SOURCE)
    assert found[-2:] == [f"1. {ONE}", f"2. {TWO}"]


@pytest.mark.parametrize(
    "line",
    [
        "1) Steps are 1) Open the bridge and 2) Close the bridge. 2) Open and close it.",  # it counts itself
        f"They said 1) {ONE} 2) {TWO}",  # words of a sentence before it
        f"2) {ONE} 3) {TWO}",
    ],
)
def test_numbers_that_are_no_list(line: str) -> None:
    assert with_inline_lists([line], SOURCE) == [line]


@pytest.mark.parametrize("mark", ["(xi)", "(xx)", "(iiii)", "(vx)", "xiii)"])
def test_letters_in_brackets_that_count_nothing(mark: str) -> None:
    said = f"Part {mark} of the bridge is shut."
    assert parse_answer(said, text=TEXT) == [Item(said)]


@pytest.mark.parametrize("sign", ["; ", " | ", " / ", " // ", " • ", " · ", ", ", " - ", " – ", "、"])
def test_signs_that_part_sentences(sign: str) -> None:
    assert separated(f"{ONE}{sign}{TWO}", SOURCE, 2) == [ONE, TWO]
    assert separated(f"{ONE}{sign}{TWO}", SOURCE, 1) is None
    assert separated(f'{ONE}{sign}here "closed" was replaced', SOURCE, None) is None
