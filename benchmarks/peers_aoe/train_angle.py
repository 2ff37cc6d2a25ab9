"""Train with angle-emb's own `AnglE.fit`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from angle_emb import AnglE
from datasets import Dataset
from runner import Stopwatch, answer, job, rows
from score import score


def main() -> None:
    """Train; measure the last epoch, or score the model after each epoch."""
    work = job()
    angle = (
        adapted(work) if work.get("lora") else load(work["model"], work["max_length"])
    )
    sets = {name: rows(path) for name, path in work["score"].items()}
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as out:
        # fp16 is unset, because its command line reads 0 as true. `warmup_steps` would be 1000.
        angle.fit(
            train_ds=Dataset.from_list(rows(work["rows"])),
            output_dir=out,
            epochs=work["epochs"],
            batch_size=work["batch_size"],
            learning_rate=work["lr"],
            warmup_steps=work["warmup"],
            bf16=work["precision"] == "bf16",
            save_strategy="epoch" if sets or work.get("out") else "no",
            save_total_limit=None,
            loss_kwargs=work["loss"],
            # True (the default) drops duplicate texts of a batch, which would be less work.
            filter_duplicate=work["filter_duplicate"],
            argument_kwargs={
                "seed": work["seed"],
                "use_cpu": not torch.cuda.is_available(),  # required for bf16 without a GPU
                "save_only_model": True,
                "logging_strategy": "no",
                "report_to": "none",
                "disable_tqdm": True,
            },
        )
        # Load it again, because a model trained under autocast would also encode under it.
        folders = sorted(
            Path(out).glob("checkpoint-*"),
            key=lambda path: int(path.name.split("-")[1]),
        )
        scores = [
            score(encode(load(str(folder), work["max_length"])), sets)
            for folder in folders
            if sets
        ]
        if work.get("out"):
            folders[-1].rename(work["out"])
    answer(
        **watch.last_epoch(),
        each=watch.each_epoch(),
        steps=len(watch.steps),
        epochs=scores,
    )


def adapted(work: dict) -> AnglE:
    """A decoder in bf16 with adapters in all its linear layers, and the last token's vector."""
    return AnglE.from_pretrained(
        work["model"],
        max_length=work["max_length"],
        pooling_strategy="last",
        is_llm=True,
        apply_lora=True,
        train_mode=True,
        torch_dtype=torch.bfloat16,
        lora_config_kwargs={"r": work["lora"], "lora_alpha": work["lora"]},
    )


def load(model: str, max_length: int) -> AnglE:
    """The model with its length limit and the mean pooling of all-MiniLM-L6-v2."""
    return AnglE.from_pretrained(model, max_length=max_length, pooling_strategy="avg")


def encode(angle: AnglE) -> Callable[[list[str]], np.ndarray]:
    """Encode in batches, as its own evaluator does, because its `encode` pads all texts to one length."""
    return lambda texts: np.concatenate(
        [angle.encode(texts[start : start + 32]) for start in range(0, len(texts), 32)]
    )


if __name__ == "__main__":
    main()
