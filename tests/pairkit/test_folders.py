"""Folders of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairkit.errors import ConfigError
from pairkit.folders import check_apart, check_name, held_folder, work_beside


def test_the_working_folder_stands_beside_the_dataset() -> None:
    assert work_beside(Path("a/pairs.v1")) == Path("a/pairs.v1.work")


@pytest.mark.parametrize("out", [".", "..", "/"])
def test_a_dataset_has_a_name_of_its_own(out: str) -> None:
    with pytest.raises(ConfigError, match="folder of its own"):
        check_name(Path(out))


@pytest.mark.parametrize("work", ["pairs", "pairs/work", "pairs/a/b"])
def test_a_dataset_never_holds_its_working_folder(work: str) -> None:
    with pytest.raises(ConfigError, match="would replace"):
        check_apart(Path("pairs"), Path(work))
    check_apart(Path("work/pairs"), Path("work"))


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        held_folder(tmp_path / "w", "busy; wait"),
        pytest.raises(ConfigError, match="w: busy; wait"),
        held_folder(tmp_path / "w", "busy; wait"),
    ):
        pass
    with held_folder(tmp_path / "w", "busy; wait"):
        pass
