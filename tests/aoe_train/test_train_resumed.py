"""Killed runs continue to the weights, history and verdict of an undisturbed run."""

from typing import Any

import pytest

import aoe_train
from tests.aoe_train.conftest import Killed
from tests.aoe_train.test_keep_if_better import judged_rows
from tests.aoe_train.test_train_teachers import PARTS, sentences, triplets
from tests.aoe_train.tiny import refusal, same_weights, save_bert, write_pairs, write_triplets

PAPERS = {"preset": "angle-paper", "optim.lr": 1e-3, "optim.batch_size": 16, "log.steps": 2}
TWICE = PAPERS | {"optim.epochs": 2}
ROUNDS = {"mix.order": "round-robin", "mix.epoch": "longest", "optim.accumulation": 2}
TAUGHT = {f"objective.weights.{part}": 1 for part in PARTS} | {"objective.dims": (32, 8), "run.chunk": 5}
# Data, settings, step before which the run is killed, steps between checkpoints.
CASES: dict[str, tuple[str, dict[str, Any], int, int]] = {
    "at the end of an epoch": ("graded", TWICE, 6, 3),
    "accumulated batches": ("graded", TWICE | {"optim.accumulation": 2}, 4, 3),
    "average and early stopping": (
        *("graded", TWICE | {"batches.strategy": "shuffle", "optim.patience": 9, "optim.average": 0.9}, 8, 3),
    ),
    "sizes and chunks": ("graded", TWICE | {"objective.dims": (32, 8), "run.chunk": 20}, 5, 3),
    "averaged with the backbone": ("graded", PAPERS | {"optim.interpolate": 0.25}, 3, 1),
    "batches by tokens": (
        *("triplets", PAPERS | {"batches.strategy": "tokens", "batches.max_tokens": 400}, 2, 1),
    ),
    "several datasets": ("three", {"optim.lr": 1e-3, "optim.epochs": 2}, 7, 3),
    "several datasets in turns": ("three", ROUNDS | {"optim.lr": 1e-3, "optim.epochs": 2}, 5, 3),
    "texts": ("texts", {"preset": "domain", "optim.top_layers": 1, "optim.epochs": 1}, 3, 1),
    "guide and teacher": ("taught", TAUGHT | {"preset": "simcse", "optim.batch_size": 8}, 2, 1),
    "judged pairs": ("judged", {"preset": "cosent", "optim.epochs": 1, "optim.if_not_better": "model"}, 5, 2),
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> dict[str, dict[str, Any]]:
    """The inputs of each case."""
    folder = tmp_path_factory.mktemp("sources")
    graded, dev = write_pairs(folder / "train.tsv", 90, 1), write_pairs(folder / "dev.tsv", 30, 2)
    some, held_out = (write_triplets(folder / f"{rows}.jsonl", rows, 3) for rows in (60, 20))
    positives = [{"anchor": f"the man {n} is eating", "positive": f"a man eats {n}"} for n in range(20)]
    teacher = save_bert(folder / "teacher", dim=16, layers=1, seed=7)
    return {
        "graded": {"data": graded, "dev_data": dev},
        "triplets": {"data": some, "dev_data": held_out},
        "three": {
            "data": {"stsb": graded, "nli": some, "qa": positives},
            "dev_data": {"stsb": dev, "nli": held_out},
        },
        "texts": {"data": sentences(80)},
        "taught": {"data": triplets(), "guide": teacher, "teacher": teacher, "prompts": {"anchor": "is "}},
        "judged": {"data": judged_rows(7, 96), "accept_on": judged_rows(1)},
    }


@pytest.mark.parametrize("case", CASES)
def test_killed_run_continues_to_the_same_weights(case, sources, shallow, tmp_path, kill_at):
    kind, settings, killed_before, every = CASES[case]
    seen: list[bool] = []

    def train(out: str, **more: Any) -> aoe_train.Trained:
        how = {**sources[kind], "settings": settings | more, "progress": False}
        return aoe_train.train(backbone=shallow, out=tmp_path / out, **how)

    def again() -> aoe_train.Trained:
        step = killed_before // every * every
        seen.append((tmp_path / "b.work" / f"step-{step}.pt").is_file())
        assert not (tmp_path / "b").exists()
        return train("b", **{"log.checkpoint_steps": every})

    whole, resumed = train("a"), kill_at(killed_before, again)
    assert seen == [False, True]
    assert same_weights(tmp_path / "a", tmp_path / "b")
    assert not same_weights(tmp_path / "a", shallow)
    assert resumed.history == whole.history  # the losses before the checkpoint count in the log
    for name in ("steps", "pairs", "dev", "dev_sets", "judged"):
        assert resumed.to_dict().get(name) == whole.to_dict().get(name)
    assert not (tmp_path / "b.work").exists()


def test_killed_run_continues_only_with_its_own_settings(sources, shallow, tmp_path, kill_at):
    def train(*, fresh: bool = False, prompts: Any = "the ", lr: float = 1e-3) -> aoe_train.Trained:
        settings = PAPERS | {"log.checkpoint_steps": 1, "prompts": prompts, "optim.lr": lr}
        how: dict[str, Any] = {"settings": settings, "fresh": fresh, "progress": False}
        return aoe_train.train(sources["graded"]["data"], backbone=shallow, out=tmp_path / "m", **how)

    kill_at(2)
    with pytest.raises(Killed):
        train()
    for change, message in (
        ({"prompts": "a "}, r"other settings: settings\.prompts"),
        ({"prompts": None}, r"other settings: settings\.prompts"),
        ({"lr": 2e-3}, r"m\.work: made from other inputs.*optim\.lr"),
    ):
        with refusal(message):
            train(**change)
    assert train(lr=2e-3, fresh=True).steps == 6
