"""Training and encoding on a GPU."""

import math
from functools import partial

import pytest
import torch
from numpy.linalg import norm
from safetensors.torch import load_file

from tests.aoe_train.test_train import run
from tests.aoe_train.tiny import (
    WORDS,
    load,
    same_weights,
    save_bert,
    save_llama,
    write_pairs,
)
from tests.support.shorthand import approx, parametrize

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
]
TEXTS = [
    " ".join(WORDS[start : start + count]) for start in range(4) for count in (1, 5, 9)
]


@pytest.fixture
def data(tmp_path):
    return {
        "data": write_pairs(tmp_path / "train.tsv", 60, 1),
        "dev_data": write_pairs(tmp_path / "dev.tsv", 20, 2),
    }


@parametrize("precision", ["fp32", "bf16"])
@parametrize("name", ["bert", "llama"])
def test_vectors_equal_those_of_a_cpu(request, name, precision):
    folder = request.getfixturevalue(name)
    there, here = (
        load(folder, device=device, precision=chosen).encode(TEXTS)
        for device, chosen in (("cuda", precision), ("cpu", "fp32"))
    )
    cosines = (there * here).sum(1) / norm(there, axis=1) / norm(here, axis=1)
    assert cosines.min() > (1 - 1e-5 if precision == "fp32" else 0.999)


def test_deterministic_run_resumes_with_the_same_weights(data, bert, tmp_path, kill_at):
    flags = {"optim__epochs": 2, "run__deterministic": True, "run__precision": "bf16"}
    whole = run(data, bert, tmp_path / "a", **flags)
    resumed = kill_at(
        5, lambda: run(data, bert, tmp_path / "b", log__checkpoint_steps=3, **flags)
    )
    assert same_weights(tmp_path / "a", tmp_path / "b")
    assert resumed["history"] == whole["history"]


@parametrize("name", ["bert", "llama"])
def test_graphs_give_the_losses_of_eager_steps(
    data, name, tmp_path, kill_at, monkeypatch, capsys
):
    replays, replay = [], torch.cuda.CUDAGraph.replay

    def counted(self):
        replays.append(replay(self))

    monkeypatch.setattr(torch.cuda.CUDAGraph, "replay", counted)
    # Widths for which FlashAttention exists, without dropout, so that the losses can be compared.
    save = partial(save_bert, dropout=0.0) if name == "bert" else save_llama
    folder = save(tmp_path / name, dim=64)
    pooling = "last" if name == "llama" else "avg"
    flags = {"optim__epochs": 3, "run__precision": "bf16", "encoder__pooling": pooling}
    if name == "llama":
        flags["lora"] = {"rank": 4, "alpha": 4, "dropout": 0.0}
    eager = run(data, folder, tmp_path / "a", **flags)
    assert not replays
    flags["run__graphs"] = True
    graphs = run(data, folder, tmp_path / "b", progress=True, **flags)
    assert replays
    assert "CUDA graphs" not in capsys.readouterr().err
    resumed = kill_at(
        8, lambda: run(data, folder, tmp_path / "c", log__checkpoint_steps=3, **flags)
    )
    losses = [
        [entry["loss"] for entry in each["history"] if "loss" in entry]
        for each in (eager, graphs, resumed)
    ]
    assert losses[1] == approx(losses[0], rel=0.05)
    assert losses[2] == approx(losses[1], rel=0.05)


@parametrize(
    "more",
    [
        {},
        {"run__gradient_checkpointing": True},
        {"run__chunk": 8},
        {"run__packing": False},
    ],
    ids=str,
)
def test_adapters_of_a_decoder_are_trained(data, llama, out, more):
    flags = {
        "lora": {"rank": 4, "alpha": 4},
        "encoder__pooling": "last",
        "optim__lr": 1e-2,
    }
    record = run(data, llama, out, **flags, **more)
    found = load_file(out / "adapter_model.safetensors")
    assert math.isfinite(record["result"]["dev"])
    assert any(value.any() for name, value in found.items() if "lora_B" in name)
    assert all(
        value.dtype == torch.float32 for name, value in found.items() if "lora" in name
    )
    assert load(out).encode(TEXTS).shape == (len(TEXTS), 32)
