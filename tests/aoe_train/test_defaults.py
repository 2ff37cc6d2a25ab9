"""What nobody gave is chosen by rows and backbone; what was given stays."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.data.defaults import (
    DatasetFacts,
    default_objective,
    depends_on_auc,
    first_person_share,
    format_choices,
    format_decoder_choices,
    unused_lengths_warning,
    with_decoder_defaults,
    with_defaults,
)
from aoe_train.objectives.kinds import check_objective
from aoe_train.records import Kind
from aoe_train.settings.training import PRESETS, Author, EncoderSettings, LoraSettings, TrainSettings
from pairkit.app.settings import load_settings


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
def test_pairs_that_the_backbone_ranks_right_already_are_trained_gently(
    auc: float | None, flags: Any, chosen: tuple[float, int]
) -> None:
    settings = load_settings(TrainSettings, flags=flags)
    optim = with_defaults(settings, DatasetFacts("binary", 250, auc=auc), dim=384).optim
    assert (optim.lr, optim.epochs) == chosen
    assert depends_on_auc(settings)


@pytest.mark.parametrize(
    "flags",
    [
        *({"optim.lr": 1e-5}, {"optim.epochs": 2}, {"optim.weight_mix": 0.5}, {"preset": "domain"}),
        *({"preset": "angle-paper"}, {"lora": True}, {"encoder.dense": "16"}, {"teacher.model": "minilm"}),
    ],
    ids=str,
)
def test_who_says_how_far_to_train_is_not_overruled(flags: Any) -> None:
    assert not depends_on_auc(load_settings(TrainSettings, flags=flags))


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_has_an_objective_that_means_something(kind: Kind) -> None:
    check_objective(of(kind).objective, dim=384, kind=kind, label_range=(0.0, 5.0))


@given(rows=st.integers(min_value=1, max_value=10**9), dim=st.integers(min_value=2, max_value=8192))
def test_few_rows_are_seen_more_often(rows: int, dim: int) -> None:
    optim, more = of(rows=rows, dim=dim).optim, of(rows=2 * rows, dim=dim).optim
    assert 1 <= more.epochs <= optim.epochs <= 3
    assert optim.epochs * rows <= 32_000 or optim.epochs == 1


@given(rows=st.integers(min_value=1, max_value=10**9))
def test_pairs_and_triplets_are_seen_less_often_than_positives(rows: int) -> None:
    positives = of("positive", rows=rows).optim.epochs
    assert 1 <= positives <= 8
    assert of("binary", rows=rows).optim.epochs == of("triplet", rows=rows).optim.epochs == min(positives, 3)


def test_two_labels_are_ranked_more_sharply_than_scores() -> None:
    for kind, tau in {"binary": 0.05, "graded": 0.2}.items():
        found = of(kind).objective.tau
        assert (found.cosine, found.angle) == (tau, tau)


def test_wide_backbones_take_smaller_steps_and_adapters_larger_ones() -> None:
    assert of(dim=768).optim.lr < of(dim=384).optim.lr < of(dim=384, lora={}).optim.lr
    assert of("single", dim=768).optim.lr == of("single").optim.lr


def decoder(**flags: Any) -> TrainSettings:
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    return with_decoder_defaults(load_settings(TrainSettings, flags=dotted))


def test_a_decoder_learns_by_adapters_and_is_asked_for_a_word() -> None:
    made = decoder()
    assert made.lora is not None
    assert made.prompts == "Summarize sentence {text} in one word:"
    assert format_decoder_choices(TrainSettings(), made) == (
        "a decoder: adapters of rank 32 learn (--no-lora: all weights), and each text stands in 'Summarize"
        " sentence {text} in one word:' (--prompts '{text}': bare)"
    )
    assert with_defaults(made, DatasetFacts("graded", 1000), dim=576).optim.lr == of(lora={}).optim.lr


def test_what_was_given_for_a_decoder_stays() -> None:
    assert decoder(lora=False).lora is None
    assert decoder(lora=True).lora == decoder().lora
    assert decoder(lora__rank=4).lora == LoraSettings(rank=4)
    assert decoder(optim__top_layers=2).lora is None  # they learn as they are
    assert decoder(prompts="query: ").prompts == "query: "
    assert decoder(encoder__prompts={"query": "q: "}).prompts is None
    assert decoder(encoder__pooling="avg").prompts is None  # no token is asked for anything
    given = load_settings(TrainSettings, flags={"lora": False, "prompts": "{text}"})
    assert format_decoder_choices(given, with_decoder_defaults(given)) is None


def test_presets_of_papers_are_for_decoders_as_they_are() -> None:
    given = load_settings(TrainSettings, flags={"preset": "angle-paper"})
    assert with_decoder_defaults(given) == given


def test_what_machines_wrote_is_learnt_gently() -> None:
    settings = load_settings(TrainSettings)
    gentle = with_defaults(settings, DatasetFacts("binary", 1000, written=True), dim=384)
    assert gentle.optim.lr < of("binary").optim.lr
    assert gentle.optim.epochs == 1
    assert gentle.objective == of("binary").objective


def test_what_was_given_stays() -> None:
    flags = {"optim.lr": 1e-6, "optim.epochs": 3.0, "optim.average": 0.0, "objective.tau.angle": 0.7}
    settings = of(**{"preset": "aoe", "seed": 7, "lora": {"rank": 4}, **flags})
    assert (settings.optim.lr, settings.optim.epochs, settings.optim.average) == (1e-6, 3, 0)
    assert (settings.objective.tau.angle, settings.objective.tau.cosine) == (0.7, 0.2)
    assert settings.objective.weights.wanted == {"angle": 1, "contrastive": 1}
    assert (settings.seed, settings.lora and settings.lora.rank) == (7, 4)


def test_a_weight_beside_those_of_the_kind() -> None:
    assert of(objective__weights__ibn=35).objective.weights.wanted == {"cosine": 1, "ibn": 35, "angle": 1}


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_teacher_is_listened_to(kind: Kind) -> None:
    plain, taught = of(kind), of(kind, teacher__model="minilm")
    check_objective(taught.objective, dim=384, kind=kind, label_range=(0.0, 5.0))
    own = {} if kind == "single" else plain.objective.weights.wanted
    assert taught.objective.weights.wanted == {**own, "embed_distill": 1}
    assert (taught.optim == plain.optim) == (kind != "single")
    chosen_part = of(kind, teacher__model="minilm", objective__weights__score_distill=2)
    assert chosen_part.objective.weights.wanted == {**own, "score_distill": 2}


@pytest.mark.parametrize("preset", [name for name in PRESETS if name.endswith("-paper")])
@pytest.mark.parametrize("kind", get_args(Kind))
def test_presets_of_the_papers_leave_nothing_to_choose(preset: str, kind: Kind) -> None:
    given = load_settings(TrainSettings, flags={"preset": preset})
    assert of(kind, preset=preset) == given
    assert (given.optim.lr, given.optim.epochs, given.optim.batch_size) == (2e-5, 1, 32)
    assert (given.objective.tau.cosine, given.objective.tau.angle, given.optim.average) == (0.05, 1, 0)


@pytest.mark.parametrize(("rows", "epochs"), [(96, 1), (384, 1), (1536, 0.25)])
def test_a_domain_takes_few_steps_of_the_last_layers(rows: int, epochs: float) -> None:
    settings = load_settings(TrainSettings, flags={"preset": "domain"})
    made = with_defaults(settings, DatasetFacts("triplet", rows, written=True), dim=384)
    assert made.objective.weights.wanted == {"contrastive": 1, "angle": 1}
    assert default_objective(settings, "positive").weights.wanted == {"contrastive": 1}
    assert (made.optim.epochs, made.optim.top_layers, made.optim.batch_size) == (epochs, 2, 32)
    three = settings.model_copy(update={"optim": settings.optim.model_copy(update={"epochs": 3.0})})
    given = with_defaults(three, DatasetFacts("triplet", rows), dim=384)
    assert given.optim.epochs == 3


@pytest.mark.parametrize(
    ("author", "first_person", "rows", "epochs", "weight_mix"),
    [
        (None, 0.0, 768, 0.5, 0.7),
        ("rules", 0.0, 768, 0.5, 0.7),
        ("rules", 0.9, 768, 0.5, 0.0),
        ("people", 0.9, 768, 1.5, 1.0),
        ("people", 0.0, 96, 2.0, 1.0),
    ],
)
def test_a_domain_trains_as_far_as_its_author_allows(
    author: Author | None, first_person: float, rows: int, epochs: float, weight_mix: float
) -> None:
    facts = DatasetFacts("triplet", rows, author == "rules", author=author, first_person=first_person)
    settings = load_settings(TrainSettings, flags={"preset": "domain"})
    optim = with_defaults(settings, facts, dim=384).optim
    assert (optim.epochs, optim.weight_mix) == (epochs, weight_mix)
    given = load_settings(TrainSettings, flags={"preset": "domain", "optim.weight_mix": 0.4})
    assert with_defaults(given, facts, dim=384).optim.weight_mix == 0.4
    assert with_defaults(TrainSettings(), facts, dim=384).optim.weight_mix == 1


def test_the_first_person_is_recognised() -> None:
    texts = ["My card was declined.", "What can I do?", "Iron is a metal.", "The same may be true of us."]
    assert first_person_share(texts) == 0.5
    assert first_person_share([]) == 0


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", get_args(Kind))
def test_the_objective_is_known_before_the_backbone(preset: str, kind: Kind) -> None:
    given = load_settings(TrainSettings, flags={"preset": preset})
    assert default_objective(given, kind) == of(kind, preset=preset).objective


def test_choosing_twice_changes_nothing() -> None:
    once = of("triplet", rows=70)
    assert with_defaults(once, DatasetFacts("triplet", 70), dim=384) == once


@pytest.mark.parametrize(
    ("kind", "preset", "encoder", "parts"),
    [
        ("graded", "auto", {"similarity_fn_name": "dot"}, "cosine, ibn, angle"),
        ("graded", "sbert", {"similarity_fn_name": "manhattan"}, "sbert"),
        ("binary", "sbert", {"similarity_fn_name": "dot"}, None),
        ("positive", "simcse", {"similarity_fn_name": "dot", "normalize": True}, None),
        ("positive", "simcse", {}, None),
    ],
)
def test_lengths_that_are_left_to_chance_are_told(
    kind: Kind, preset: str, encoder: dict[str, Any], parts: str | None
) -> None:
    found = unused_lengths_warning(of(kind, preset=preset), kind, EncoderSettings(**encoder))
    if parts is None:
        assert found is None
    else:
        assert found is not None
        assert f"by {encoder['similarity_fn_name']}, but {parts} train their directions alone" in found


def test_what_is_told() -> None:
    told: dict[str, Any] = {"parts": ("angle", "contrastive")}
    chosen = "triplet rows: angle + contrastive, learning rate 5e-05, 3 epochs, batches of 16"
    made = of("triplet", rows=2000)
    assert format_choices(made, "triplet", rows=2000, seen=6000, **told) == f"2,000 {chosen}"
    assert format_choices(made, "triplet", rows=2000, seen=416, **told) == f"416 of 2,000 {chosen}"
