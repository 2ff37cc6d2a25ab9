from __future__ import annotations

from pathlib import Path

import pytest

import pairkit
from pairkit import ConfigError, DataError, LeakError
from tests.pairkit.review_material import judge_all, rows


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    made = pairkit.write({"train": rows(20)[:14], "test": rows(20)[14:]}, tmp_path / "d")
    assert made.out is not None
    return made.out


def reviewed(dataset: Path, answers: dict[str, str]) -> None:
    """Judge all pairs by their texts, by default `yes`."""
    judge_all(pairkit.review(dataset, n=1000), lambda text: answers.get(text.split()[1], "yes"))


def test_rejected_pairs(dataset: Path, tmp_path: Path) -> None:
    reviewed(dataset, {"0": "no", "1": "no", "2": "unsure", "19": "no"})
    before = pairkit.read(dataset)
    made = pairkit.apply_review(dataset, tmp_path / "out")
    # negatives are 0, 3, 6, …, of which only 0 was confirmed; positives 1 and 19 were rejected
    wrong = [place for place in range(20) if place % 3 == 0 and place != 0] + [1, 19]
    assert made.statistics["dropped_pairs"] == {"rejected_by_people": len(wrong)}
    assert made.statistics["reviewed_pairs"] == 20 - len(wrong)
    assert len(made.pairs) == len(before) - len(wrong)
    assert made.pairs.rows.filter(text1=rows()[2]["text1"])["decision"].to_list() == ["unsure"]
    assert set(made.dropped["left_out"]) == {"rejected_by_people"}
    assert pairkit.read(tmp_path / "out").label_kind == "binary"
    card = (tmp_path / "out" / "README.md").read_text()
    assert "## Inspected by hand" in card
    assert "| rejected by people | 8 |" in card


def test_relabelled_pairs(dataset: Path, tmp_path: Path) -> None:
    reviewed(dataset, {"0": "no", "1": "no", "2": "unsure"})
    made = pairkit.apply_review(dataset, tmp_path / "out", relabel=True)
    labels = {row["text1"].split()[1]: row["label"] for row in made.pairs.rows.to_dicts()}
    assert labels == {str(place): int(place > 1) for place in range(20)}
    assert made.statistics["relabelled_pairs"] == 7  # six negatives and pair 1
    assert made.statistics["dropped_pairs"] == {}


def test_all_rows_of_a_pair(tmp_path: Path) -> None:
    pairs = [{"text1": "a b", "text2": "c d", "label": 1}, {"text1": "e f", "text2": "g h", "label": 1}]
    turned = {"text1": "c d", "text2": "a b", "label": 1}
    store = tmp_path / "r.review"
    judge_all(pairkit.review(pairs, store, n=1000), lambda text: "no" if "a" in text else "yes")
    made = pairkit.apply_review([*pairs, turned], store=store)
    assert made.statistics["dropped_pairs"] == {"rejected_by_people": 2}


def test_graded_dataset(tmp_path: Path) -> None:
    pairs = [{"text1": f"a {n}", "text2": f"b {n}", "label": n / 10} for n in range(10)]
    store = tmp_path / "r.review"
    judge_all(pairkit.review(pairs, store, n=1000), lambda _: "4")
    made = pairkit.apply_review(pairs, store=store, relabel=True)
    labels = {row["text1"]: round(row["label"], 3) for row in made.pairs.rows.to_dicts()}
    # grade 4 is 0.8; labels within one grade, from 0.6 on, are unchanged
    assert labels == {f"a {n}": n / 10 if n >= 6 else 0.8 for n in range(10)}
    assert made.statistics["relabelled_pairs"] == 6


def test_leaks_write_nothing(dataset: Path, tmp_path: Path) -> None:
    reviewed(dataset, {})
    leaking = {"train": rows(20), "test": rows(20)[3:5]}
    with pytest.raises(LeakError):
        pairkit.apply_review(leaking, tmp_path / "out", store=tmp_path / "d.review")
    assert not (tmp_path / "out").exists()


def test_missing_or_other_review(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such review"):
        pairkit.apply_review(dataset, tmp_path / "out")
    reviewed(dataset, {})
    with pytest.raises(DataError, match="has no pair of"):
        pairkit.apply_review([{"text1": "x", "text2": "y", "label": 1}], store=tmp_path / "d.review")
