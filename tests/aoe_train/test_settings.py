"""Presets lie beneath what is given; help needs no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from aoe_train.objectives.settings import PRESETS as OBJECTIVES
from aoe_train.settings.training import TrainSettings
from pairkit.app.errors import ConfigError
from pairkit.app.settings import load_settings


@pytest.mark.parametrize("preset", OBJECTIVES)
def test_a_preset_is_its_objective_and_the_papers_have_all_else(preset: str) -> None:
    settings = load_settings(TrainSettings, flags={"preset": preset})
    papers = load_settings(TrainSettings, flags={"preset": f"{preset}-paper"})
    assert settings.objective == papers.objective == OBJECTIVES[preset]
    assert {"lr", "epochs", "batch_size", "average", "scheduler"} <= papers.optim.model_fields_set
    assert "optim" not in settings.model_fields_set


def test_what_is_given_lies_above_the_preset() -> None:
    settings = load_settings(
        TrainSettings,
        assignments=["objective.weights.ibn=35", "objective.tau.angle=0.05"],
        flags={"preset": "angle"},
    )
    assert settings.objective.weights.wanted == {"cosine": 1, "ibn": 35, "angle": 1}
    assert settings.objective.tau.angle == 0.05


def test_the_default_preset_counts_as_given() -> None:
    assert TrainSettings().objective == TrainSettings.model_validate({}).objective


@pytest.mark.parametrize(
    ("papers", "ours"),
    [("last-avg", "avg"), ("last-max", "max"), ("cls-last-avg", "cls-avg"), ("cls", "cls")],
)
def test_the_papers_names_of_poolings(papers: str, ours: str) -> None:
    assert load_settings(TrainSettings, flags={"encoder.pooling": papers}).encoder.pooling == ours


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("preset=angel", "expected one of auto, angle"),
        ("encoder.pooling=mean", "'avg'"),
        ("encoder.prompts.a={text} {text}", "expected {text} in it once"),
        ("optim.lr=0", "greater than 0"),
        ("optim.batch_size=1", "greater than or equal to 2"),
        ("optim.learning_rate=1", "unknown setting 'optim.learning_rate'"),
        ("optim.lr=nan", "finite"),
    ],
)
def test_what_is_refused(assignment: str, words: str) -> None:
    with pytest.raises(ConfigError, match="setting") as raised:
        load_settings(TrainSettings, assignments=[assignment])
    assert words in str(raised.value)


COMMANDS = [*("train", "encode", "evaluate", "export", "push")]
WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""
RUN = "from aoe_train.cli import main; main()"
HELP = """
import aoe_train.objectives.kinds, aoe_train.settings.training
from aoe_train.cli import app
for command in sys.argv[1:]:
    app([command, "--help"], standalone_mode=False)
    print("end of help")
"""


def _python(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_help_has_examples_and_needs_no_torch() -> None:
    """All in one process, which takes longer to begin than to help."""
    helped = _python("-c", WITHOUT_TORCH + HELP, *COMMANDS)
    assert helped.returncode == 0, helped.stderr
    *pages, rest = helped.stdout.split("end of help\n")
    assert rest == ""
    for command, page in zip(COMMANDS, pages, strict=True):
        assert "Examples" in page
        assert f"aoe {command}" in page


def test_without_torch_it_says_what_to_install(bert: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a\n")
    arguments = ("encode", str(tmp_path / "t.txt"), "-m", str(bert), "-o", str(tmp_path / "v.npy"))
    found = _python("-c", WITHOUT_TORCH + RUN, *arguments)
    assert found.returncode == 2
    assert "pip install 'aoe-toolkit[train]'" in found.stderr
    assert "Traceback" not in found.stderr
