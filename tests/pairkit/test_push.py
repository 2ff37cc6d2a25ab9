from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import pairkit
from pairkit.__main__ import application
from pairkit.app.errors import DataError
from pairkit.dataset.export import push_dataset
from pairkit.dataset.records import write_dataset

APP = application()
ROWS = pl.DataFrame({"text1": ["a"], "text2": ["b"], "label": [1]})


@pytest.fixture
def made(tmp_path: Path) -> Path:
    out = tmp_path / "pairs"
    write_dataset(out, {"default": {"train": ROWS}}, card="# Pairs\n", statistics={}, run={})
    # The server of these tests takes texts alone.
    (out / "data/train-00000-of-00001.parquet").write_text("as if it were one")
    return out


def test_a_dataset_arrives_and_nobody_else_sees_it(hub: Any, made: Path) -> None:
    pushed = push_dataset(made, "me/m", public=False, revision=None, dry_run=False, endpoint=hub.url)
    assert pushed.url == f"{hub.url}/me/m/commit/abc"
    assert {*hub.files} == {*pushed.files}
    assert {*pushed.files} >= {
        "README.md",
        "run.json",
        "statistics.json",
        "data/train-00000-of-00001.parquet",
    }
    assert hub.created == [{"name": "m", "organization": "me", "visibility": "private", "type": "dataset"}]
    assert [path for path, _ in hub.asked if "/commit/" in path] == ["/api/datasets/me/m/commit/main"]


def test_a_dry_run_needs_no_token(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    pushed = pairkit.push(made, "me/m", dry_run=True)
    assert pushed.url is None
    assert "would go to me/m" in repr(pushed)
    done = CliRunner().invoke(APP, ["push", str(made), "--repo", "me/m", "--dry-run", "--json"])
    assert json.loads(done.stdout)["files"] == pushed.files


@pytest.mark.parametrize("missing", ["README.md", "run.json", "statistics.json", "data"])
def test_a_dataset_must_say_what_it_is(made: Path, missing: str) -> None:
    (made / missing).rename(made / f".{missing}")
    with pytest.raises(DataError, match=f"there is no {missing}.*as `gis`, `label` or `pairs` write it"):
        pairkit.push(made, "me/m", dry_run=True)
