"""Suites, tasks and their files; vectors are bags of letters, so that no model is needed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.spatial import distance

from aoe_train.evaluation import suites
from aoe_train.evaluation.pairs import PairTask, read_pair_task
from aoe_train.evaluation.suites import read_sts
from aoe_train.evaluation.tasks import Encode, Result, TaskVectors, measured, summarise
from pairkit.app.errors import ConfigError, DataError
from tests.published import REAL, STS_SIZES, real_data, write_sts


class Letters:
    """Texts to counts of letters; remembers what it was asked for."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.calls.append(texts)
        letters = [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz "] for text in texts]
        return np.array(letters, np.float32)


def evaluate(encode: Encode, tasks: list[PairTask]) -> dict[str, Result]:
    vectors = TaskVectors(encode, [task.texts for task in tasks])
    return {task.name: summarise(measured(task, vectors)) for task in tasks}


def by_hand(rows: list[tuple[float, str, str]]) -> tuple[float, float]:
    """Spearman and Pearson, all of it scipy's."""
    cosines = [1 - distance.cosine(*Letters()([one, other]).astype(float)) for _, one, other in rows]
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
    """A data folder with one year and both halves of STS-B, as small as if they had been published so."""
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


def test_all_pairs_of_a_year_at_once_and_by_subset(data: Path) -> None:
    tasks, _ = read_sts(data, names=["STS12"])
    found = evaluate(Letters(), tasks)["STS12"].to_dict()
    rows = [row[1:] for row in YEAR]
    for figures, part in ((found, rows), (found["subsets"]["news"], rows[:3])):
        assert (figures["spearman"], figures["pearson"]) == pytest.approx(by_hand(part), abs=1e-9)
        assert figures["n"] == len(part)
    # both labels of the forum are 4: nothing correlates with that, and nothing is made up
    assert found["subsets"]["forum"] == {"n": 2}
    assert list(found) == ["spearman", "pearson", "n", "subsets"]


def test_tasks_that_are_not_there_are_told_with_the_reason(data: Path) -> None:
    tasks, missing = read_sts(data)
    assert [task.name for task in tasks] == ["STS12", "STS-B"]
    assert list(missing) == ["STS13", "STS14", "STS15", "STS16", "SICK-R"]
    assert missing["SICK-R"] == f"no file {data / 'sick' / 'sick-test.tsv'}"
    with pytest.raises(DataError, match="none of the tasks is here"):
        read_sts(data / "sts")
    with pytest.raises(ConfigError, match=r"no task 'STS11'; there are STS12, .*SICK-R"):
        read_sts(data, names=["STS11"])


def test_dev_is_another_file_and_the_years_have_none(data: Path) -> None:
    (dev,), missing = read_sts(data, split="dev")
    assert missing["STS12"] == "has no dev split"
    (test,), _ = read_sts(data, names=["STS-B"])
    encode = Letters()
    assert evaluate(encode, [dev])["STS-B"].to_dict() != evaluate(encode, [test])["STS-B"].to_dict()
    (tokenised,), _ = read_sts(data, names=["STS12.senteval-tok"])
    assert tokenised.texts[0] == 'he said "no'


def test_another_number_of_rows_than_the_published_one_is_refused(data: Path) -> None:
    path = data / "stsb" / "stsb-dev.tsv"
    path.write_text(path.read_text() + "1\tb\ty\n")
    with pytest.raises(DataError, match=r"stsb-dev\.tsv: 4 rows, but 3 are published"):
        read_sts(data, split="dev")
    assert read_sts(data)[0]  # the test half is as it was


def test_any_file_or_folder_of_pairs_is_a_task(data: Path, tmp_path: Path) -> None:
    task = read_pair_task(str(data / "sts" / "STS12.tsv"))
    assert task.name == "STS12.tsv"
    assert evaluate(Letters(), [task])["STS12.tsv"].n == 5
    with pytest.raises(ConfigError, match="all rows of a file are used"):
        read_pair_task(str(data / "sts" / "STS12.tsv"), "dev")
    folder = tmp_path / "splits"
    folder.mkdir()
    for split, label in (("train", 1), ("validation", 0), ("test", 1)):
        (folder / f"{split}.csv").write_text(f"text1,text2,label\nab,ab,{label}\nab,xyz,{1 - label}\n")
    for name, spearman in ((None, 1), ("test", 1), ("dev", -1)):
        (result,) = evaluate(Letters(), [read_pair_task(str(folder), name)]).values()
        assert result.scores["spearman"] == pytest.approx(spearman)


@pytest.mark.parametrize("published", [False, pytest.param(True, marks=real_data)])
def test_files_with_the_published_numbers_of_pairs(tmp_path: Path, published: bool) -> None:
    tasks, missing = read_sts(REAL if published else write_sts(tmp_path))
    found = evaluate(Letters(), tasks)
    assert {name: result.n for name, result in found.items()} == STS_SIZES
    assert not missing
    for result in found.values():
        assert sum(part.n for part in result.subsets.values()) in (0, result.n)
    assert found["STS15"].scores["spearman"] > 0.4  # letters alone tell something
