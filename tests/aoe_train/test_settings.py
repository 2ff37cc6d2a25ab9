"""Presets, defaults and authorship as functions of the rows, where a run would take long."""

import json
from pathlib import Path
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from aoe_train.data.defaults import (
    DatasetFacts,
    default_objective,
    depends_on_auc,
    first_person_share,
    unused_lengths_warning,
    with_defaults,
    with_defaults_for_all,
)
from aoe_train.objectives.objective_checks import LossContext, check_objective
from aoe_train.objectives.objective_settings import PRESETS as OBJECTIVES
from aoe_train.objectives.objective_settings import Taus
from aoe_train.objectives.training_rows import Kind
from aoe_train.settings.train_settings import EncoderSettings, TrainSettings
from aoe_train.training.load import read_authorship
from pairkit.base.settings import load_settings
from tests.support.shorthand import parametrize, table, text_lines


def of(kind="graded", rows=1000, dim=384, **flags):
    return with_defaults(
        load_settings(TrainSettings, flags=flags), DatasetFacts(kind, rows), dim=dim
    )


@parametrize("preset", OBJECTIVES)
def test_presets_and_paper_presets(preset):
    settings, papers = (
        load_settings(TrainSettings, flags={"preset": name})
        for name in (preset, f"{preset}-paper")
    )
    assert settings.objective == OBJECTIVES[preset]
    own = {"angle": {"duplicates": "positive"}, "aoe": {"tau": Taus(angle=0.05)}}
    expected = OBJECTIVES[preset].model_copy(update=own.get(preset))
    assert papers.objective == expected
    assert "optim" not in settings.model_fields_set
    optim = "lr epochs batch_size average scheduler"
    assert {*optim.split()} <= papers.optim.model_fields_set
    assert papers.batches.strategy == "shuffle"
    for kind in get_args(Kind):
        assert of(kind, preset=f"{preset}-paper") == papers
        for one in (settings, papers):  # the objective is known before the backbone
            assert default_objective(one, kind) == of(kind, preset=one.preset).objective
    for run in ("domain", "angle-paper", "aoe-paper"):
        flags = {"preset": run, "datasets.a.preset": preset, "objective.margin": 0.5}
        given = OBJECTIVES[preset].model_copy(update={"margin": 0.5})
        assert load_settings(TrainSettings, flags=flags).of("a").objective == given


@table(
    """
    setting, depends
    seed=1 | True
    optim.batch_size=8 | True
    optim.lr=1e-5 | False
    optim.epochs=2 | False
    optim.interpolate=0.5 | False
    preset=domain | False
    preset=angle-paper | False
    lora={} | False
    encoder.dense=16 | False
    teacher.model=minilm | False
    """,
)
def test_auc_is_ignored_if_training_is_configured(setting, depends):
    assert depends_on_auc(load_settings(TrainSettings, settings=[setting])) is depends


@given(rows=st.integers(1, 10**9), dim=st.integers(2, 8192))
def test_epochs_by_number_of_rows(rows, dim):
    def epochs_of(kind, rows=rows):
        return of(kind, rows, dim).optim.epochs

    positives = epochs_of("positive")
    assert 1 <= epochs_of("graded", 2 * rows) <= epochs_of("graded")
    assert 1 <= positives <= 8
    for kind in ("binary", "graded", "triplet"):
        epochs = epochs_of(kind)
        assert epochs == min(positives, 3)
        assert epochs * rows <= 32_000 or epochs == 1


@parametrize("flags", [{}, {"teacher.model": "minilm"}], ids=str)
@parametrize("kind", get_args(Kind))
def test_defaults_fit_each_kind_and_don_t_change_again(kind, flags):
    chosen = of(kind, **flags)
    check_objective(LossContext(chosen.objective, 384, kind, (0.0, 5.0)))
    assert with_defaults(chosen, DatasetFacts(kind, 1000), dim=384) == chosen


@table(
    """
    author, rows, epochs, interpolate
    None | 96 | 1 | 0.7
    None | 384 | 1 | 0.7
    None | 1536 | 0.25 | 0.7
    people | 768 | 1.5 | 1.0
    people | 96 | 2 | 1.0
    rules | 96 | 1 | 0.7
    """,
)
def test_domain_budget_by_rows_and_author(author, rows, epochs, interpolate):
    settings = load_settings(TrainSettings, flags={"preset": "domain"})
    facts = DatasetFacts("triplet", rows, written=author is None, author=author)
    optim = with_defaults(settings, facts, dim=384).optim
    assert (optim.epochs, optim.interpolate) == (epochs, interpolate)
    assert optim.top_layers == 2


@table(
    """
    rows, preset, average
    {'binary': 600} | auto | 0.5
    # one epoch
    {'binary': 16_000} | auto | 1.0
    {'graded': 600} | auto | 1.0
    {'binary': 600, 'graded': 600} | auto | 1.0
    {'binary': 600} | domain | 0.0
    """
)
def test_few_binary_pairs_average_the_second_half_of_the_run(rows, preset, average):
    settings = load_settings(TrainSettings, flags={"preset": preset})
    facts = {kind: DatasetFacts(kind, count) for kind, count in rows.items()}
    assert with_defaults_for_all(settings, facts, dim=384).optim.average == average


@table(
    """
    kind, preset, tau, scheduler
    binary | auto | 0.05 | constant_with_warmup
    graded | auto | 0.2 | constant_with_warmup
    graded | cosent-paper | 0.05 | linear
    graded | domain | 0.2 | linear
    """,
)
def test_temperature_and_scheduler(kind, preset, tau, scheduler):
    found = of(kind, preset=preset)
    assert found.objective.tau.cosent == tau
    assert found.optim.scheduler == scheduler


def test_first_person_share():
    texts = text_lines("""
        My card was declined.
        What can I do?
        Iron is a metal.
        The same may be true of us.
    """)
    assert first_person_share(texts) == 0.5
    assert first_person_share([]) == 0


@table(
    """
    kinds, author
    ['wordnet'] | rules
    ['openai', 'wordnet'] | None
    [] | None
    """,
)
def test_authorship_from_run_json(tmp_path, kinds, author):
    llms = {f"llm {number}": {"kind": kind} for number, kind in enumerate(kinds)}
    (tmp_path / "run.json").write_text(
        json.dumps({"made_by": "label (aoe-toolkit 0.1.0)", "llms": llms})
    )
    assert read_authorship(str(tmp_path / "triplet")) == (True, author)
    assert read_authorship("rows.tsv") == (False, None)


@table(
    """
    kind, preset, encoder, parts
    graded | auto | {'similarity_fn_name': 'dot'} | cosent, in_batch, angle
    graded | sbert | {'similarity_fn_name': 'manhattan'} | sbert
    binary | sbert | {'similarity_fn_name': 'dot'} | None
    positive | simcse | {'similarity_fn_name': 'dot', 'normalize': True} | None
    positive | simcse | {} | None
    """,
)
def test_untrained_lengths_are_reported(kind, preset, encoder, parts):
    found = unused_lengths_warning(
        of(kind, preset=preset), kind, EncoderSettings(**encoder)
    )
    told = f"by {encoder.get('similarity_fn_name')}, but {parts} train only their directions"
    assert (found is None) if parts is None else (told in (found or ""))


def test_paths_of_datasets_may_be_paths_or_texts():
    keys = ("datasets.nli.data", "datasets.nli.dev_data")
    as_text, as_path = (
        load_settings(TrainSettings, settings=dict.fromkeys(keys, path))
        for path in ("nli/train.tsv", Path("nli/train.tsv"))
    )
    assert as_path == as_text
