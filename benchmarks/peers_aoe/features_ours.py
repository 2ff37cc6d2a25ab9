"""What `aoe_train` makes of the inputs of `features.py`; with a second argument, a run that dies there."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from features_texts import (
    DIE_AT,
    STEPS,
    answers,
    classes,
    kill,
    long_pair,
    negatives,
    one_positive,
    save_bert,
    scored,
    sentences,
)
from runner import job

import aoe_train
from pairkit.app.errors import PairkitError

RESUMED = {"preset": "cosent-paper", "lr": 1e-3, "batch_size": 8, "epochs": 2}


def main() -> None:
    """Answer with what happened, for each row."""
    bert, minilm = job()["bert"], job()["minilm"]
    if len(sys.argv) > 2:
        die(bert, Path(sys.argv[2]))
    save_bert(bert)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        trained = train(bert, place / "kept", scored())
        answers(
            classes=told(lambda: train(bert, place / "classes", classes())),
            columns=columns(bert),
            same_text=same_text(bert, place),
            diverged=told(lambda: train(bert, place / "b", scored(), lr=5, epochs=30, preset="cosent-paper")),
            resumed=resumed(bert, place),
            neighbours=neighbours(minilm),
            long_text=plan(
                bert,
                [*scored(), long_pair()],
                "truncated_texts",
            ),
            contradictions=plan(bert, [*scored(), {**scored()[0], "label": 1}], "conflicts"),
            **judged(trained),
        )


def train(bert: str, out: Path, rows: list[dict], **how: object) -> aoe_train.Trained:
    """A run on the small BERT."""
    fixed = {"progress": False, "precision": "fp32", "seed": 0}
    return aoe_train.train(rows, backbone=bert, out=out, **(fixed | how))


def told(work: Callable[[], object]) -> str:
    """The first part of the error that a piece of work ends with, if it does."""
    try:
        work()
    except PairkitError as error:
        return f"ends with an error: “{str(error).partition(';')[0]}”"
    return "trains to the end without a word"


def plan(bert: str, rows: list[dict], what: str) -> str:
    """What a plan counts."""
    found = aoe_train.plan(rows, backbone=bert, progress=False).to_dict()
    counted = {**found["reading"], **found["batches"]}[what]
    return f"counted ({counted}) and said"


def columns(bert: str) -> str:
    """The negatives of the plan."""
    found = aoe_train.plan(negatives(), backbone=bert, progress=False).to_dict()["negatives"]
    return ", ".join(f"{count} a row" for count in found)


def same_text(bert: str, place: Path) -> str:
    """The loss of a batch in which nothing but the other's positive could be a negative."""
    loss = train(bert, place / "same", one_positive(), batch_size=2, epochs=1).history[0]["loss"]
    return f"no (loss {loss:.2f})"


def resumed(bert: str, place: Path) -> str:
    """A run that is killed, and continued by the same call, beside one that was left alone."""
    alone = train(bert, place / "alone", scored(), **RESUMED).encoder.encode(sentences(8))
    kill(place / "killed")
    after = train(bert, place / "killed", scored(), **how_to_resume()).encoder.encode(sentences(8))
    return f"{np.abs(alone - after).max():.0e}"


def how_to_resume() -> dict:
    """The run's settings, with a checkpoint now and then, which changes nothing of its result."""
    return {**RESUMED, "settings": {"log.checkpoint_steps": STEPS // 4}}


def die(bert: str, out: Path) -> None:
    """Train, and be killed on the way."""
    from aoe_train.training.trainer.trainer import PairTrainer

    step = PairTrainer.training_step

    def training_step(trainer: PairTrainer, *given: object) -> object:
        if trainer.state.global_step == DIE_AT:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(trainer, *given)

    PairTrainer.training_step = training_step
    train(bert, out, scored(), **how_to_resume())


def neighbours(minilm: str) -> str:
    """A short text alone and among longer ones."""
    encoder = aoe_train.Encoder.load(minilm, precision="fp32")
    texts = [sentences(1)[0], *(" ".join(sentences(12, seed)) for seed in range(1, 64))]
    return f"{np.abs(encoder.encode(texts)[0] - encoder.encode(texts[:1])[0]).max():.0e}"


def judged(trained: aoe_train.Trained) -> dict[str, str]:
    """What a score of the training rows themselves is told with."""
    (found,) = aoe_train.evaluate(trained.out, data=scored(), progress=False).to_dict().values()
    low, high = found["ci95"]["spearman"]
    overlap = found["overlap"]
    return {
        "interval": f"its 95 % interval, here {100 * low:.0f} to {100 * high:.0f}",
        "leak": f"said: {overlap['rows']} of {overlap['of_rows']} rows",
    }


if __name__ == "__main__":
    main()
