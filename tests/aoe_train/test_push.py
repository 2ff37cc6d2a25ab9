from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import aoe_train.commands.push
from aoe_train.commands.app import app
from aoe_train.exporting.hub import listing, push
from pairkit.app.errors import DataError

FILES = {"README.md": "# A model\n", "run.json": "{}\n", "1_Pooling/config.json": '{"a": 1}\n'}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / "m" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "m" / name).write_text(text)
    return tmp_path / "m"


def test_a_model_arrives(hub: Any, model: Path) -> None:
    assert push(model, "me/m", endpoint=hub.url).url == f"{hub.url}/me/m/commit/abc"
    assert hub.files == FILES
    assert "/api/models/me/m/commit/main" in [path for path, _ in hub.asked]


@pytest.mark.parametrize("missing", ["README.md", "run.json"])
def test_a_model_must_say_what_it_is(model: Path, missing: str) -> None:
    (model / missing).unlink()
    with pytest.raises(DataError, match=missing):
        listing(model)


def test_dry_run_lists_and_sends_nothing(model: Path) -> None:
    assert aoe_train.commands.push.push.__doc__
    flags = ["push", "--model", str(model), "--repo", "me/m", "--dry-run"]
    found = CliRunner().invoke(app, flags, catch_exceptions=False)
    assert found.exit_code == 0
    found = CliRunner().invoke(app, [*flags, "--json"], catch_exceptions=False)
    said = json.loads(found.stdout.splitlines()[-1])
    assert said["files"] == {name: len(text) for name, text in FILES.items()}
    assert said["url"] is None


def test_the_command_says_where_it_went_and_what_is_next(
    hub: Any, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    found = CliRunner().invoke(app, ["push", "--model", str(model), "--repo", "me/m"], catch_exceptions=False)
    assert found.exit_code == 0
    assert found.stdout.strip() == f"{hub.url}/me/m/commit/abc"
    assert "aoe encode TEXTS.txt --model me/m" in found.stderr
