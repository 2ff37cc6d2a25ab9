from __future__ import annotations

import json
from pathlib import Path

import pytest

from pairkit import ConfigError
from pairkit.base.system.folders import (
    check_apart,
    check_place,
    differing,
    held_folder,
    made_there,
    read_own,
    work_beside,
)


@pytest.mark.parametrize("out", [".", "..", "/"])
def test_invalid_output_paths(out: str) -> None:
    with pytest.raises(ConfigError, match="a dataset needs a folder of its own"):
        check_place(Path(out))


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "[]", "1" * 5_000, "\udcff", ""], ids=range(6))
def test_folders_of_others(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    assert read_own(path) is None
    path.write_bytes(text.encode(errors="surrogateescape"))
    assert read_own(path) is None
    with pytest.raises(ConfigError, match="not a dataset of `gis`"):
        made_there(tmp_path, "gis")
    path.write_text("{}")
    assert read_own(path) == {}


def test_other_files_in_a_dataset_folder(tmp_path: Path) -> None:
    names = ("README.md", "run.json", "statistics.json", "data/train-00000-of-00001.parquet")
    for name in (*names, "triplet/test-00000-of-00001.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"made_by": "gis 0.1"}))
    assert made_there(tmp_path, "gis") == {"made_by": "gis 0.1"}
    for name in (".git/config", "data/notes.txt", "labels.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
        with pytest.raises(ConfigError, match=f"has {name}, which isn't part of a dataset of `gis`"):
            made_there(tmp_path, "gis")
        (tmp_path / name).unlink()


@pytest.mark.parametrize("work", ["pairs", "pairs/work", "pairs/a/b"])
def test_working_folder_in_the_dataset_folder(work: str) -> None:
    with pytest.raises(ConfigError, match="would replace"):
        check_apart(Path("pairs"), Path(work))
    check_apart(Path("work/pairs"), Path("work"))


def test_lock(tmp_path: Path) -> None:
    with (
        held_folder(tmp_path / "w", "busy; wait"),
        pytest.raises(ConfigError, match="w: busy; wait"),
        held_folder(tmp_path / "w", "busy; wait"),
    ):
        pass
    with held_folder(tmp_path / "w", "busy; wait"):
        pass


def test_differing() -> None:
    there = {"seed": 1, "model": {"name": "a", "layers": [1, 2]}, "gone": True}
    here = {"seed": 2, "model": {"name": "a", "layers": (1, 2)}}
    assert differing(there, here) == ["gone (True there, None now)", "seed (1 there, 2 now)"]
    assert differing(there, there) == []


def test_output_folder_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(ConfigError, match="mine: is a file"):
        check_place(tmp_path / "mine")
    assert work_beside(tmp_path / "pairs.v1").name == "pairs.v1.work"
