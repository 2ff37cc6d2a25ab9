"""Train with `aoe train`, through its command line but in this process: the stopwatch sees the steps."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile

from runner import Stopwatch, answer, job, rows
from score import score


def main() -> None:
    """Train as the job says; measure the last epoch, or score the model that it leaves."""
    work = job()
    sets = {name: rows(path) for name, path in work["score"].items()}
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/model"
        report = aoe("train", *work["arguments"], "--out", out, "--json")
        scores = []
        if sets:
            from aoe_train import Encoder

            scores = [score(Encoder.load(out, precision="fp32").encode, sets)]
    answer(seconds=watch.last_epoch_s(), steps=len(watch.steps), epochs=scores, report=report)


def aoe(*arguments: str) -> dict:
    """Run a command of `aoe`; what it reports."""
    from aoe_train._cli import main as command

    sys.argv = ["aoe", *arguments]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            command()
        except SystemExit as end:
            if end.code:
                raise
    return json.loads(printed.getvalue().strip().splitlines()[-1])


if __name__ == "__main__":
    main()
