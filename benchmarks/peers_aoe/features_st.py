"""What sentence-transformers makes of the rows of `features.py`; with a second argument, a run that dies."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np
from datasets import Dataset
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
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from transformers import TrainerCallback

RESUMED = {"learning_rate": 1e-3, "per_device_train_batch_size": 8, "num_train_epochs": 2}


def main() -> None:
    """Answer with what happened, for each row."""
    bert, minilm = job()["bert"], job()["minilm"]
    if len(sys.argv) > 2:
        train(bert, Path(sys.argv[2]), scored(), losses.CoSENTLoss, callbacks=[Die()], **saving())
    save_bert(bert)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        silent = "trains to the end without a word"
        trained, _ = train(bert, place / "kept", scored(), losses.CoSENTLoss)
        train(bert, place / "classes", classes(), losses.CoSENTLoss)
        train(
            bert,
            place / "long",
            [long_pair()] * 8,
            losses.CoSENTLoss,
        )
        again = [*scored(), {**scored()[0], "label": 1.0}]
        train(bert, place / "twice", again, losses.CoSENTLoss)
        answers(
            classes=silent,
            columns=columns(bert, place),
            same_text=same_text(bert, place),
            diverged=diverged(bert, place),
            resumed=resumed(bert, place),
            neighbours=neighbours(minilm),
            long_text=silent,
            contradictions=silent,
            **judged(trained),
        )


def train(bert: str, out: Path, rows: list[dict], loss, *, callbacks=(), resume=False, **how):
    """A run on the small BERT: the model, and the log."""
    fixed = {"output_dir": str(out), "save_strategy": "no", "report_to": "none", "disable_tqdm": True}
    fixed |= {"seed": 0, "use_cpu": True, "logging_steps": 1}
    model = SentenceTransformer(bert, device="cpu")
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(**(fixed | how)),
        train_dataset=Dataset.from_list(rows),
        loss=loss(model),
        callbacks=[*callbacks],
    )
    trainer.train(resume_from_checkpoint=resume)
    return model, trainer.state.log_history


def columns(bert: str, place: Path) -> str:
    """How far the loss of one step goes up by the second negative: it does where the loss sees it."""
    fewer = [{name: text for name, text in row.items() if name != "negative_2"} for row in negatives()]
    both, one = (
        train(bert, place / "n", rows, losses.MultipleNegativesRankingLoss, max_steps=1)[1][0]["loss"]
        for rows in (negatives(), fewer)
    )
    return "2 a row" if both > one else "1 a row"


def same_text(bert: str, place: Path) -> str:
    """The loss of a batch in which nothing but the other's positive could be a negative."""
    how = {"per_device_train_batch_size": 2, "max_steps": 1}
    _, log = train(bert, place / "same", one_positive(), losses.MultipleNegativesRankingLoss, **how)
    return f"yes, unless another sampler is asked for (loss {log[0]['loss']:.2f})"


def diverged(bert: str, place: Path) -> str:
    """The cosines of different texts after it."""
    model, _ = train(bert, place / "d", scored(), losses.CoSENTLoss, learning_rate=5.0, num_train_epochs=30)
    cosines = np.asarray(model.similarity(*2 * [model.encode(sentences(8))]))
    return f"trains to the end without a word; all cosines {cosines.min():.2f} to {cosines.max():.2f}"


def resumed(bert: str, place: Path) -> str:
    """A run that is killed, and continued from its checkpoint, beside one that was left alone."""
    alone, _ = train(bert, place / "alone", scored(), losses.CoSENTLoss, **RESUMED)
    kill(place / "killed")
    after, _ = train(bert, place / "killed", scored(), losses.CoSENTLoss, resume=True, **saving())
    return f"{np.abs(alone.encode(sentences(8)) - after.encode(sentences(8))).max():.0e}"


def saving() -> dict:
    """The run's settings, with a checkpoint now and then."""
    return {**RESUMED, "save_strategy": "steps", "save_steps": STEPS // 4}


class Die(TrainerCallback):
    """Kills the process on its way."""

    def on_step_begin(self, _args, state, _control, **_named):
        """Be killed at one step."""
        if state.global_step == DIE_AT:
            os.kill(os.getpid(), signal.SIGKILL)


def neighbours(minilm: str) -> str:
    """A short text alone and among longer ones."""
    model = SentenceTransformer(minilm, device="cpu")
    texts = [sentences(1)[0], *(" ".join(sentences(12, seed)) for seed in range(1, 64))]
    return f"{np.abs(model.encode(texts, batch_size=64)[0] - model.encode(texts[:1])[0]).max():.0e}"


def judged(model: SentenceTransformer) -> dict[str, str]:
    """What a score of the training rows themselves is told with."""
    sides = ([row[name] for row in scored()] for name in ("text1", "text2"))
    found = EmbeddingSimilarityEvaluator(*sides, [row["label"] for row in scored()])(model)
    return {"interval": f"nothing ({len(found)} figures)", "leak": "nothing is said"}


if __name__ == "__main__":
    main()
