"""The action's steps, run one after the other by bash against a local GitHub, as a runner would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

import gis_builder
from gis_builder._emulator import Server
from gis_builder._suggest.calibration import Calibration
from tests.aoe_train.tiny import save_bert

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".github" / "actions" / "suggest-duplicates"
ACTION: dict[str, Any] = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
REPO, ISSUE, CANONICAL = "quarryhq/quarry", 603, 366
_EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
_IF = re.compile(r"inputs\.(\w+) == '(\w+)'")


def test_no_line_of_shell_holds_what_an_event_says() -> None:
    for step in STEPS:
        assert "${{" not in step.get("run", "")
        assert step.get("shell", "bash") == "bash"
    for words in re.findall(r"github\.event[\w.]*", (FOLDER / "action.yml").read_text(encoding="utf-8")):
        assert words == "github.event.issue.number"


def test_each_input_is_told_and_used() -> None:
    text = json.dumps(STEPS)
    for name, told in ACTION["inputs"].items():
        assert told["description"].endswith(".")
        assert f"inputs.{name} " in text, name
    assert ACTION["inputs"]["mode"]["default"] == "dry-run"


def test_what_was_fetched_is_kept_whatever_becomes_of_the_run() -> None:
    uses = [step.get("uses", "").partition("@")[0] for step in STEPS]
    names = [step.get("name", "") for step in STEPS]
    restore, save = (STEPS[uses.index(f"actions/cache/{what}")] for what in ("restore", "save"))
    assert "always()" in save["if"]
    assert "always()" not in restore["if"]
    assert {**restore["with"], **save["with"]} == restore["with"]  # the same folder by the same key
    assert uses.index("actions/cache/restore") < names.index("Fetch what is new")
    assert names.index("Index what is new") < uses.index("actions/cache/save") < names.index("Suggest")


class Runner:
    """Runs the steps that have a line of shell; what `uses` others is theirs."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.temp = folder / "temp"
        bin_ = folder / "bin"
        for place in (self.temp, bin_):
            place.mkdir()
        for name, package in (("gis", "gis_builder"), ("aoe", "aoe_train")):
            (bin_ / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {package} "$@"\n')
            (bin_ / name).chmod(0o755)
        self.path = os.pathsep.join((str(bin_), os.environ["PATH"]))

    def run(self, **given: str) -> dict[str, Any]:
        """What the action found and did."""
        context = {
            "github.token": "any",
            "github.repository": REPO,
            "github.event.issue.number": str(ISSUE),
            "github.api_url": self.server.url,
            "runner.temp": str(self.temp),
        }
        inputs = {name: str(told.get("default", "")) for name, told in ACTION["inputs"].items()}
        inputs |= {"install": "false", **given}
        context |= {f"inputs.{name}": _filled(value, context) for name, value in inputs.items()}
        output = self.folder / "output"
        output.write_text("")
        for step in STEPS:
            wanted = _IF.fullmatch(step.get("if", ""))
            if "run" in step and not (wanted and context[f"inputs.{wanted[1]}"] != wanted[2]):
                env = {name: _filled(value, context) for name, value in step["env"].items()}
                self._bash(step["run"], {**env, "GITHUB_OUTPUT": str(output)})
        (line,) = output.read_text().splitlines()
        return dict(json.loads(Path(line.removeprefix("suggestions=")).read_text()))

    def _bash(self, text: str, env: Mapping[str, str]) -> None:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text],
            env={
                "PATH": self.path,
                "PYTHONPATH": str(ROOT),
                "HOME": str(self.folder),
                "HF_HUB_OFFLINE": "1",
                **env,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"

    def comments(self) -> list[str]:
        found = requests.get(f"{self.server.url}/repos/{REPO}/issues/{ISSUE}/comments", timeout=10).json()
        return [comment["body"] for comment in found if "gis suggest" in comment["body"]]

    def labels(self) -> list[str]:
        found = requests.get(f"{self.server.url}/repos/{REPO}/issues/{ISSUE}", timeout=10).json()
        return [label["name"] for label in found["labels"]]


def _filled(value: str, context: Mapping[str, str]) -> str:
    return _EXPRESSION.sub(lambda found: context[found[1]], value)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with gis_builder.emulate(ROOT / "data" / "sample") as server:
        yield Runner(server, tmp_path_factory.mktemp("action"))


@pytest.fixture(scope="module")
def inputs(runner: Runner) -> dict[str, str]:
    """A model, and a calibration by which the share of words decides."""
    save_bert(runner.folder / "model")
    learnt = Calibration(["words"], [-2, 20, 0], [-8, 20, 0], [REPO], "2024", 100, 30)
    learnt.write(runner.folder / "calibration.json")
    return {"model": str(runner.folder / "model"), "calibration": str(runner.folder / "calibration.json")}


@pytest.mark.slow  # see test_gis_suggest for its fast twin
def test_a_dry_run_finds_the_older_issue_and_writes_nothing(runner: Runner, inputs: dict[str, str]) -> None:
    found = runner.run(threshold="0.5", **inputs)
    assert (found["issue"], found["comment"]) == (f"{REPO}#{ISSUE}", "would write")
    assert CANONICAL in [one["number"] for one in found["suggestions"]]
    assert f"#{CANONICAL} " in found["text"]
    assert runner.comments() == []


@pytest.mark.slow
def test_two_runs_leave_one_comment_and_a_low_probability_none(
    runner: Runner, inputs: dict[str, str]
) -> None:
    assert runner.run(mode="comment", threshold="0.9999", **inputs)["comment"] == "none"
    assert runner.comments() == []
    assert runner.run(mode="comment", threshold="0.5", **inputs)["comment"] == "written"
    assert runner.run(mode="comment", threshold="0.5", **inputs)["comment"] == "was there"
    (text,) = runner.comments()
    assert f"- #{CANONICAL} (" in text
    assert runner.run(mode="label", threshold="0.5", **inputs)["label"] == "written"
    assert runner.run(mode="label", threshold="0.5", **inputs)["label"] == "was there"
    assert "possible duplicate" in runner.labels()


def test_a_wrong_mode_ends_before_anything_is_written(tmp_path: Path) -> None:
    (step,) = (step for step in STEPS if step.get("id") == "suggest")
    env = dict.fromkeys(step["env"], "x") | {
        "PATH": os.environ["PATH"],
        "CALIBRATION": "",
        "MODE": "$(touch a)",
    }
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "::error::mode: expected dry-run, comment or label\n")
    assert list(tmp_path.iterdir()) == []


def test_a_private_repository_is_fetched_too(tmp_path: Path) -> None:
    (step,) = (step for step in STEPS if step.get("name") == "Fetch what is new")
    (tmp_path / "gis").write_text(f'#!/bin/sh\nfor word; do echo "$word"; done >> "{tmp_path}/$1"\n')
    (tmp_path / "gis").chmod(0o755)
    env = dict.fromkeys(step["env"], str(tmp_path)) | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], env=env, check=True)
    words = (tmp_path / "crawl").read_text().splitlines()
    assert words[-2:] == ["--set", "crawl.include_private=true"]
