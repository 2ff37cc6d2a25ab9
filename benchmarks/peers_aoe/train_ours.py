"""Train with `aoe_train.train`; the stopwatch sees the steps."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict

import torch
from runner import Stopwatch, answer, job, rows
from score import score

import aoe_train
from aoe_train.training.fit import TrainingRun
from aoe_train.training.training_arguments import OptimiserStep


def main() -> None:
    """Train; measure the last epoch, or score the final model."""
    work = job()
    sets = {name: rows(path) for name, path in work["score"].items()}
    watch = Stopwatch(work.get("profile", 0))
    host = host_ms() if work.get("profile") else {}
    with tempfile.TemporaryDirectory() as folder:
        run = aoe_train.train(**work["train"], out=f"{folder}/model", progress=False)
        scores = []
        if sets:
            scores = [
                score(aoe_train.Encoder.load(run.out, precision="fp32").encode, sets)
            ]
    answer(
        **watch.last_epoch(),
        each=watch.each_epoch(),
        steps=len(watch.steps),
        epochs=scores,
        report=run.to_dict(),
        profile=watch.profile,
        host_ms={part: value / len(watch.steps) for part, value in host.items()},
    )


def host_ms() -> dict[str, float]:
    """Milliseconds of the host in parts of all steps: `gradients` includes `backward` outside of graphs."""
    found: dict[str, float] = defaultdict(float)
    parts = {
        "gradients": (OptimiserStep, "backward"),
        "backward": (torch.Tensor, "backward"),
        "clip": (OptimiserStep, "clip"),
        "schedule": (OptimiserStep, "advance"),
        "callbacks": (TrainingRun, "event"),
    }

    def timed(original, part):
        def call(*arguments, **options):
            start = time.perf_counter()
            try:
                return original(*arguments, **options)
            finally:
                found[part] += 1e3 * (time.perf_counter() - start)

        return call

    for part, (owner, name) in parts.items():
        setattr(owner, name, timed(getattr(owner, name), part))
    return found


if __name__ == "__main__":
    main()
