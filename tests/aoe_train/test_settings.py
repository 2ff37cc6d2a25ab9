"""Presets, refused settings, and defaults by rows and backbone."""

import subprocess
import sys
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.data.defaults import (
    DatasetFacts,
    default_objective,
    depends_on_auc,
    first_person_share,
    format_decoder_choices,
    unused_lengths_warning,
    with_decoder_defaults,
    with_defaults,
)
from aoe_train.objectives.kinds import check_objective
from aoe_train.objectives.objective_settings import PRESETS as OBJECTIVES
from aoe_train.objectives.objective_settings import Taus
from aoe_train.objectives.training_rows import Kind
from aoe_train.settings.train_settings import EncoderSettings, LoraSettings, TrainSettings
from pairkit import ConfigError
from pairkit.base.settings import load_settings


@pytest.mark.parametrize("preset", OBJECTIVES)
def test_presets_and_paper_presets(preset):
    settings, papers = preset_of(preset), preset_of(f"{preset}-paper")
    assert settings.objective == OBJECTIVES[preset]
    papers_own = {"angle": {"duplicates": "positive"}, "aoe": {"tau": Taus(angle=0.05)}}.get(preset, {})
    assert papers.objective == OBJECTIVES[preset].model_copy(update=papers_own)
    assert "optim" not in settings.model_fields_set
    assert {"lr", "epochs", "batch_size", "average", "scheduler"} <= papers.optim.model_fields_set
    assert (papers.optim.lr, papers.optim.epochs, papers.optim.batch_size) == (5e-5, 1, 32)
    assert (papers.objective.tau.cosent, papers.optim.average, papers.batches.strategy) == (
        0.05,
        0,
        "shuffle",
    )
    for kind in get_args(Kind):
        assert of(kind, preset=f"{preset}-paper") == papers
        for one in (settings, papers):  # the objective is known before the backbone
            assert default_objective(one, kind) == of(kind, preset=one.preset).objective


def preset_of(name: str) -> TrainSettings:
    return load_settings(TrainSettings, flags={"preset": name})


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("preset=angel", "expected one of auto, angle"),
        ("encoder.pooling=mean", "'avg'"),
        ("encoder.prompts.a={text} {text}", "has {text} 2 times"),
        ("optim.learning_rate=1", "unknown setting 'optim.learning_rate'"),
        ("optim.lr=nan", "finite"),
    ],
)
def test_invalid_settings_are_refused(assignment, words):
    with pytest.raises(ConfigError, match="setting") as raised:
        load_settings(TrainSettings, assignments=[assignment])
    assert words in str(raised.value)


COMMANDS = [*("train", "encode", "evaluate", "export")]
WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""
RUN = "from aoe_train.__main__ import main; main()"
HELP = """
import aoe_train.objectives.kinds, aoe_train.settings.train_settings
from aoe_train.api.cli import app
for command in sys.argv[1:]:
    app([command, "--help"], standalone_mode=False)
    print("end of help")
"""


