"""Suites and tasks, their files, and their overlap with training texts; without a model."""

from __future__ import annotations

import json
from pathlib import Path
from string import ascii_lowercase

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.spatial import distance
from sklearn import metrics

from aoe_train.evaluation import suites
from aoe_train.evaluation.overlap import DIGESTS_FILE, Overlap, digests, overlap, read_digests, write_digests
from aoe_train.evaluation.pair_task import PairSource, PairTask, pair_task, read_pair_task
from aoe_train.evaluation.suites import read_sts
from aoe_train.evaluation.tasks import Encode, Result, TaskVectors, measured, summarise
from pairkit import ConfigError, DataError
from tests.published import REAL, STS_SIZES, real_data, write_sts


def letters(texts: list[str]) -> np.ndarray:
    """Counts of letters: vectors without a model."""
    return np.array([[text.lower().count(a) for a in f"{ascii_lowercase} "] for text in texts], np.float32)


def evaluate(encode: Encode, tasks: list[PairTask]) -> dict[str, Result]:
    vectors = TaskVectors(encode, [task.texts for task in tasks])
    return {task.name: summarise(measured(task, vectors)) for task in tasks}


def by_hand(rows: list[tuple[float, str, str]]) -> tuple[float, float]:
    """Spearman and Pearson, computed by scipy."""
    cosines = [1 - distance.cosine(*letters([one, other]).astype(float)) for _, one, other in rows]
    scores = [score for score, _, _ in rows]
    return stats.spearmanr(cosines, scores).statistic, stats.pearsonr(cosines, scores).statistic


