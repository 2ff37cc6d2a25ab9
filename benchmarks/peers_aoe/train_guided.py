"""Train positive pairs with a guide, by `aoe train` or sentence-transformers; the answer is CPU seconds."""

from __future__ import annotations

import tempfile
import time

from runner import answer, job, rows

MARGIN = 0.0


def main() -> None:
    """Train as the job says."""
    work = job()
    found = ours(work) if work["who"] == "ours" else theirs(work)
    answer(whole_s=round(time.process_time(), 2), **found)


def ours(work: dict) -> dict:
    """The part contrastive over all anchors, positives and other anchors, with or without a guide."""
    import aoe_train

    clock = clock_of_steps()
    with tempfile.TemporaryDirectory() as folder:
        aoe_train.train(
            work["rows"],
            backbone=work["model"],
            out=f"{folder}/model",
            preset="simcse-paper",
            guide=work["guide"],
            max_length=work["max_length"],
            epochs=work["epochs"],
            batch_size=work["batch_size"],
            precision="fp32",
            settings={
                "objective.tau.contrastive": work["tau"],
                "objective.contrast_anchors": True,
                "objective.contrast_positives": True,
                "log.checkpoint_minutes": 600,
            },
            progress=False,
        )
    return clock


def theirs(work: dict) -> dict:
    """Its GISTEmbedLoss, or MultipleNegativesRankingLoss with the same candidates."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
        losses,
    )

    clock = clock_of_steps()
    model = SentenceTransformer(work["model"], device="cpu")
    model.max_seq_length = work["max_length"]
    if work["guide"]:
        guide = SentenceTransformer(work["guide"], device="cpu")
        guide.max_seq_length = work["max_length"]
        loss = losses.GISTEmbedLoss(model, guide, temperature=work["tau"], margin=MARGIN)
    else:
        loss = losses.MultipleNegativesRankingLoss(model, scale=1 / work["tau"])
    with tempfile.TemporaryDirectory() as out:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=out,
            num_train_epochs=work["epochs"],
            per_device_train_batch_size=work["batch_size"],
            use_cpu=True,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        pairs = Dataset.from_list(
            [{"anchor": row["anchor"], "positive": row["positive"]} for row in rows(work["rows"])]
        )
        SentenceTransformerTrainer(model=model, args=arguments, train_dataset=pairs, loss=loss).train()
    return clock


def clock_of_steps() -> dict:
    """CPU seconds of all threads from the first epoch to the end of the last step, filled in on the way."""
    from transformers.trainer_callback import DefaultFlowCallback

    clock = {"steps_s": 0.0}
    begun: list[float] = []
    end = DefaultFlowCallback.on_step_end

    def on_epoch_begin(_callback, _args, _state, control, **_kwargs):
        begun.append(time.process_time())
        return control

    def on_step_end(callback, args, state, control, **kwargs):
        clock["steps_s"] = round(time.process_time() - begun[0], 2)
        return end(callback, args, state, control, **kwargs)

    DefaultFlowCallback.on_epoch_begin = on_epoch_begin
    DefaultFlowCallback.on_step_end = on_step_end
    return clock


if __name__ == "__main__":
    main()
