"""Presets lie beneath what is given; what can't be is refused."""

from __future__ import annotations

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
