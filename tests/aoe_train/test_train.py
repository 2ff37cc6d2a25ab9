"""From rows to a model folder: resuming, finished runs, other runs' leftovers, and what is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from aoe_train import Encoder
from aoe_train.dry_run import dry_run
from aoe_train.preparation import Sources
from aoe_train.settings import TrainSettings
from aoe_train.train import train
from aoe_train.trainer.trainer import PairTrainer
from pairkit.config import load_settings
from pairkit.errors import ConfigError, DataError
from tests.aoe_train.tiny import WORDS, save_bert

ROWS = 90


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOE_CACHE", str(tmp_path_factory.getbasetemp() / "tokens"))


def write_pairs(path: Path, rows: int, seed: int) -> Path:
    """Graded pairs: the share of words that two texts share."""
    words = random.Random(seed)
    lines = ["sentence1\tsentence2\tscore"]
    for _ in range(rows):
        one = words.sample(WORDS, words.randint(3, 9))
        kept = words.sample(one, words.randint(0, len(one)))
        other = [*kept, *words.sample(WORDS, words.randint(1, 4))]
        lines.append(f"{' '.join(one)}\t{' '.join(other)}\t{5 * len(kept) / len(one):.1f}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pairs")
    return {
        "data": str(write_pairs(folder / "train.tsv", ROWS, 1)),
        "dev_data": str(write_pairs(folder / "dev.tsv", 30, 2)),
    }


def settings(**flags: Any) -> TrainSettings:
    return load_settings(
        TrainSettings, flags={"optim.lr": 1e-3, "optim.batch_size": 16, "log.steps": 2, **flags}
    )


def run(sources: dict[str, str], backbone: Path, out: Path, *, fresh: bool = False, **flags: Any) -> Any:
    given = {name.replace("__", "."): value for name, value in flags.items()}
    return train(
        Sources(backbone=str(backbone), out=out, **sources),
        settings(**given),
        fresh=fresh,
        say=lambda _: None,
        quiet=True,
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


class Killed(BaseException):
    """Stands for SIGKILL."""


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Any:
    def arm(step: int) -> None:
        original = PairTrainer.training_step

        def training_step(self: PairTrainer, *arguments: Any) -> Any:
            if self.state.global_step == step:
                monkeypatch.setattr(PairTrainer, "training_step", original)
                raise Killed
            return original(self, *arguments)

        monkeypatch.setattr(PairTrainer, "training_step", training_step)

    return arm


def test_leaves_a_model_that_loads(data: dict[str, str], bert: Path, tmp_path: Path) -> None:
    record = run(data, bert, tmp_path / "m", optim__epochs=2)
    assert record["result"]["steps"] == 12
    assert record["result"]["pairs"] == 2 * ROWS
    assert record["result"]["dev"] == max(entry["eval_dev"] for entry in record["dev_history"])
    assert {"loss", "cosine", "ibn", "angle"} <= record["history"][0].keys()
    assert [entry["step"] for entry in record["history"]] == [2, 4, 6, 8, 10, 12]
    assert json.loads((tmp_path / "m" / "run.json").read_text()) == json.loads(json.dumps(record))
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    encoder = Encoder.load(tmp_path / "m")
    assert encoder.encode(["the man is eating"]).shape == (1, 32)
    assert "# m\n" in (tmp_path / "m" / "README.md").read_text()


def test_the_best_weights_are_the_ones_kept(data: dict[str, str], bert: Path, tmp_path: Path) -> None:
    from aoe_train.evaluate.dev import dev_metric
    from aoe_train.examples import read_examples

    # So high a rate makes it worse and worse.
    record = run(data, bert, tmp_path / "m", optim__lr=0.05, optim__epochs=3, optim__warmup=0)
    scores = {entry["step"]: entry["eval_dev"] for entry in record["dev_history"]}
    assert record["best_step"] == max(scores, key=scores.get) != max(scores)
    found = dev_metric(Encoder.load(tmp_path / "m").encode, read_examples(data["dev_data"]))
    assert found.value == pytest.approx(record["result"]["dev"], abs=1e-4)


@pytest.mark.parametrize(
    ("flags", "killed_before"),
    [
        ({}, 5),
        ({}, 6),  # the checkpoint ends an epoch
        ({"optim__accumulation": 2}, 7),
        ({"run__chunk": 20}, 5),
        ({"batches__strategy": "shuffle", "optim__patience": 9}, 8),
    ],
    ids=str,
)
def test_goes_on_to_the_same_weights(
    data: dict[str, str], bert: Path, tmp_path: Path, kill_at: Any, flags: Any, killed_before: int
) -> None:
    flags = {"optim__epochs": 2 * flags.get("optim__accumulation", 1), **flags}
    undisturbed = run(data, bert, tmp_path / "a", **flags)
    kill_at(killed_before)
    with pytest.raises(Killed):
        run(data, bert, tmp_path / "b", log__checkpoint_steps=3, **flags)
    assert (tmp_path / "b.work" / f"step-{killed_before // 3 * 3}").is_dir()
    assert not (tmp_path / "b").exists()
    resumed = run(data, bert, tmp_path / "b", log__checkpoint_steps=3, **flags)
    expected = weights(tmp_path / "a")
    assert all(torch.equal(value, expected[name]) for name, value in weights(tmp_path / "b").items())
    assert resumed["dev_history"] == undisturbed["dev_history"]
    assert not (tmp_path / "b.work").exists()


def test_ways_of_doing_the_same_work(data: dict[str, str], tmp_path: Path) -> None:
    backbone = save_bert(tmp_path / "bert", dropout=0.0)
    ways = {
        "plain": {},
        "layers": {"run__gradient_checkpointing": True},
        "chunks": {"run__chunk": 9},
        "padded": {"run__packing": False, "run__gradient_checkpointing": True},
    }
    for name, flags in ways.items():
        run({"data": data["data"]}, backbone, tmp_path / name, optim__lr=1e-4, **flags)
    plain = weights(tmp_path / "plain")
    begun = weights(backbone)
    assert max(float((plain[name] - begun[name]).abs().max()) for name in plain) > 1e-4
    for name in ways:
        found = weights(tmp_path / name)
        assert max(float((found[part] - plain[part]).abs().max()) for part in plain) < 2e-5


def test_checkpointed_layers_draw_the_same_dropout(data: dict[str, str], bert: Path, tmp_path: Path) -> None:
    for name, again in (("kept", False), ("again", True)):
        run(data, bert, tmp_path / name, run__gradient_checkpointing=again)
    kept = weights(tmp_path / "kept")
    assert all(torch.equal(value, kept[name]) for name, value in weights(tmp_path / "again").items())


def test_a_finished_run_is_told_not_repeated(data: dict[str, str], bert: Path, tmp_path: Path) -> None:
    first = run(data, bert, tmp_path / "m")
    stamp = (tmp_path / "m" / "model.safetensors").stat().st_mtime_ns
    again = run(data, bert, tmp_path / "m", log__steps=7)  # telling differently is no other run
    assert again["result"] == first["result"]
    assert (tmp_path / "m" / "model.safetensors").stat().st_mtime_ns == stamp


def test_another_run_is_refused_and_named(data: dict[str, str], bert: Path, tmp_path: Path) -> None:
    run(data, bert, tmp_path / "m")
    with pytest.raises(ConfigError, match=r"settings\.seed \(42 there, 7 now\).*--fresh"):
        run(data, bert, tmp_path / "m", seed=7)
    with pytest.raises(ConfigError, match=r"dev_data"):
        run({**data, "dev_data": data["data"]}, bert, tmp_path / "m")
    with pytest.raises(ConfigError, match=r"backbone"):
        run(data, save_bert(tmp_path / "other", seed=3), tmp_path / "m")
    assert not (tmp_path / "m.work").exists()
    before = weights(tmp_path / "m")
    run(data, bert, tmp_path / "m", seed=7, fresh=True)
    after = weights(tmp_path / "m")
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_a_checkpoint_of_other_settings_is_refused(
    data: dict[str, str], bert: Path, tmp_path: Path, kill_at: Any
) -> None:
    kill_at(4)
    with pytest.raises(Killed):
        run(data, bert, tmp_path / "m", log__checkpoint_steps=2)
    with pytest.raises(ConfigError, match=r"m\.work: made by another run.*optim\.lr"):
        run(data, bert, tmp_path / "m", optim__lr=2e-3)
    record = run(data, bert, tmp_path / "m", optim__lr=2e-3, fresh=True)
    assert record["result"]["steps"] == 6


def test_what_is_no_model_of_ours_is_never_replaced(data: dict[str, str], bert: Path, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "thesis.tex").write_text("years")
    with pytest.raises(ConfigError, match="no model of `aoe train`"):
        run(data, bert, tmp_path / "m", fresh=True)
    assert (tmp_path / "m" / "thesis.tex").exists()


def test_early_stopping(data: dict[str, str], bert: Path, tmp_path: Path) -> None:
    flags = {"optim__lr": 0.05, "optim__epochs": 5, "optim__patience": 2, "optim__warmup": 0}
    record = run(data, bert, tmp_path / "m", **flags)
    assert record["result"]["steps"] < 30
    assert record["result"]["pairs"] < 5 * ROWS
    with pytest.raises(ConfigError, match=r"patience.*--dev-data"):
        run({"data": data["data"]}, bert, tmp_path / "n", optim__patience=2)


def test_the_validation_split_is_held_out_by_itself(data: dict[str, str], bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    for split, name in (("train", "data"), ("validation", "dev_data")):
        (folder / f"{split}.tsv").write_text(Path(data[name]).read_text())
    found = run({"data": str(folder)}, bert, tmp_path / "m")
    given = run(data, bert, tmp_path / "n")
    assert found["result"]["dev"] == given["result"]["dev"]


def test_a_loss_that_is_no_number_names_its_rows(
    data: dict[str, str], bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aoe_train.objectives.mix import Objective

    original = Objective.forward

    def forward(self: Objective, vectors: Any, labels: torch.Tensor, texts: Any) -> Any:
        parts = original(self, vectors, labels, texts)
        return {**parts, "loss": parts["loss"] * (float("nan") if len(labels) < 16 else 1)}

    monkeypatch.setattr(Objective, "forward", forward)
    with pytest.raises(DataError, match=r"the loss became nan on a batch of rows (\d+, ){9}\d+ .*--lr"):
        run(data, bert, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_out_of_memory_says_what_to_lower(
    data: dict[str, str], bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(*_: Any) -> Any:
        return torch.empty(1 << 60)

    monkeypatch.setattr(PairTrainer, "training_step", too_much)
    with pytest.raises(ConfigError, match=r"out of memory: lower --batch-size \(now 16\) or --max-length"):
        run(data, bert, tmp_path / "m")


def test_constant_labels_are_refused(bert: Path, tmp_path: Path) -> None:
    (tmp_path / "d.tsv").write_text("sentence1\tsentence2\tscore\n" + "a\tthe dog\t3\n" * 9)
    with pytest.raises(DataError, match="all 9 labels are 3"):
        run({"data": str(tmp_path / "d.tsv")}, bert, tmp_path / "m")


def test_an_odd_size_is_refused_for_the_angle_only(data: dict[str, str], tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel

    backbone = save_bert(tmp_path / "even")
    config = BertConfig.from_pretrained(backbone, hidden_size=33, num_attention_heads=3)
    BertModel(config, add_pooling_layer=False).save_pretrained(backbone)
    with pytest.raises(ConfigError, match="odd size 33"):
        run(data, backbone, tmp_path / "m")
    assert run(data, backbone, tmp_path / "m", preset="cosent", fresh=True)["result"]["steps"] == 6


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"run__trainer": {"max_steps": 3}}, "run.trainer.max_steps"),
        ({"run__trainer": {"optim": "sgdd"}}, "transformers refuses"),
        ({"optim__scheduler": "bent"}, "transformers refuses"),
        ({"run__precision": "fp16"}, "not on a CPU"),
        ({"preset": "cosent", "batches__strategy": "tokens"}, "max_tokens"),
    ],
)
def test_settings_that_cannot_be(
    data: dict[str, str], bert: Path, tmp_path: Path, flags: Any, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        run(data, bert, tmp_path / "m", **flags)


def test_single_texts_train_unsupervised(bert: Path, tmp_path: Path) -> None:
    lines = {" ".join(random.Random(seed).sample(WORDS, 6)) for seed in range(40)}
    (tmp_path / "texts.txt").write_text("\n".join(sorted(lines)) + "\n")
    record = run({"data": str(tmp_path / "texts.txt")}, bert, tmp_path / "m", preset="simcse")
    assert record["rows"]["kind"] == "single"
    assert record["history"][0]["contrastive"] > 0


def test_lora_trains_the_adapters_only(data: dict[str, str], llama: Path, tmp_path: Path) -> None:
    record = run(data, llama, tmp_path / "m", lora={"rank": 2}, optim__epochs=1)
    assert record["encoder"]["pooling"] == "last"
    vectors = Encoder.load(tmp_path / "m").encode(["the man is eating", "a dog"])
    assert np.isfinite(vectors).all()


def test_dry_run_tells_and_writes_nothing(data: dict[str, str], bert: Path, tmp_path: Path) -> None:
    plan = dry_run(Sources(backbone=str(bert), out=tmp_path / "m", **data), settings())
    assert (plan["rows"], plan["dev_rows"], plan["steps"]) == (ROWS, 30, 6)
    assert sum(plan["labels"].values()) == ROWS
    # Words that the rows don't have do not learn.
    assert 20_000 < plan["parameters"]["trained"] < plan["parameters"]["total"]
    assert plan["seconds"] > 0
    assert plan["memory_mb"]["activations"] > 0
    assert list(tmp_path.iterdir()) == []
