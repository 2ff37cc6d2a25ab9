"""The suite of binary pairs: files, splits, thresholds from other pairs, lengths."""

from __future__ import annotations

import json
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import pytest
from sklearn import metrics

from aoe_train.evaluation.pairs import PairTask, length_buckets, read_binary_task
from aoe_train.evaluation.tasks import TaskVectors
from pairkit.app.errors import DataError

Row = tuple[str, str, float]

TEST: list[Row] = [
    ("panic on save", "panic on saving", 1),
    ("panic on save", "the window is red", 0),
    ("slow start", "start is slow", 1),
    ("slow start", "low stars", 0),
    ("x" * 1200, "y" * 3600 + " x", 0),
    ("x" * 1200, "x" * 1100, 1),
]
DEV: list[Row] = [("typo", "type", 1), ("typo", "manual", 0), ("crash", "crab", 1), ("crash", "docs", 0)]


def letters(texts: list[str]) -> np.ndarray:
    """Counts of letters: vectors without a model."""
    return np.array([[text.count(letter) for letter in f"{ascii_lowercase} "] for text in texts], np.float32)


def cosines(rows: list[Row]) -> np.ndarray:
    one, other = (letters([row[side] for row in rows]).astype(float) for side in (0, 1))
    return (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


def scores(task: PairTask) -> dict[str, float]:
    return task.measure(TaskVectors(letters, [task.texts])).whole.scores()


def write(path: Path, rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(dict(zip(("text1", "text2", "label"), row, strict=True))) for row in rows]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A dataset with all splits, its test split in two files."""
    folder = tmp_path / "issues"
    write(folder / "data" / "test-00000-of-00002.jsonl", TEST[:4])
    write(folder / "data" / "test-00001-of-00002.jsonl", TEST[4:])
    write(folder / "data" / "validation.jsonl", DEV)
    write(folder / "data" / "train.jsonl", [("never", "read", 1)])
    return folder


def test_thresholds_are_chosen_on_validation_and_applied_to_test(dataset: Path) -> None:
    found = scores(read_binary_task(str(dataset)))
    labels, known = ([int(row[2]) for row in rows] for rows in (TEST, DEV))
    assert found["roc_auc"] == pytest.approx(metrics.roc_auc_score(labels, cosines(TEST)))
    for name, score in (("f1", metrics.f1_score), ("accuracy", metrics.accuracy_score)):
        limit = found[f"{name}_threshold"]
        chosen_on = [score(known, cosines(DEV) >= value) for value in (limit, *cosines(DEV))]
        assert chosen_on[0] == max(chosen_on)
        assert found[name] == pytest.approx(score(labels, cosines(TEST) >= limit))


def test_without_other_pairs_there_are_no_figures_at_their_thresholds(dataset: Path) -> None:
    figures = ["spearman", "roc_auc", "average_precision", "best_f1", "best_accuracy", "pearson"]
    assert list(scores(read_binary_task(str(dataset), "dev"))) == figures
    assert list(scores(read_binary_task(str(dataset / "data/validation.jsonl")))) == figures
    write(dataset / "data/validation.jsonl", [row for row in DEV if row[2]])
    told: list[str] = []
    assert list(scores(read_binary_task(str(dataset), say=told.append))) == figures
    assert told == [f"{dataset}: all labels of validation are alike, so it chooses no thresholds"]


def test_buckets_by_the_longer_text_with_the_thresholds_of_all(dataset: Path) -> None:
    task = read_binary_task(str(dataset))
    verdict = task.measure(TaskVectors(letters, [task.texts]))
    assert {name: n for name, (_, n) in verdict.parts.items()} == {"<128": 4, "128-255": 1, ">=512": 1}
    short, _ = verdict.parts["<128"]
    assert short is not None
    assert short.scores()["f1_threshold"] == verdict.whole.scores()["f1_threshold"]
    assert short.scores()["roc_auc"] == metrics.roc_auc_score([1, 0, 1, 0], cosines(TEST[:4]))
    assert verdict.parts[">=512"] == (None, 1)  # one pair has no ranking


def test_lengths_count_two_more_than_the_words() -> None:
    texts = ["word " * words for words in (125, 126, 253, 254, 509, 510)]
    found = length_buckets(texts, ["a"] * 6)
    assert {name: rows.tolist() for name, rows in found.items()} == {
        "<128": [0],
        "128-255": [1, 2],
        "256-511": [3, 4],
        ">=512": [5],
    }
    assert length_buckets(["a"], ["word " * 600])[">=512"].tolist() == [0]  # the longer one, on either side


def test_a_dataset_without_the_split(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", TEST)
    with pytest.raises(DataError, match=r"no split 'test'; there are train"):
        read_binary_task(str(tmp_path), "test")
    told: list[str] = []
    task = read_binary_task(str(tmp_path), say=told.append)  # such as `label judge` makes
    assert len(task.rows) == len(TEST)
    assert told == [f"{tmp_path}: train is its only split, and is judged"]
    write(tmp_path / "validation.jsonl", TEST)
    with pytest.raises(DataError, match=r"no split 'test'; there are train, validation"):
        read_binary_task(str(tmp_path))
