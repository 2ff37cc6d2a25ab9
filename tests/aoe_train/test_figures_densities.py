"""Groups by gold score, and the numbers of the cosine densities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from aoe_train._figures.densities import cosine_axis, cosine_densities, gold_scores, levels, nearest
from aoe_train._figures.folder import plain
from aoe_train._figures.pairs import Gold, Scored, read_gold, score
from pairkit.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 1, 1, 0], [0, 1]),
        ([1, 0.5, 2], [0.5, 1, 2]),
        ([0, 0.2, 1.4, 2.5, 3.3, 4.1, 4.8], [0, 1, 2, 3, 4, 5]),
        ([1, 1.3, 2.2, 2.9, 3.6, 4.4, 5], [1, 2, 3, 4, 5]),
        ([0, 0.1, 0.25, 0.4, 0.7, 0.9, 1], [0, 0.2, 0.4, 0.6, 0.8, 1]),
    ],
)
def test_levels(labels: list[float], expected: list[float]) -> None:
    assert levels(np.array(labels)) == pytest.approx(expected)


def test_halfway_goes_to_the_higher_level() -> None:
    whole = np.arange(6.0)
    assert nearest(np.array([0, 0.4, 0.5, 2.49, 2.5, 5]), whole).tolist() == [0, 0, 1, 2, 3, 5]


def scored(cosines: list[float], labels: list[float]) -> Scored:
    texts = [str(number) for number in range(len(labels))]
    gold = Gold("pairs", texts, texts, np.array(labels, float))
    pairs = np.zeros((len(labels), 2), int)
    return Scored(gold, np.zeros((1, 2), np.float32), pairs, np.array(cosines))


def test_the_numbers_of_a_panel() -> None:
    low = [-0.97, -0.2, 0.0, 0.1, 0.1, 0.2, 0.3, 0.4]
    one = scored([*low, 0.96, 0.95, 0.99], [0.0] * 8 + [1.0] * 3)
    scores = gold_scores(one.gold)
    assert scores.pairs.tolist() == [8, 3]
    assert (scores.graded, scores.density) == (False, None)
    found = cosine_densities(one.cosines, one.gold.labels, scores, (-1, 1), saturation=0.95)
    assert found.saturated == pytest.approx(3 / 11)  # -0.97, 0.96 and 0.99: 0.95 itself is not above
    assert found.spearman == pytest.approx(stats.spearmanr(one.cosines, one.gold.labels).statistic)
    first, second = found.groups
    assert first.density is not None
    assert (first.saturated, first.median) == pytest.approx((1 / 8, 0.1))
    assert second.density is None  # three pairs are no density
    assert second.cosines is not None
    assert (second.saturated, second.cosines.tolist()) == (pytest.approx(2 / 3), [0.96, 0.95, 0.99])


def test_a_whole_score_that_no_pair_is_near_has_an_empty_row() -> None:
    one = scored(np.linspace(0, 1, 10).tolist(), [0, 0.1, 0.2, 0.3, 0.4, 4.6, 4.7, 4.8, 4.9, 5])
    scores = gold_scores(one.gold)
    assert scores.graded
    assert scores.pairs.tolist() == [5, 0, 0, 0, 0, 5]
    empty = cosine_densities(one.cosines, one.gold.labels, scores, (0, 1), saturation=0.95).groups[2]
    assert (empty.pairs, empty.saturated, empty.median, empty.density) == (0, None, None, None)


def test_all_models_share_an_axis_that_holds_every_cosine() -> None:
    assert cosine_axis([np.array([0.31, 1.0]), np.array([0.12, 0.9])]) == pytest.approx((0.0, 1.0))
    assert cosine_axis([np.array([-0.98])]) == (-1.0, 1.0)


def test_labels_that_do_not_differ(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("text1,text2,label\na,b,3.5\nc,d,3.5\n")
    with pytest.raises(
        DataError, match=r"pairs\.csv: every label is 3\.5; figures .* need labels that differ"
    ):
        read_gold(str(path))


def test_a_file_has_no_splits_and_a_folder_gives_its_test_split(tmp_path: Path) -> None:
    for split, word in (("train", "a"), ("test", "b")):
        (tmp_path / f"{split}.csv").write_text(f"text1,text2,label\n{word},x,4.8\n{word},y,0.2\n")
    gold = read_gold(str(tmp_path))
    assert gold.text1 == ["b", "b"]
    assert gold.labels.tolist() == [4.8, 0.2]  # not 4.80000019
    with pytest.raises(ConfigError, match="all rows of a file are used; leave --split dev out"):
        read_gold(str(tmp_path / "test.csv"), "dev")


def test_this_very_folder_has_a_name_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test.csv").write_text("text1,text2,label\na,b,1\nc,d,0\n")
    monkeypatch.chdir(tmp_path)
    assert read_gold(".").name == tmp_path.name


def test_what_is_no_number_is_none_in_the_record() -> None:
    assert plain({"loss": [float("nan"), float("inf"), 0.12345678]}) == {"loss": [None, None, 0.123457]}


def test_vectors_that_are_not_numbers() -> None:
    gold = Gold("pairs", ["a", "b"], ["c", "d"], np.array([0.0, 1.0]))
    vectors = np.ones((4, 2), np.float32)
    vectors[2] = np.nan
    with pytest.raises(DataError, match=r"pairs: the model gives 1 of 4 texts vectors that are not numbers"):
        score(lambda texts: vectors, gold)
    with pytest.raises(DataError, match="every cosine is 1"):
        score(lambda texts: np.ones((4, 2), np.float32), gold)
