"""Train with sentence-transformers' own trainer and losses."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import torch
from datasets import Dataset
from encode_st import decoder
from runner import Stopwatch, answer, job, rows
from score import score
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
)

LOSSES = {
    "angle": losses.AnglELoss,
    "cosent": losses.CoSENTLoss,
    "cosine": losses.CosineSimilarityLoss,
    "mnrl": losses.MultipleNegativesRankingLoss,
    "online-contrastive": partial(losses.OnlineContrastiveLoss, margin=0.5),
}


def main() -> None:
    """Train; measure the last epoch, or score the model after each epoch."""
    work = job()
    model = (
        adapted(work) if work.get("lora") else load(work["model"], work["max_length"])
    )
    data = Dataset.from_list(to_one(rows(work["rows"])))
    sets = {name: rows(path) for name, path in work["score"].items()}
    watch = Stopwatch(work.get("profile", 0))
    with tempfile.TemporaryDirectory() as out:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=out,
            num_train_epochs=work["epochs"],
            per_device_train_batch_size=work["batch_size"],
            learning_rate=work["lr"],
            warmup_steps=work["warmup"],
            bf16=work["precision"] == "bf16",
            use_cpu=not torch.cuda.is_available(),  # required for bf16 without a GPU
            seed=work["seed"],
            batch_sampler="no_duplicates"
            if work.get("no_duplicates")
            else "batch_sampler",
            save_strategy="epoch" if sets or work.get("out") else "no",
            save_only_model=True,
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            dataloader_num_workers=work.get("workers", 0),
            dataloader_persistent_workers=bool(work.get("workers")),
        )
        SentenceTransformerTrainer(
            model=model,
            args=arguments,
            train_dataset=data,
            loss=LOSSES[work["loss"]](model),
        ).train()
        # Load it again, because a model trained under autocast would also encode under it.
        folders = sorted(
            Path(out).glob("checkpoint-*"),
            key=lambda path: int(path.name.split("-")[1]),
        )
        scores = [
            score(load(str(folder), work["max_length"]).encode, sets)
            for folder in folders
            if sets
        ]
        if work.get("out"):
            folders[-1].rename(work["out"])
    times = {
        "each": watch.each_epoch(),
        "steps": len(watch.steps),
        "profile": watch.profile,
    }
    answer(**watch.last_epoch(), **times, epochs=scores)


def to_one(given: list[dict]) -> list[dict]:
    """Pairs with scores from 0 to 1, as the losses require; triplets unchanged."""
    if "label" not in given[0]:
        return given
    top = max(row["label"] for row in given)
    return [{**row, "label": row["label"] / top} for row in given]


def adapted(work: dict) -> SentenceTransformer:
    """A decoder in bf16 with adapters in all its linear layers, and the last token's vector."""
    from peft import LoraConfig

    model = decoder(work["model"], "bfloat16")
    model.max_seq_length = work["max_length"]
    model.tokenizer.pad_token = model.tokenizer.pad_token or model.tokenizer.eos_token
    rank = work["lora"]
    model.add_adapter(
        LoraConfig(
            r=rank, lora_alpha=rank, lora_dropout=0.1, target_modules="all-linear"
        )
    )
    return model


def load(model: str, max_length: int) -> SentenceTransformer:
    """The model with its length limit."""
    loaded = SentenceTransformer(model)
    loaded.max_seq_length = max_length
    return loaded


if __name__ == "__main__":
    main()
