"""Runs stopped by signals, and the documented Slurm script."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from transformers import TrainerCallback

from aoe_train import train
from tests.aoe_train.shorthand import stderr
from tests.aoe_train.test_train_refused import OfVectors
from tests.aoe_train.tiny import same_weights, write_pairs
from tests.support.shorthand import config_error

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "howto" / "slurm.md"


@pytest.fixture(autouse=True)
def _default_sigterm(interruptible):
    """Remove coverage's handler of SIGTERM, since runs keep foreign handlers."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


class Signals(TrainerCallback):
    """Send this process a signal at the end of a step."""

    def __init__(self, kind, step):
        self._kind, self._step = kind, step

    def on_step_end(self, args, state, control, **_):
        if state.global_step == self._step:
            os.kill(os.getpid(), self._kind)


@pytest.fixture(scope="module")
def fit(shallow, tmp_path_factory):
    """Train six steps."""
    data = write_pairs(tmp_path_factory.mktemp("pairs") / "train.tsv", 90, 0)

    def fit(out, *callbacks, progress=False):
        how = {"preset": "angle-paper", "batch_size": 16, "progress": progress}
        return train(data, backbone=shallow, out=out, callbacks=callbacks, **how)

    return fit


def test_stopped_run_continues_to_the_same_weights(fit, tmp_path, capsys):
    fit(tmp_path / "whole")
    for kind in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
        before, out = signal.getsignal(kind), tmp_path / signal.Signals(kind).name
        with pytest.raises(KeyboardInterrupt, match="stopped after step 3"):
            fit(out, Signals(kind, 3))
        assert (out.with_name(out.name + ".work") / "step-3.pt").is_file()
        assert not out.exists()
        fit(out, progress=True)
        assert "continuing after step 3" in stderr(capsys)
        assert same_weights(tmp_path / "whole", out)
        assert signal.getsignal(kind) == before


def test_second_ctrl_c_stops_immediately(fit, out):
    with pytest.raises(KeyboardInterrupt) as ended:
        fit(out, Signals(signal.SIGINT, 3), Signals(signal.SIGINT, 3))
    assert "stopped" not in str(ended.value)
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


def test_signal_at_the_last_step_finishes_the_run(fit, out, tmp_path):
    fit(out, Signals(signal.SIGTERM, 6))
    assert (out / "model.safetensors").exists()
    assert not (tmp_path / "m.work").exists()
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "interrupted", Signals(signal.SIGINT, 6))
    assert same_weights(out, tmp_path / "interrupted")


class Writing(OfVectors):
    """Send two signals while the first model is written."""

    signals = (signal.SIGINT, signal.SIGINT)

    def save(self, folder):
        for kind in self.signals:
            os.kill(os.getpid(), kind)


def test_a_run_that_is_interrupted_while_it_is_written_needs_no_more_training(
    shallow, tmp_path, capsys
):
    def fit(out, *callbacks):
        data = write_pairs(tmp_path / "train.tsv", 90, 0)
        objective = Writing(lambda vectors: vectors.square().mean())
        return train(
            data,
            backbone=shallow,
            out=out,
            objective=objective,
            batch_size=16,
            settings={"optim.average": 0.9, "optim.interpolate": 0.5},
            callbacks=callbacks,
        )

    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path / "m")
    assert not (tmp_path / "m").exists()
    Writing.signals = ()
    resumed = fit(tmp_path / "m", Signals(signal.SIGTERM, 1))  # would stop a training
    assert f"continuing after step {resumed.steps}" in stderr(capsys)
    whole = fit(tmp_path / "whole")
    assert resumed.history == whole.history
    assert resumed.seconds > 0
    assert same_weights(tmp_path / "m", tmp_path / "whole")
    assert not (tmp_path / "m.work").exists()


def test_ignored_signals_stop_nothing(fit, out):
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        assert fit(out, Signals(signal.SIGUSR1, 3)).steps == 6
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_run_outside_the_main_thread_handles_no_signals(fit, out):
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(fit, out).result().steps == 6


class EndEpoch(TrainerCallback):
    """End the first epoch early."""

    def on_step_end(self, args, state, control, **_):
        control.should_epoch_stop = state.global_step == 2


def test_an_epoch_that_ends_early_is_refused(fit, out):
    """A resumed run would derive the wrong rows from its step."""
    with config_error("should_epoch_stop.*set should_training_stop"):
        fit(out, EndEpoch())
    assert not out.exists()


def stand_in(folder, name, line):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/bash\n{line}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("ends_with, queued", [(130, "requeue 77\n"), (0, "")])
def test_documented_slurm_script_forwards_the_signal(tmp_path, ends_with, queued):
    """The training ends after its signal, stopped or finished."""
    found = re.findall(r"```bash\n(#!/bin/bash\n.*?)```", SCRIPT.read_text(), re.DOTALL)
    (text,) = [block for block in found if "scontrol requeue" in block]
    (tmp_path / "job.sh").write_text(text)
    bin_folder, log = tmp_path / "bin", tmp_path / "queued"
    log.touch()
    stand_in(bin_folder, "scontrol", f'echo "$@" >> {log}')
    stand_in(
        bin_folder,
        "aoe",
        f"trap 'exit {ends_with}' USR1; touch begun; while :; do sleep 0.05; done",
    )
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "SLURM_JOB_ID": "77",
    }
    script = subprocess.Popen(["bash", "job.sh"], cwd=tmp_path, env=environment)
    until = time.monotonic() + 300
    while not (tmp_path / "begun").exists() and time.monotonic() < until:
        time.sleep(0.02)
    script.send_signal(signal.SIGUSR1)
    assert script.wait(300) == ends_with
    assert log.read_text() == queued


@pytest.mark.slow
def test_all_processes_of_torchrun_stop_at_one_step(shallow, tmp_path):
    """With the documented option; only torchrun gets the signal."""
    (handled,) = set(re.findall(r"--signals-to-handle \S+", SCRIPT.read_text()))
    data = write_pairs(tmp_path / "train.tsv", 90, 0)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "AOE_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": str(SCRIPT.parents[2]),
    }

    def begin(out):
        command = (
            f"{sys.executable} -m torch.distributed.run --standalone {handled} --nproc-per-node 2"
            f" -m aoe_train train --data {data} --backbone {shallow} --out {out} --set log.steps=2 -q"
        )
        return subprocess.Popen(command.split(), cwd=tmp_path, env=environment)

    launcher = begin("stopped")
    ranks = []
    while len(ranks) < 2:
        assert launcher.poll() is None
        time.sleep(0.02)
        children = psutil.Process(launcher.pid).children()
        ranks = [child.pid for child in children if handles_the_signal(child.pid)]
    launcher.send_signal(signal.SIGUSR1)
    assert launcher.wait(120) != 0
    assert not [pid for pid in ranks if Path(f"/proc/{pid}").exists()]
    assert len(list((tmp_path / "stopped.work").glob("step-*"))) == 1
    assert begin("stopped").wait(300) == 0
    assert begin("whole").wait(300) == 0
    assert same_weights(tmp_path / "whole", tmp_path / "stopped")


def handles_the_signal(pid):
    """Whether training has started, which then catches SIGUSR1."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    caught = int(re.findall(r"SigCgt:\s*(\w+)", status)[0], 16)
    return (
        bool(caught >> (signal.SIGUSR1 - 1) & 1) and "python" in status.splitlines()[0]
    )
