"""Where runs report to, against stand-ins for packages that are not installed here."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from transformers.integrations.integration_utils import TrackioCallback, WandbCallback

from aoe_train.training.callbacks import Reports, check_reports, new_name
from pairkit.app.errors import ConfigError


class RefusedError(Exception):
    """What wandb raises."""


def begun(callback: Any, tmp_path: Path, **args: Any) -> tuple[str, Any]:
    """What a run says of where it reports to, and its arguments."""
    said: list[str] = []
    given: Any = SimpleNamespace(run_name=None, project="aoe", **args)
    Reports([callback], given, tmp_path / "m.work").begin("m-1", step=0, say=said.append)
    (line,) = said
    return line, given


def wandb(monkeypatch: pytest.MonkeyPatch, init: Any) -> Any:
    monkeypatch.delenv("WANDB_DIR", raising=False)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    monkeypatch.setitem(sys.modules, "wandb.errors", SimpleNamespace(Error=RefusedError))
    callback = WandbCallback.__new__(WandbCallback)
    callback._wandb = SimpleNamespace(run=None, init=init)
    return callback


@pytest.mark.parametrize("url", ["https://wandb.test/run", None])
def test_wandb_has_its_files_beside_the_model_and_an_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str | None
) -> None:
    asked: dict[str, Any] = {}

    def init(**options: Any) -> None:
        asked.update(options)
        callback._wandb.run = SimpleNamespace(url=url, dir="/runs/offline-1/files")

    callback = wandb(monkeypatch, init)
    line, _ = begun(callback, tmp_path)
    home = str(tmp_path / "m.runs")
    assert asked == {"id": "m-1", "name": "m-1", "project": "aoe", "dir": home, "resume": "allow"}
    place = url or "/runs/offline-1, offline; send it by wandb sync /runs/offline-1"
    assert line == f"wandb: reports to {place}"


def test_wandb_that_refuses_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: Any) -> None:
        raise RefusedError("api_key not configured\n(no-tty)")

    with pytest.raises(
        ConfigError, match=r"^log.report_to 'wandb': api_key .*; run `wandb login`, or set WANDB"
    ):
        begun(wandb(monkeypatch, init), tmp_path)


def test_trackio_is_found_again_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trackio.utils", SimpleNamespace(TRACKIO_DIR=tmp_path / "t"))
    line, args = begun(TrackioCallback.__new__(TrackioCallback), tmp_path)
    assert args.run_name == "m-1"
    assert line == f"trackio: reports to {tmp_path / 't'}; see it by trackio show --project aoe"


def test_names(tmp_path: Path) -> None:
    assert new_name(tmp_path / "model.work").startswith("model-2")
    with pytest.raises(ConfigError, match=r"log.report_to .tensorbord.: .*tensorboard"):
        check_reports(["tensorbord"])
