"""Clock, loss log, divergence, checkpoints, reports, averages, and the arguments of processes."""

import math
import os
import sys
import time
from contextlib import suppress
from itertools import pairwise
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from transformers.integrations.integration_utils import WandbCallback

import aoe_train
from aoe_train import encode, evaluate, mine
from aoe_train.data.run_data import Sources, read_data
from aoe_train.model import precision
from aoe_train.model.precision import choose_precision
from aoe_train.settings.train_settings import TrainSettings
from aoe_train.training.build import build
from aoe_train.training.callbacks import Stopwatch, WeightAverage, open_trackers
from aoe_train.training.load import load
from aoe_train.training.monitoring import (
    Diverged,
    LossLog,
    collapse_problem,
    gradient_problem,
    sample_texts,
    spread,
)
from aoe_train.training.training_arguments import (
    Process,
    _check_shard,
    idle_processors,
    start_processes,
)
from pairkit.base.settings import load_settings
from tests.aoe_train.tiny import WORDS, refusal, save_ran
from tests.support.shorthand import approx, parametrize, table, values


def test_the_stopwatch_counts_only_running_time(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    watch = Stopwatch()
    with suppress(ValueError), watch.running():
        now[0] += 1
        with watch.paused():
            now[0] += 20
            assert watch.seconds == 1
        now[0] += 2
        raise ValueError
    now[0] += 40
    assert watch.seconds == 3


def settings(**flags):
    given = {"preset": "angle-paper", "optim.batch_size": 16, **flags}
    return load_settings(TrainSettings, flags=given)


def built(given, data, backbone, out):
    """The inputs of a training loop of one process."""
    sources = Sources({"rows": data}, str(backbone), out / "m")
    process = Process(start_processes(settings(), out), out, print, lambda _: None)
    return build(load(sources, given, process))


# The dev data


@table(
    """
    splits, chosen, noted
    train validation test | validation | False
    train test | test | True
    train | train | False
    test | test | False
    """,
)
def test_the_split_of_dev_data_is_held_out(tmp_path, splits, chosen, noted):
    for split in splits.split():
        lines = "".join(f"{split} {row}\t{split}\t{row % 2}\n" for row in range(4))
        (tmp_path / f"{split}.tsv").write_text(f"text1\ttext2\tlabel\n{lines}")
    file = tmp_path / f"{chosen}.tsv"
    sources = Sources({"a": file}, "minilm", tmp_path, dev_data={"b": tmp_path})
    notes = []
    dev = read_data(sources, settings(), notes.append).dev["b"]
    assert dev.texts[0] == f"{chosen} 0"
    assert [note.endswith("using test") for note in notes] == [True] * noted


# The log of the losses


def parts(loss, in_batch=0.0):
    return {"loss": torch.tensor(loss), "in_batch": torch.tensor(in_batch)}


@parametrize("loss", [math.nan, math.inf])
@table(
    r"""
    step, error, words
    0 | DataError | before the first step
    7 | Diverged | at step 7: .*lower lr= \(now 0.5\)
    """,
    Diverged=Diverged,
)
def test_error_names_the_rows_of_the_first_bad_batch(loss, step, error, words):
    log = LossLog(0.5)
    log.add(parts(1), [0, 1], 0)
    log.add(parts(loss), [9, 2], step)
    log.add(parts(loss), [3, 4], step + 1)
    with pytest.raises(error, match=words) as caught:
        log.drain()
    assert f"the loss became {loss} on a batch of rows 2, 9 " in str(caught.value)


# Divergence


@table(
    """
    vectors, expected
    [[3, 0], [0, 2]] | 1.0
    [[1, 0], [-1, 0]] | 2.0
    [[1, 0], [5, 0]] | 0.0
    # cosines 0, 0, -1
    [[1, 0], [0, 1], [-1, 0]] | 1.33333333
    [[1, 0], [0.6, 0.8]] | 0.4
    [[1, 0]] | nan
    [[1, 0], [None, 0]] | nan
    [[1e999, 0], [1, 0]] | nan
    """,
)
def test_spread_is_the_mean_distance_of_cosines_from_1(vectors, expected):
    found = spread(np.array(vectors, np.float32))
    assert found == approx(expected, abs=1e-7, nan_ok=True)


def check_sign(found, sign):
    assert (found is None) if sign is None else (found is not None and sign in found)


@table(
    """
    before, now, sign
    0.5 | 0.4 | None
    0.5 | 0.004 | is 0.996000, before training 0.500000
    0.05 | 0.0009 | is 0.999100, before training 0.950000
    0.5 | 0.0 | mean cosine of 3 different texts is 1.000000
    # born with cosines near 1, as small random models are
    1e-5 | 9e-6 | None
    1e-5 | 1e-7 | embeddings have collapsed
    0.5 | nan | embeddings are NaN or infinite
    # nothing to compare with
    nan | 0.0 | None
    """,
)
def test_collapse(before, now, sign):
    texts = sample_texts([["a", "b"], ["c", "a"]])
    check_sign(collapse_problem(before, now, len(texts)), sign)


@table(
    """
    norms, sign
    [] | None
    [5.0, 1e999] | gradient became inf
    [300.0, 200.0, 100.0, 5.0, 4.0, 3.0] | None
    [5.0, 4.0, 3.0, 2e4, 3e4, 4e4] | grew from 5 to 4e+04
    # now and then a batch is far off, and clipped
    [5.0, 4.0, 3.0, 2e4, 3.0, 4e4] | None
    # batches that rank nothing come first
    [0.0, 0.0, 0.0, 50.0, 60.0, 70.0] | None
    # too early to say
    [5.0, 2e4, 3e4, 4e4] | None
    """,
)
def test_gradients(norms, sign):
    check_sign(gradient_problem(norms), sign)


# Reports, against stand-ins for packages that are not installed here


@parametrize("url", ["https://wandb.test/run", None])
def test_wandb_folder_and_id(tmp_path, monkeypatch, url):
    for name in ("WANDB_DIR", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    errors = SimpleNamespace(Error=RuntimeError)
    monkeypatch.setitem(sys.modules, "wandb.errors", errors)
    asked, said = {}, []

    def init(**options):
        asked.update(options)
        callback._wandb.run = SimpleNamespace(url=url, dir="/runs/offline-1/files")

    callback = WandbCallback.__new__(WandbCallback)
    callback._wandb = SimpleNamespace(run=None, init=init)
    run = Mock()
    run.name = "m-1"
    run.handler.callbacks = [callback]
    run.built.args = SimpleNamespace(run_name=None, project="aoe")
    run.built.loaded.process.work = tmp_path / "m.work"
    run.built.loaded.process.say = said.append
    open_trackers(run)
    assert [*asked.items()] == values(
        """
        id | m-1
        resume | allow
        name | m-1
        project | aoe
        dir | FOLDER
        """,
        FOLDER=str(tmp_path / "m.runs"),
    )
    place = url or "/runs/offline-1, offline; upload it with wandb sync /runs/offline-1"
    assert said == [f"wandb: reporting to {place}"]


# Processes and devices


def test_idle_processors_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    args = start_processes(settings(), tmp_path)
    told = "1 of 4 GPUs is used; to use all, start with `torchrun --nproc-per-node 4`"
    assert idle_processors(args) == told
    for count in (1, 0):
        monkeypatch.setattr(torch.cuda, "device_count", lambda count=count: count)
        assert idle_processors(args) is None
    # As `accelerate launch` sets it.
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "no")
    assert "`torchrun --nproc-per-node 2`" in str(idle_processors(args))
    assert args.ddp_broadcast_buffers is False


@table(
    """
    deterministic, before, after
    False | None | None
    True | None | :4096:8
    True | :16:8 | :16:8
    """,
)
def test_deterministic_cublas_workspace(
    deterministic, before, after, tmp_path, monkeypatch
):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", before or "")
    if before is None:
        monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    start_processes(settings(**{"run.deterministic": deterministic}), tmp_path)
    assert os.environ.get("CUBLAS_WORKSPACE_CONFIG") == after


def test_emulated_bf16_is_not_chosen(monkeypatch):
    gpu, native = torch.device("cuda"), False
    monkeypatch.setattr(
        torch.cuda,
        "is_bf16_supported",
        lambda including_emulation=True: native or including_emulation,
    )
    assert choose_precision("auto", gpu) == "fp32"
    native = True
    assert choose_precision("auto", gpu) == "bf16"
    assert choose_precision("auto", torch.device("cpu")) == "fp32"


@table(
    """
    setting, optimiser, words
    run.chunk=8 | adamw_torch_fused | run.chunk, as processes
    run.compile=true | adamw_torch_fused | run.compile;
    lora.four_bit=true | adamw_torch_fused | lora.four_bit
    seed=1 | adafactor | the optimiser adafactor
    """,
)
def test_settings_that_sharding_does_not_support(setting, optimiser, words):
    args = SimpleNamespace(world_size=2, optim=optimiser)
    given, sharded = (
        load_settings(TrainSettings, settings=[setting, f"run.shard={shard}"])
        for shard in ("false", "true")
    )
    with refusal(f"run.shard doesn't support {words}"):
        _check_shard(sharded, args)
    _check_shard(given, args)


def test_ran_cannot_be_sharded(data, tmp_path):
    ran = save_ran(tmp_path / "ran")
    with refusal(r"run.shard: not supported for a Recurrent Attention Network"):
        built(settings(**{"run.shard": True}), data["data"], ran, tmp_path)


def test_slow_precision_is_reported(shallow, data, monkeypatch, capsys):
    monkeypatch.setattr(precision, "product_time", lambda _: 4.6)
    monkeypatch.setattr(precision, "_cpu_has_bf16", lambda: True)
    plan = str(aoe_train.plan(**data, backbone=shallow, precision="bf16"))
    assert "bf16; matrix products take 4.6 times as long" in " ".join(plan.split())
    how = {"precision": "bf16", "progress": True}
    pairs = [{"anchor": f"{word} a", "positive": f"a {word}"} for word in WORDS[:40]]
    for call in (
        lambda: encode(["a dog"], model=shallow, **how),
        lambda: evaluate(shallow, resamples=0, **data, **how),
        lambda: mine(pairs, model=shallow, **how),
    ):
        capsys.readouterr()
        call()
        assert "products take 4.6 times as long in bf16" in capsys.readouterr().err


@given(st.floats(0.001, 1), st.integers(1, 1000))
def test_number_of_samples_is_limited(share, steps):
    average = WeightAverage(nn.Linear(1, 1), share)
    counts = [average.samples(step, steps) for step in range(steps + 1)]
    taken = [step for step in range(1, steps + 1) if counts[step] > counts[step - 1]]
    assert counts[0] == 0
    assert counts[-1] == len(taken) <= 100
    assert taken[-1] == steps
    assert len({after - before for before, after in pairwise(taken)}) <= 1
    assert steps - taken[0] < max(1, round(share * steps))


def test_applied_restores_the_exact_weights():
    model = nn.Linear(3, 2)
    average = WeightAverage(model, 1.0)
    with average.applied(model):  # before the first sample: its own
        own = model.weight.detach().clone()
    assert torch.equal(model.weight, own)
    for step, value in enumerate([0.1, 0.7], start=1):
        with torch.no_grad():
            model.weight.fill_(value)
        average.add(model, step, 2)
    with average.applied(model):
        torch.testing.assert_close(model.weight.detach(), torch.full((2, 3), 0.4))
    assert torch.equal(model.weight.detach(), torch.full((2, 3), 0.7))
