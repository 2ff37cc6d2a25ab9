import json
from pathlib import Path

import pytest

from gis_builder.store.folders import check_out, working_folder
from pairkit.app.errors import ConfigError
from pairkit.system.folders import check_apart, work_beside


def write_run(out: Path, settings: dict[str, object], repos: list[str]) -> None:
    out.mkdir(parents=True)
    run = {"made_by": "gis (test)", "settings": settings, "repositories": dict.fromkeys(repos)}
    (out / "run.json").write_text(json.dumps(run))


@pytest.mark.parametrize("out", [".", "/", "..", "a/.."])
def test_a_dataset_needs_a_name(out: str) -> None:
    with pytest.raises(ConfigError, match="give it a name"):
        work_beside(Path(out))
    with pytest.raises(ConfigError, match="give it a name"):
        check_out(Path(out), ["a/b"], {}, fresh=True)


def test_the_working_folder_stands_beside() -> None:
    assert work_beside(Path("data/gis.v1")) == Path("data/gis.v1.work")


@pytest.mark.parametrize("work", ["gis", "gis/work", "gis/a/b", "x/../gis", "link/work"])
def test_a_dataset_never_replaces_its_working_folder(
    tmp_path: Path, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gis").mkdir()
    Path("link").symlink_to("gis")
    with pytest.raises(ConfigError, match="would replace the working folder"):
        check_apart(Path("gis"), Path(work))
    check_apart(Path("gis"), Path("gis.work"))
    check_apart(Path("work/gis"), Path("work"))


def test_a_dataset_of_the_same_is_no_hindrance(tmp_path: Path) -> None:
    write_run(tmp_path / "o", {"seed": 1}, ["a/b"])
    check_out(tmp_path / "o", ["a/b"], {"seed": 1}, fresh=False)
    for repos, settings in ((["a/c"], {"seed": 1}), (["a/b"], {"seed": 2})):
        with pytest.raises(ConfigError, match="give --fresh"):
            check_out(tmp_path / "o", repos, settings, fresh=False)
        check_out(tmp_path / "o", repos, settings, fresh=True)


def test_a_misspelt_working_folder_is_not_made(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match="no such working folder"),
        working_folder(tmp_path / "w", create=False),
    ):
        pass
    assert not (tmp_path / "w").exists()
