"""From flags to tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from aoe_train._evaluate import ALL, SUITES, choose_pairs, choose_tasks
from aoe_train._evaluate.suites import sts
from pairkit.errors import ConfigError, DataError


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sts, "_ROWS", {"STS-B": 2, "SICK-R": 2})
    for place in ("stsb/stsb-test.tsv", "sick/sick-test.tsv"):
        (tmp_path / place).parent.mkdir()
        (tmp_path / place).write_text("score\tsentence1\tsentence2\n1\ta\tb\n2\tc\td\n")
    return tmp_path


def test_all_suites_are_those_that_are_there(data: Path) -> None:
    chosen = choose_tasks(ALL, data, (), "test")
    assert [task.name for task in chosen.tasks["sts"]] == ["STS-B", "SICK-R"]
    assert list(chosen.tasks) == ["sts"]
    assert {"STS12", "transfer", "nli", "retrieval", "gis"} <= set(chosen.missing)


def test_a_damaged_file_is_never_left_out(data: Path) -> None:
    with (data / "sick/sick-test.tsv").open("a") as file:
        file.write("3\te\tf\n")
    with pytest.raises(DataError, match="3 rows, but 2 are published"):
        choose_tasks(ALL, data, (), "test")


def test_one_suite(data: Path) -> None:
    assert [task.name for task in choose_tasks("sts", data, ["SICK-R"], "test").tasks["sts"]] == ["SICK-R"]


def test_pairs_of_ones_own_are_judged_as_a_suite_judges_pairs(tmp_path: Path) -> None:
    file = tmp_path / "mine.tsv"
    file.write_text("text1\ttext2\tlabel\na\tb\t1\nc\td\t0\n")
    for suite in ("sts", "gis"):
        ((name, (task,)),) = choose_pairs(suite, str(file), None).tasks.items()
        assert (name, task.name) == (suite, "mine.tsv")
        assert set(task.texts) == {*"abcd"}
    with pytest.raises(ConfigError, match="judged as one of the suites sts, gis, duplicates, not nli"):
        choose_pairs("nli", str(file), None)


def test_what_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"--suite glue: expected {', '.join(SUITES)}, mteb or all"):
        choose_tasks("glue", data, (), "test")
    with pytest.raises(ConfigError, match="one suite"):
        choose_tasks(ALL, data, ["STS12"], "test")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no task of any suite"):
        choose_tasks(ALL, tmp_path / "empty", (), "test")
