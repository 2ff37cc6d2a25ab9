from __future__ import annotations

from pathlib import Path

import pytest

from pairkit import ConfigError
from pairkit.base.system.folders import (
    check_apart,
    differing,
    held_folder,
    work_beside,
)


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


def test_default_working_folder() -> None:
    assert work_beside(Path("pairs.v1")).name == "pairs.v1.work"


def test_differing() -> None:
    there = {"seed": 1, "model": {"name": "a", "layers": [1, 2]}, "gone": True}
    here = {"seed": 2, "model": {"name": "a", "layers": (1, 2)}}
    assert differing(there, here) == ["gone (True there, None now)", "seed (1 there, 2 now)"]
    assert differing(there, there) == []
