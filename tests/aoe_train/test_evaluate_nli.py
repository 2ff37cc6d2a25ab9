"""Inference tasks: premise and hypothesis as one input, and which part chooses the penalty."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from aoe_train._evaluate import SUITES, Vectors, find_tasks, summarise
from aoe_train._evaluate.suites import nli
from aoe_train._evaluate.suites.classification import JoinedTask
from aoe_train._evaluate.suites.nli import Nli
from aoe_train._evaluate.suites.probe import predict
from pairkit.errors import DataError
from tests.published import REAL, real_data, write_nli

LABELS = ("entailment", "neutral", "contradiction")
SIZES = {
    "snli-train": 90,
    "snli-dev": 63,
    "snli-test": 30,
    "mnli-train": 90,
    "mnli-validation-matched": 24,
    "mnli-validation-mismatched": 27,
    "taxinli-mnli": 120,
}


def write(folder: Path, name: str, rows: list[str]) -> None:
    path = folder / "nli" / f"{name}.tsv"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(["label\tpremise\thypothesis\tsource_id", *rows]) + "\n")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All files, small."""
    monkeypatch.setattr(nli, "_ROWS", SIZES)
    for name, size in SIZES.items():
        write(
            tmp_path, name, [f"{LABELS[row % 3]}\t{name} {row}\tso what {row}\t{row}" for row in range(size)]
        )
    return tmp_path


def encode(texts: list[str]) -> np.ndarray:
    """Noise, and a hint of the class that the last number gives away."""
    vectors = np.random.default_rng(0).normal(size=(len(texts), 4))
    for row, text in enumerate(texts):
        vectors[row, int(text.split()[-1]) % 3] += 1.5
    return vectors.astype(np.float32)


def test_both_texts_are_one_input(data: Path) -> None:
    tasks, _ = find_tasks(SUITES["nli"](), data, names=["SNLI-from-dev"])
    asked: list[str] = []

    def remember(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return encode(texts)

    Vectors(remember, [tasks[0].texts], separator=" [SEP] ")
    assert len(asked) == SIZES["snli-dev"] + SIZES["snli-test"]
    assert asked[0] == "snli-dev 0 [SEP] so what 0"


def test_every_task_is_judged_on_its_last_part(data: Path) -> None:
    tasks, missing = find_tasks(Nli(), data)
    assert missing == {}
    vectors = Vectors(encode, [task.texts for task in tasks])
    results = {task.name: summarise(task.judge(vectors)) for task in tasks}
    assert {name: result.n for name, result in results.items()} == {
        "MultiNLI": 51,
        "SNLI": 30,
        "SNLI-from-dev": 30,
        "TaxiNLI": sum(crc32(f"taxinli-mnli {row}".encode()) % 4 == 0 for row in range(120)),
    }
    assert all(0.4 < result.scores["accuracy"] < 1 for result in results.values())


def test_either_half_of_multinli_chooses_for_the_other(data: Path) -> None:
    ((task,), _) = find_tasks(Nli(), data, names=["MultiNLI"])
    assert isinstance(task, JoinedTask)
    vectors = Vectors(encode, [task.texts])
    train, mismatched, matched = (part.labelled(vectors) for part in task.tests["matched"].parts)
    assert (len(matched.classes), len(mismatched.classes)) == (24, 27)
    halves = summarise(task.judge(vectors)).subsets
    expected = {
        "matched": np.mean(predict(train, mismatched, matched) == matched.classes),
        "mismatched": np.mean(predict(train, matched, mismatched) == mismatched.classes),
    }
    assert {name: half.scores["accuracy"] for name, half in halves.items()} == pytest.approx(expected)


def test_without_the_training_parts_the_small_tasks_are_left(data: Path) -> None:
    for name in ("snli-train", "mnli-train"):
        (data / "nli" / f"{name}.tsv").unlink()
    tasks, missing = find_tasks(Nli(), data)
    assert [task.name for task in tasks] == ["SNLI-from-dev", "TaxiNLI"]
    assert {name: reason.rpartition("/")[2] for name, reason in missing.items()} == {
        "MultiNLI": "mnli-train.tsv.gz",
        "SNLI": "snli-train.tsv.gz",
    }


def test_bad_files(data: Path) -> None:
    write(data, "taxinli-mnli", ["-\ta\tb\t1"] * SIZES["taxinli-mnli"])
    with pytest.raises(DataError, match=r"taxinli-mnli\.tsv:2: label '-'; expected entailment, neutral"):
        find_tasks(Nli(), data, names=["TaxiNLI"])
    write(data, "taxinli-mnli", ["neutral\ta\tb\t1"])
    with pytest.raises(DataError, match="1 rows, but 120 are published"):
        find_tasks(Nli(), data, names=["TaxiNLI"])
    write(data, "taxinli-mnli", [f"neutral\ta {row}\tb\t1" for row in range(120)])
    ((task,), _) = find_tasks(Nli(), data, names=["TaxiNLI"])
    with pytest.raises(DataError, match="TaxiNLI: every example is of one class"):
        task.judge(Vectors(lambda texts: np.ones((len(texts), 2), np.float32), [task.texts]))


@pytest.mark.parametrize("published", [False, pytest.param(True, marks=real_data)])
def test_files_of_the_published_sizes(tmp_path: Path, published: bool) -> None:
    data = REAL if published else write_nli(tmp_path)
    tasks, _ = find_tasks(Nli(), data, names=["SNLI-from-dev", "TaxiNLI"])
    assert [len(task.texts) for task in tasks] == [9842 + 9824, 10071]
    learnt, judged = (part.columns[0] for part in tasks[1].parts)
    assert {premise for premise, _ in learnt}.isdisjoint(premise for premise, _ in judged)
    assert 0.2 < len(judged) / 10071 < 0.3