YEAR = [
    ("news", 5.0, 'He said "no', 'He said "no to that'),
    ("news", 2.0, "rain falls", "the sun is out"),
    ("news", 1.0, "banks fail", "cows give milk"),
    ("forum", 4.0, "rain falls", "rain fell"),
    ("forum", 4.0, "a b", "b a"),
]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with one year and both splits of STS-B, whose published sizes are patched."""
    small = {"STS12": 5, "STS12.senteval-tok": 5, "STS-B": 3}
    files = {
        name: {split: (file, small.get(name, rows)) for split, (file, rows) in splits.items()}
        for name, splits in suites._FILES.items()
    }
    monkeypatch.setattr(suites, "_FILES", files)
    year = ["year\tsubset\tline\tscore\tsentence1\tsentence2\n"]
    year += [
        f"12\t{subset}\t{row}\t{score}\t{one}\t{other}\n"
        for row, (subset, score, one, other) in enumerate(YEAR)
    ]
    for folder in ("sts", "stsb"):
        (tmp_path / folder).mkdir()
    (tmp_path / "sts" / "STS12.tsv").write_text("".join(year))
    (tmp_path / "sts" / "STS12.senteval-tok.tsv").write_text("".join(year).lower())
    head = "score\tsentence1\tsentence2\n5.0\train falls\train fell\n"
    for split, score in (("test", 3), ("dev", 1)):
        rows = f"{score}\tdogs bark\tcats sleep\n0\ta\tz\n"
        (tmp_path / "stsb" / f"stsb-{split}.tsv").write_text(head + rows)
    return tmp_path


def test_a_year_as_a_whole_and_by_subset(data: Path):
    tasks, _ = read_sts(data, names=["STS12"])
    found = evaluate(letters, tasks)["STS12"].to_dict()
    rows = [row[1:] for row in YEAR]
    for figures, part in ((found, rows), (found["subsets"]["news"], rows[:3])):
        assert (figures["spearman"], figures["pearson"]) == pytest.approx(by_hand(part), abs=1e-9)
        assert figures["n"] == len(part)
    # both labels of the forum are 4: nothing correlates with that, and nothing is made up
    assert found["subsets"]["forum"] == {"n": 2}
    assert list(found) == ["spearman", "pearson", "n", "subsets"]


def test_missing_tasks_have_a_reason(data: Path):
    tasks, missing = read_sts(data)
    assert [task.name for task in tasks] == ["STS12", "STS-B"]
    assert list(missing) == ["STS13", "STS14", "STS15", "STS16", "SICK-R"]
    assert missing["SICK-R"] == f"no file {data / 'sick' / 'sick-test.tsv'}"
    with pytest.raises(DataError, match="contains none of the tasks"):
        read_sts(data / "sts")
    with pytest.raises(ConfigError, match=r"no task 'STS11'; choose from STS12, .*SICK-R"):
        read_sts(data, names=["STS11"])


def test_dev_splits(data: Path):
    (dev,), missing = read_sts(data, split="validation")
    assert missing["STS12"] == "has no validation split"
    (test,), _ = read_sts(data, names=["STS-B"])
    assert evaluate(letters, [dev])["STS-B"].to_dict() != evaluate(letters, [test])["STS-B"].to_dict()
    (tokenised,), _ = read_sts(data, names=["STS12.senteval-tok"])
    assert tokenised.texts[0] == 'he said "no'
    path = data / "stsb" / "stsb-dev.tsv"
    path.write_text(path.read_text() + "1\tb\ty\n")
    with pytest.raises(DataError, match=r"stsb-dev\.tsv: has 4 rows instead of the published 3"):
        read_sts(data, split="validation")
    assert read_sts(data)[0]  # the test half is as it was


def test_files_and_folders_of_pairs_as_tasks(data: Path, tmp_path: Path):
    task = read_pair_task(str(data / "sts" / "STS12.tsv"))
    assert task.name == "STS12.tsv"
    assert evaluate(letters, [task])["STS12.tsv"].n == 5
    with pytest.raises(ConfigError, match="a file has no splits"):
        read_pair_task(str(data / "sts" / "STS12.tsv"), "validation")
    folder = tmp_path / "splits"
    folder.mkdir()
    for split, label in (("train", 1), ("validation", 0), ("test", 1)):
        (folder / f"{split}.csv").write_text(f"text1,text2,label\nab,ab,{label}\nab,xyz,{1 - label}\n")
    for name, spearman in ((None, 1), ("test", 1), ("validation", -1)):
        (result,) = evaluate(letters, [read_pair_task(str(folder), name)]).values()
        assert result.scores["spearman"] == pytest.approx(spearman)


@pytest.mark.parametrize("published", [False, pytest.param(True, marks=real_data)])
def test_files_of_the_published_size(tmp_path: Path, published: bool):
    tasks, missing = read_sts(REAL if published else write_sts(tmp_path))
    found = evaluate(letters, tasks)
    assert ({name: result.n for name, result in found.items()}, missing) == (STS_SIZES, {})
    for result in found.values():
        assert sum(part.n for part in result.subsets.values()) in (0, result.n)
    assert found["STS15"].scores["spearman"] > 0.4  # letters alone tell something


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


def cosines(rows: list[Row]) -> np.ndarray:
    one, other = (letters([row[side] for row in rows]).astype(float) for side in (0, 1))
    return (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


def scores_of(task: PairTask) -> dict[str, float]:
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


def test_thresholds_are_chosen_on_validation_and_applied_to_test(dataset: Path):
    found = scores_of(PairSource(str(dataset)).binary_task())
    labels, known = ([int(row[2]) for row in rows] for rows in (TEST, DEV))
    assert found["roc_auc"] == pytest.approx(metrics.roc_auc_score(labels, cosines(TEST)))
    for name, score in (("f1", metrics.f1_score), ("accuracy", metrics.accuracy_score)):
        limit = found[f"{name}_threshold"]
        chosen_on = [score(known, cosines(DEV) >= value) for value in (limit, *cosines(DEV))]
        assert chosen_on[0] == max(chosen_on)
        assert found[name] == pytest.approx(score(labels, cosines(TEST) >= limit))


def test_no_threshold_metrics_without_validation(dataset: Path):
    figures = ["spearman", "roc_auc", "average_precision", "best_f1", "best_accuracy", "pearson"]
    assert list(scores_of(PairSource(str(dataset), "validation").binary_task())) == figures
    assert list(scores_of(PairSource(str(dataset / "data/validation.jsonl")).binary_task())) == figures
    write(dataset / "data/validation.jsonl", [row for row in DEV if row[2]])
    told: list[str] = []
    assert list(scores_of(PairSource(str(dataset), say=told.append).binary_task())) == figures
    assert told == [f"{dataset}: validation has only one label, so it can't choose thresholds"]


def test_length_buckets_use_the_thresholds_of_all_pairs(dataset: Path):
    task = PairSource(str(dataset)).binary_task()
    verdict = task.measure(TaskVectors(letters, [task.texts]))
    assert {name: n for name, (_, n) in verdict.parts.items()} == {"<128": 4, "128-255": 1, ">=512": 1}
    short, _ = verdict.parts["<128"]
    assert short is not None
    assert short.scores()["f1_threshold"] == verdict.whole.scores()["f1_threshold"]
    assert short.scores()["roc_auc"] == metrics.roc_auc_score([1, 0, 1, 0], cosines(TEST[:4]))
    assert verdict.parts[">=512"] == (None, 1)  # one pair has no ranking


def test_missing_splits(tmp_path: Path):
    write(tmp_path / "train.jsonl", TEST)
    with pytest.raises(DataError, match=r"no split 'test'; choose one of train"):
        PairSource(str(tmp_path), "test").binary_task()
    told: list[str] = []
    task = PairSource(str(tmp_path), say=told.append).binary_task()  # such as `label judge` makes
    assert len(task.rows) == len(TEST)
    assert told == [f"{tmp_path}: using its only split, train"]
    write(tmp_path / "validation.jsonl", TEST)
    with pytest.raises(DataError, match=r"no split 'test'; choose one of train, validation"):
        PairSource(str(tmp_path), "test").binary_task()
    assert len(PairSource(str(tmp_path), say=told.append).binary_task().rows) == len(TEST)
    assert told[1:] == [f"{tmp_path}: has no test split, using validation"]


def pairs_of(*pairs: tuple[str, str]) -> PairTask:
    rows = {"text1": [a for a, _ in pairs], "text2": [b for _, b in pairs], "label": [1.0] * len(pairs)}
    return pair_task("task", pl.DataFrame(rows))


def test_overlap_counts_pairs_and_texts():
    found = overlap(pairs_of(("a", "b"), ("a", "x"), ("y", "z"), ("B", " a ")), digests(["a", "b", "c"]))
    assert found == Overlap(texts=4, of_texts=7, rows=2, of_rows=4)
    assert str(found) == "trained on 2 of its 4 examples (all their texts) and on 4 of its 7 texts"
    known = digests(["The  Straße\tis\nwet."])  # case and white space make no difference, and all else does
    assert overlap(pairs_of(("the strasse is wet.", "the strasse is wet")), known).texts == 1

    class Other:  # a task of single inputs has a row for each
        name, texts = "other", ["a", ("a", "b"), ("b", "c")]

    assert overlap(Other(), digests(["a", "b"])) == Overlap(2, 3, 2, 3)  # type: ignore[arg-type]


def test_hash_files_are_independent_of_order(tmp_path: Path):
    for name, texts in (("one", ["b", "a", "c", "a"]), ("other", ["c", "A", "b"])):
        (tmp_path / name).mkdir()
        write_digests(tmp_path / name, texts)
    assert (tmp_path / "one" / DIGESTS_FILE).read_bytes() == (tmp_path / "other" / DIGESTS_FILE).read_bytes()
    found = read_digests(tmp_path / "one")
    assert found is not None
    assert found.tolist() == sorted({*found.tolist()})
    assert len(found) == 3
    assert read_digests(tmp_path) is None
    (tmp_path / DIGESTS_FILE).write_bytes(b"half")
    with pytest.raises(DataError, match=r"training_texts\.npy: not readable"):
        read_digests(tmp_path)
    np.save(tmp_path / DIGESTS_FILE, np.zeros(3))
    with pytest.raises(DataError, match="expected hashes of texts"):
        read_digests(tmp_path)
