from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairkit.similarity import near_duplicates as similar
from pairkit.similarity.groups import Groups
from pairkit.similarity.near_duplicates import near_identical, similarity
from tests.pairkit.peak import peak_mib

WORDS = [f"w{n}" for n in range(300)]


def text(seed: int, words: int = 60) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def changed(original: str, *places: int) -> str:
    words = original.split()
    for place in places:
        words[place] = "other"
    return " ".join(words)


def test_similarity() -> None:
    # abc bcd cde | abc bcd cdf: two of four triples are common.
    assert similarity("a b c d e", "a b c d f") == pytest.approx(2 / 4)
    assert similarity("A, b c!", "a b c") == 1.0
    assert similarity("a b", "a b") == 1.0
    assert similarity("a b", "b a") == 0.0
    assert similarity("", "a") == similarity("!!", "!!") == 0.0
    chinese = ("无法保存文件，因为磁盘已满，请重试一次", "无法保存文件，因为磁盘已满，请重试两次")
    assert similarity(*chinese) > 0.6


def test_near_identical() -> None:
    texts = [text(n) for n in range(200)]
    texts += [changed(texts[3], 30), texts[7].upper(), changed(texts[9], 5, 15, 25, 35, 45, 55)]
    assert near_identical(texts) == [[3, 200], [7, 201]]


def test_chains() -> None:
    first = text(1, 90)
    second = changed(first, 20)
    third = changed(second, 50)
    assert similarity(first, third) < 0.9 <= similarity(first, second)
    assert near_identical([first, second, third], 0.9) == [[0, 1, 2]]
    assert near_identical([first, second, first + "!"], 1.0) == [[0, 2]]


def test_texts_without_words() -> None:
    assert near_identical(["", "", "!!!", "!!!", "..."]) == []
    assert near_identical([]) == []


def of_template(seed: int, slots: int, *, values: int) -> str:
    """A text of 90 words with a number of slots, each with one of several values."""
    words, random_ = text(1, 90).split(), random.Random(seed)
    for slot in range(slots):
        words[90 // slots * slot] = f"value{random_.randrange(values)}"
    return " ".join(words)


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 200), min_size=2, max_size=40),
    st.integers(1, 8),
    st.sampled_from([2, 1000]),
    st.randoms(use_true_random=False),
)
def test_template(seeds: list[int], slots: int, values: int, random_: random.Random) -> None:
    """Groups need similarity, don't depend on order, and a subset has no additional ones."""
    texts = [of_template(seed, slots, values=values) for seed in seeds]
    exact = Groups(range(len(texts)))
    for one, other in combinations(range(len(texts)), 2):
        if similarity(texts[one], texts[other]) >= 0.8:
            exact.join(one, other)
    found = near_identical(texts)
    assert all(exact.find(group[0]) == exact.find(place) for group in found for place in group)
    order = random_.sample(range(len(texts)), len(texts))
    moved = near_identical([texts[place] for place in order])
    assert sorted(sorted(order[place] for place in group) for group in moved) == sorted(found)
    whole = {place: number for number, group in enumerate(found) for place in group}
    for group in near_identical(texts[: len(texts) // 2]):
        assert len({whole[place] for place in group}) == 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 59)), max_size=40), st.integers(0, 3000))
def test_texts_on_disk(kinds: list[tuple[int, int]], in_memory: int) -> None:
    texts = [changed(text(kind), place) for kind, place in kinds]
    expected = near_identical(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similar, "_IN_MEMORY", in_memory)
        patch.setattr(similar, "CHUNK", 3)
        assert near_identical(texts) == expected


@pytest.mark.parametrize(("changes", "least"), [(3, 0.99), (6, 0.93)])
def test_recall_at_the_threshold(changes: int, least: float) -> None:
    """Pairs at 0.9 almost surely, at 0.8 with probability 0.95."""
    count = 300
    first = [" ".join(f"p{n}w{k}" for k in range(170)) for n in range(count)]
    other = [changed(one, *range(10, 10 + 27 * changes, 27)) for one in first]
    assert {round(similarity(*pair), 1) for pair in zip(first, other, strict=True)} == {
        0.9 if changes == 3 else 0.8
    }
    assert len(near_identical(first + other)) >= least * count


def test_memory_for_a_template(tmp_path: Path) -> None:
    """Nearly all pairs are just below the threshold."""
    program = tmp_path / "program.py"
    program.write_text(
        "from pairkit.similarity.near_duplicates import near_identical\n"
        "from tests.pairkit.test_similar import of_template\n"
        "near_identical([of_template(seed, 9, values=10**6) for seed in range(3000)])\n"
    )
    imports = "import runpy\nimport tests.pairkit.test_similar"
    says, taken = peak_mib(imports, "runpy.run_path(sys.argv[1])", program)
    assert says == "done"
    assert taken < 150
