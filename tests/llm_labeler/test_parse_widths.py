from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llm_labeler._parse.widths import narrow, widened
from llm_labeler._records import Item


def test_by_hand() -> None:
    answer = "１．他说：“好，我去！”\n２．**他**走（了）。"
    assert narrow(answer) == "1.他说:“好,我去!”\n2.**他**走(了)。"
    items = [Item("他说:“好,我去!”"), Item("他走(了)。"), Item("not there:")]
    assert [item.text for item in widened(items, answer)] == [
        "他说：“好，我去！”",
        "他走（了）。",
        "not there:",
    ]


def test_in_order_of_the_answer() -> None:
    items = [Item("a:"), Item("a:", "echo")]
    assert widened(items, "a： b a:") == [Item("a："), Item("a:", "echo")]


@given(st.text(st.sampled_from("ab:：，, \n*１1")))
def test_lengths_stay_and_narrow_text_is_itself(answer: str) -> None:
    assert len(narrow(answer)) == len(answer)
    assert narrow(narrow(answer)) == narrow(answer)
    (item,) = widened([Item(" ".join(narrow(answer).split()))], answer)
    assert narrow(item.text) == " ".join(narrow(answer).split())
    assert item.text == " ".join(answer.replace("　", " ").split())
