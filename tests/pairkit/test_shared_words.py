from hypothesis import given
from hypothesis import strategies as st

from pairkit.shared_words import common_words, distinct_words, split_at_words


def test_words_in_many_texts_are_common() -> None:
    texts = [f"the parser{n}" for n in range(400)] + ["rare word"] * 20 + ["often seen"] * 24
    assert common_words(texts) == {"the", "often", "seen"}  # more than a twentieth of 444 texts


def test_in_a_small_dataset_ten_texts_are_not_many() -> None:
    assert common_words(["startup crash"] * 10) == frozenset()
    assert common_words(["startup crash"] * 11) == {"startup", "crash"}


def test_pieces_keep_case_and_leave_parts_of_words_alone() -> None:
    assert split_at_words("Crash, crashes", {"crash"}) == [("Crash", True), (", crashes", False)]
    assert split_at_words("", {"crash"}) == []


@given(st.text(), st.sets(st.text(max_size=5), max_size=5))
def test_the_pieces_are_the_text(text: str, marked: set[str]) -> None:
    marked |= set(sorted(distinct_words(text))[:2])
    pieces = split_at_words(text, marked)
    assert "".join(piece for piece, _ in pieces) == text
    assert all(piece.lower() in marked for piece, is_marked in pieces if is_marked)