def _python(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_help_has_examples_and_needs_no_torch():
    """All in one process, since starting takes most of the time."""
    helped = _python("-c", WITHOUT_TORCH + HELP, *COMMANDS)
    assert helped.returncode == 0, helped.stderr
    *pages, rest = helped.stdout.split("end of help\n")
    assert rest == ""
    for command, page in zip(COMMANDS, pages, strict=True):
        assert "Examples" in page
        assert f"aoe {command}" in page


def test_missing_torch_is_reported(bert, tmp_path):
    (tmp_path / "t.txt").write_text("a\n")
    arguments = ("encode", str(tmp_path / "t.txt"), "-m", str(bert), "-o", str(tmp_path / "v.npy"))
    found = _python("-c", WITHOUT_TORCH + RUN, *arguments)
    assert found.returncode == 2
    assert "pip install 'aoe-toolkit[train]'" in found.stderr
    assert "Traceback" not in found.stderr


def of(kind: Kind = "graded", rows: int = 1000, dim: int = 384, **flags: Any) -> TrainSettings:
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    return with_defaults(load_settings(TrainSettings, flags=dotted), DatasetFacts(kind, rows), dim=dim)


@pytest.mark.parametrize(
    ("auc", "flags", "chosen"),
    [
        (0.992, {}, (5e-6, 1)),
        (0.957, {}, (5e-5, 3)),
        (None, {}, (5e-5, 3)),
        (0.992, {"optim.batch_size": 8}, (5e-6, 1)),
    ],
)
def test_defaults_depend_on_the_backbones_auc(auc, flags, chosen):
    settings = load_settings(TrainSettings, flags=flags)
    optim = with_defaults(settings, DatasetFacts("binary", 250, auc=auc), dim=384).optim
    assert (optim.lr, optim.epochs) == chosen
    assert depends_on_auc(settings)


@pytest.mark.parametrize(
    "flags",
    [
        *({"optim.lr": 1e-5}, {"optim.epochs": 2}, {"optim.interpolate": 0.5}, {"preset": "domain"}),
        *({"preset": "angle-paper"}, {"lora": True}, {"encoder.dense": "16"}, {"teacher.model": "minilm"}),
    ],
    ids=str,
)
def test_auc_is_ignored_if_training_is_configured(flags):
    assert not depends_on_auc(load_settings(TrainSettings, flags=flags))


@given(rows=st.integers(1, 10**9), dim=st.integers(2, 8192))
def test_epochs_by_number_of_rows(rows, dim):
    positives = of("positive", rows=rows, dim=dim).optim.epochs
    assert 1 <= of(rows=2 * rows, dim=dim).optim.epochs <= of(rows=rows, dim=dim).optim.epochs
    assert 1 <= positives <= 8
    for kind in ("binary", "graded", "triplet"):
        epochs = of(kind, rows=rows, dim=dim).optim.epochs
        assert epochs == min(positives, 3)
        assert epochs * rows <= 32_000 or epochs == 1


@pytest.mark.parametrize("kind", get_args(Kind))
def test_defaults_of_each_kind(kind):
    chosen = of(kind)
    check_objective(chosen.objective, dim=384, kind=kind, label_range=(0.0, 5.0))
    assert with_defaults(chosen, DatasetFacts(kind, 1000), dim=384) == chosen
    if kind in ("binary", "graded"):  # two labels are ranked more sharply than scores
        tau = {"binary": 0.05, "graded": 0.2}[kind]
        assert (chosen.objective.tau.cosent, chosen.objective.tau.angle) == (tau, tau)
        assert of(kind, dim=768).optim.lr < chosen.optim.lr < of(kind, lora={}).optim.lr
    if kind == "single":
        assert of(kind, dim=768).optim.lr == chosen.optim.lr


def decoder(**flags: Any) -> TrainSettings:
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    return with_decoder_defaults(load_settings(TrainSettings, flags=dotted))


def test_decoder_defaults():
    made = decoder()
    assert made.lora is not None
    assert made.prompts == "Summarize sentence {text} in one word:"
    assert format_decoder_choices(TrainSettings(), made) == (
        "the backbone is a decoder: only adapters of rank 32 are trained (--no-lora trains all weights), and"
        " texts get the prompt 'Summarize sentence {text} in one word:' (--prompts '{text}' turns it off)"
    )
    assert with_defaults(made, DatasetFacts("graded", 1000), dim=576).optim.lr == of(lora={}).optim.lr
    given = load_settings(TrainSettings, flags={"preset": "angle-paper"})
    assert with_decoder_defaults(given) == given
    given = load_settings(TrainSettings, flags={"lora": False, "prompts": "{text}"})
    assert format_decoder_choices(given, with_decoder_defaults(given)) is None


@pytest.mark.parametrize(
    ("given", "name", "expected"),
    [
        ({"lora": False}, "lora", None),
        ({"lora": True}, "lora", LoraSettings()),
        ({"lora__rank": 4}, "lora", LoraSettings(rank=4)),
        ({"optim__top_layers": 2}, "lora", None),  # trained without adapters
        ({"prompts": "query: "}, "prompts", "query: "),
        ({"encoder__prompts": {"query": "q: "}}, "prompts", None),
        ({"encoder__pooling": "avg"}, "prompts", None),  # the prompt is for last-token pooling
    ],
)
def test_settings_override_decoder_defaults(given, name, expected):
    assert getattr(decoder(**given), name) == expected


def test_defaults_for_generated_texts():
    settings = load_settings(TrainSettings)
    gentle = with_defaults(settings, DatasetFacts("binary", 1000, written=True), dim=384)
    assert gentle.optim.lr < of("binary").optim.lr
    assert gentle.optim.epochs == 1
    assert gentle.objective == of("binary").objective


def test_settings_override_defaults():
    flags = {"optim.lr": 1e-6, "optim.epochs": 3.0, "optim.average": 0.0, "objective.tau.angle": 0.7}
    above = {"objective.weights.in_batch": 35, "objective.tau.angle": 0.05, "preset": "angle"}
    given = load_settings(TrainSettings, flags=above).objective
    assert (given.weights.active, given.tau.angle) == ({"cosent": 1, "in_batch": 35, "angle": 1}, 0.05)
    settings = of(**{"preset": "aoe", "seed": 7, "lora": {"rank": 4}, **flags})
    assert (settings.optim.lr, settings.optim.epochs, settings.optim.average) == (1e-6, 3, 0)
    assert (settings.objective.tau.angle, settings.objective.tau.cosent) == (0.7, 0.2)
    assert settings.objective.weights.active == {"angle": 1, "contrastive": 1}
    assert (settings.seed, settings.lora and settings.lora.rank) == (7, 4)
    assert of(objective__weights__in_batch=35).objective.weights.active == {
        "cosent": 1,
        "in_batch": 35,
        "angle": 1,
    }


@pytest.mark.parametrize("kind", get_args(Kind))
def test_defaults_with_a_teacher(kind):
    plain, taught = of(kind), of(kind, teacher__model="minilm")
    check_objective(taught.objective, dim=384, kind=kind, label_range=(0.0, 5.0))
    own = {} if kind == "single" else plain.objective.weights.active
    assert taught.objective.weights.active == {**own, "embed_distill": 1}
    assert (taught.optim == plain.optim) == (kind != "single")
    chosen_part = of(kind, teacher__model="minilm", objective__weights__score_distill=2)
    assert chosen_part.objective.weights.active == {**own, "score_distill": 2}


@pytest.mark.parametrize(("rows", "epochs"), [(96, 1), (384, 1), (1536, 0.25)])
def test_domain_preset(rows, epochs):
    settings = load_settings(TrainSettings, flags={"preset": "domain"})
    made = with_defaults(settings, DatasetFacts("triplet", rows, written=True), dim=384)
    assert made.objective.weights.active == {"contrastive": 1, "angle": 1}
    assert default_objective(settings, "positive").weights.active == {"contrastive": 1}
    assert (made.optim.epochs, made.optim.top_layers, made.optim.batch_size) == (epochs, 2, 32)
    three = settings.model_copy(update={"optim": settings.optim.model_copy(update={"epochs": 3.0})})
    given = with_defaults(three, DatasetFacts("triplet", rows), dim=384)
    assert given.optim.epochs == 3


@pytest.mark.parametrize(
    ("author", "first_person", "rows", "epochs", "interpolate"),
    [
        (None, 0.0, 768, 0.5, 0.7),
        ("rules", 0.0, 768, 0.5, 0.7),
        ("rules", 0.9, 768, 0.5, 0.0),
        ("people", 0.9, 768, 1.5, 1.0),
        ("people", 0.0, 96, 2.0, 1.0),
    ],
)
def test_domain_budget_by_author(author, first_person, rows, epochs, interpolate):
    facts = DatasetFacts("triplet", rows, author == "rules", author=author, first_person=first_person)
    settings = load_settings(TrainSettings, flags={"preset": "domain"})
    optim = with_defaults(settings, facts, dim=384).optim
    assert (optim.epochs, optim.interpolate) == (epochs, interpolate)
    given = load_settings(TrainSettings, flags={"preset": "domain", "optim.interpolate": 0.4})
    assert with_defaults(given, facts, dim=384).optim.interpolate == 0.4
    assert with_defaults(TrainSettings(), facts, dim=384).optim.interpolate == 1


def test_first_person_share():
    texts = ["My card was declined.", "What can I do?", "Iron is a metal.", "The same may be true of us."]
    assert first_person_share(texts) == 0.5
    assert first_person_share([]) == 0


@pytest.mark.parametrize(
    ("kind", "preset", "encoder", "parts"),
    [
        ("graded", "auto", {"similarity_fn_name": "dot"}, "cosent, in_batch, angle"),
        ("graded", "sbert", {"similarity_fn_name": "manhattan"}, "sbert"),
        ("binary", "sbert", {"similarity_fn_name": "dot"}, None),
        ("positive", "simcse", {"similarity_fn_name": "dot", "normalize": True}, None),
        ("positive", "simcse", {}, None),
    ],
)
def test_untrained_lengths_are_reported(kind, preset, encoder, parts):
    found = unused_lengths_warning(of(kind, preset=preset), kind, EncoderSettings(**encoder))
    told = f"by {encoder.get('similarity_fn_name')}, but {parts} train only their directions"
    assert (found is None) if parts is None else (told in (found or ""))
