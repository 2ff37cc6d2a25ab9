"""Train with `aoe_train.train`; the stopwatch sees the steps."""

from __future__ import annotations

import tempfile

from runner import Stopwatch, answer, job, rows
from score import score

import aoe_train


def main() -> None:
    """Train; measure the last epoch, or score the final model."""
    work = job()
    sets = {name: rows(path) for name, path in work["score"].items()}
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        run = aoe_train.train(**work["train"], out=f"{folder}/model", progress=False)
        scores = []
        if sets:
            scores = [score(aoe_train.Encoder.load(run.out, precision="fp32").encode, sets)]
    answer(
        **watch.last_epoch(),
        each=watch.each_epoch(),
        steps=len(watch.steps),
        epochs=scores,
        report=run.to_dict(),
    )


if __name__ == "__main__":
    main()
