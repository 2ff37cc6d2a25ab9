from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairkit.similar import near_identical, similarity

WORDS = [f"w{n}" for n in range(300)]


def text(seed: int, words: int = 60) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def changed(original: str, *places: int) -> str:
    words = original.split()
    for place in places:
        words[place] = "other"
    return " ".join(words)


def test_similarity_by_hand() -> None:
    # abc bcd cde | abc bcd cdf: two of four triples are common.
    assert similarity("a b c d e", "a b c d f") == pytest.approx(2 / 4)
    assert similarity("A, b c!", "a b c") == 1.0
    assert similarity("a b", "a b") == 1.0
    assert similarity("a b", "b a") == 0.0
    assert similarity("", "a") == similarity("!!", "!!") == 0.0


def test_near_identical_texts_are_found_and_others_not() -> None:
    texts = [text(n) for n in range(200)]
    texts += [changed(texts[3], 30), texts[7].upper(), changed(texts[9], 5, 15, 25, 35, 45, 55)]
    assert near_identical(texts) == [[3, 200], [7, 201]]


def test_chains_are_one_group() -> None:
    first = text(1, 90)
    second = changed(first, 20)
    third = changed(second, 50)
    assert similarity(first, third) < 0.9 <= similarity(first, second)
    assert near_identical([first, second, third], 0.9) == [[0, 1, 2]]


def test_texts_without_words_are_never_tied() -> None:
    assert near_identical(["", "", "!!!", "!!!", "..."]) == []
    assert near_identical([]) == []


def test_a_threshold_of_one_ties_equal_texts_only() -> None:
    first = text(1)
    assert near_identical([first, changed(first, 3), first + "!"], 1.0) == [[0, 2]]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 59)), min_size=2, max_size=12), st.integers(1, 10)
)
def test_a_part_never_has_ties_that_the_whole_lacks(kinds: list[tuple[int, int]], part: int) -> None:
    texts = [changed(text(kind), place) for kind, place in kinds]
    whole = {place: number for number, group in enumerate(near_identical(texts)) for place in group}
    for group in near_identical(texts[:part]):
        assert len({whole[place] for place in group}) == 1


def test_no_process_or_hash_seed_changes_anything(tmp_path: Path) -> None:
    texts = [changed(text(n % 40), n % 60) for n in range(120)]
    (tmp_path / "texts").write_text("\n".join(texts))
    program = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
    program += "from pairkit.similar import near_identical\n"
    program += f"print(near_identical(open({str(tmp_path / 'texts')!r}).read().split('\\n')))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{near_identical(texts)}\n"}
