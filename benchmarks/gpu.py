"""Training and encoding on one GPU with `aoe`, sentence-transformers and angle-emb: speed and memory.

    python benchmarks/gpu.py [--work train-bert,encode-bert,train-llama,encode-llama] [--texts short,long]
        [--epochs 4] [--tokenizer FOLDER] [--sentence-transformers PYTHON] [--angle-emb PYTHON]
        [--data FOLDER]

Models have random weights, so no Hub is needed: `bert` is a BERT-base and `llama` a LLaMA-7B (32 layers,
width 4,096), both with the tokenizer of `--tokenizer` (default: all-MiniLM-L6-v2). Rows and settings are
those of aoe_train_speed.py, in bf16. Each process runs `--epochs` epochs; all but the first are timed, with
GPU synchronisation at both ends. BERT is trained in full, LLaMA with adapters of rank 16 on all linear
layers.

Prints real tokens per second, share of peak and memory. Share of peak: FLOPs of matrix products (training
takes three forward passes, two for a frozen layer) per second, divided by the fastest bf16 product in the
same run. Memory: the maximum that torch allocated and reserved.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from peers_aoe.environments import add_flags, minilm, pythons, run
from peers_aoe.flops import describe, forward_flops, token_lengths
from peers_aoe.jobs import peer_training
from peers_aoe.runner import wait_for_gpu
from peers_aoe.texts import long_rows, short_rows, write
from runs import argument_parser

PEERS = ("sentence-transformers", "angle-emb")
TRAIN = {"ours": "train_ours.py", "sentence-transformers": "train_st.py", "angle-emb": "train_angle.py"}
ENCODE = {"ours": "encode_ours.py", "sentence-transformers": "encode_st.py", "angle-emb": "encode_angle.py"}
MAX_LENGTH = {"short": 128, "long": 512}
# Number of pairs, and batch size, by model and texts.
SIZES = {
    ("bert", "short"): (2_560, 64),
    ("bert", "long"): (640, 32),
    ("llama", "short"): (512, 32),
    ("llama", "long"): (64, 4),
}
RANK, LR = 16, 2e-5


@dataclass(frozen=True)
class Work:
    """The work of each library."""

    model: Path
    llama: bool
    rows: list[dict]
    path: Path
    tokens: int
    flops: float
    max_length: int
    batch_size: int


def main() -> None:
    """Make the models and compare the libraries on all work."""
    parser = argument_parser(__doc__)
    add_flags(parser, *PEERS)
    parser.add_argument("--work", default="train-bert,encode-bert,train-llama,encode-llama")
    parser.add_argument("--texts", default="short,long")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--tokenizer", type=Path, help="a folder with tokenizer.json, up to 32,000 tokens")
    parser.add_argument("--compile", action="store_true", help="add a run with run.compile")
    parser.add_argument(
        "--layers", type=int, default=32, help="of LLaMA, to try the script on a small device"
    )
    options = parser.parse_args()
    python = pythons(options, *PEERS)
    peak = best_product()
    print(f"{device()}; torch {torch.__version__}; peak {peak / 1e12:.0f} TFLOP/s in bf16")
    with tempfile.TemporaryDirectory() as folder:
        models: dict[str, Path] = {}
        for wanted in options.work.split(","):
            kind, name = wanted.split("-")
            if name not in models:
                models[name] = make(name, Path(folder) / name, options)
            for texts in options.texts.split(","):
                work = prepared(name, models[name], texts, Path(folder), options.data)
                compare(f"{kind} {name}, {texts}", kind, work, python, options, peak)


def device() -> str:
    """The name of the GPU."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"


def best_product(size: int = 8192, times: int = 20) -> float:
    """FLOP/s of the best product of two square matrices of random bf16 numbers."""
    if not torch.cuda.is_available():
        size = 1024
    where = "cuda" if torch.cuda.is_available() else "cpu"
    one, other = (torch.randn(size, size, device=where, dtype=torch.bfloat16) for _ in range(2))
    seconds = []
    for _ in range(times + 3):
        wait_for_gpu()
        start = time.perf_counter()
        one @ other
        wait_for_gpu()
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds[3:])


def make(name: str, folder: Path, options: argparse.Namespace) -> Path:
    """Write a model folder with random weights and the tokenizer."""
    from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel

    torch.manual_seed(0)
    where = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.device(where):
        if name == "bert":
            model = BertModel(BertConfig(), add_pooling_layer=False)
        else:
            config = LlamaConfig(num_hidden_layers=options.layers, dtype="bfloat16")
            torch.set_default_dtype(torch.bfloat16)
            model = LlamaModel(config)
            torch.set_default_dtype(torch.float32)
    model.save_pretrained(folder)
    source = options.tokenizer or minilm()
    for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(source / file, folder / file)
    del model
    if where == "cuda":
        torch.cuda.empty_cache()
    return folder


def prepared(name: str, model: Path, texts: str, folder: Path, data: Path) -> Work:
    """The rows with their tokens and FLOPs."""
    count, batch_size = SIZES[name, texts]
    rows = (short_rows if texts == "short" else long_rows)(data, count)
    limit = MAX_LENGTH[texts]
    lengths = token_lengths([row[side] for row in rows for side in ("text1", "text2")], model, limit)
    print(f"\n{texts}: {count:,} pairs; {describe(lengths, limit)}")
    path = write(rows, folder / f"{name}-{texts}.jsonl")
    flops = forward_flops(lengths, model)
    return Work(model, name == "llama", rows, path, int(lengths.sum()), flops, limit, batch_size)


def compare(
    title: str, kind: str, work: Work, python: dict[str, str], options: argparse.Namespace, peak: float
) -> None:
    """Run the libraries one after the other, and print the median of their epochs."""
    answers: dict[str, dict] = {}
    epochs, contenders = options.epochs, dict(python)
    if options.compile and kind == "train":
        contenders["ours, compiled"] = python["ours"]
    for who, interpreter in contenders.items():
        try:
            answers[who] = once(kind, who, interpreter, work, epochs)
        except SystemExit as failed:  # the failure of one library is a result
            print(f"{title}: {who} failed\n{failed}", file=sys.stderr, flush=True)
    print(f"\n{title}, bf16, batches of {work.batch_size} pairs, {epochs} epochs\n")
    titles = ("who", "tokens/s, median", "of each epoch", "share of peak", "ours is faster by")
    titles = (*titles, "held, GB", "reserved, GB", "whole process s")
    print(f"| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    factor = 1 if kind == "encode" else 2 if work.llama else 3
    for who, answer in answers.items():
        speed = [work.tokens / seconds for seconds in answer["each"][1:]]
        rate = median(speed)
        ours = answers.get("ours")
        cells = (
            who,
            f"{rate:,.0f}",
            " ".join(f"{value:,.0f}" for value in speed),
            f"{100 * factor * work.flops * rate / work.tokens / peak:.0f} %",
            f"{work.tokens / median(ours['each'][1:]) / rate:.2f}" if ours else "-",
            f"{answer['gpu_gb'][0]:.1f}",
            f"{answer['gpu_gb'][1]:.1f}",
            f"{answer['wall_s']:.0f}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


def once(kind: str, who: str, interpreter: str, work: Work, epochs: int) -> dict:
    """The result of one library."""
    if kind == "train":
        return run(interpreter, TRAIN[who.partition(",")[0]], training(who, work, epochs))
    with tempfile.TemporaryDirectory() as folder:
        texts = [row[side] for row in work.rows for side in ("text1", "text2")]
        (Path(folder) / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
        job = {
            "model": str(work.model),
            "pooling": "last" if work.llama else "avg",
            "backend": "torch",
            "precision": "bf16",
            "max_length": work.max_length,
            "texts": f"{folder}/texts.json",
            "batch_sizes": [2 * work.batch_size],
            "times": epochs,
            "vectors": f"{folder}/vectors.npy",
        }
        return run(interpreter, ENCODE[who], job)


def training(who: str, work: Work, epochs: int) -> dict:
    """The job for the library's script."""
    lora = RANK if work.llama else None
    if who.startswith("ours"):
        settings: dict = {
            "run.compile": "compiled" in who,
            "optim.warmup": 0,
            "log.checkpoint_minutes": 1000,
            "log.steps": 10_000,
        }
        if lora:
            settings |= {"lora.rank": lora, "lora.alpha": lora, "lora.dropout": 0.1}
        arguments = {
            "data": str(work.path),
            "backbone": str(work.model),
            "preset": "angle-paper",
            "pooling": "last" if lora else "avg",
            "epochs": epochs,
            "batch_size": work.batch_size,
            "lr": LR,
            "max_length": work.max_length,
            "precision": "bf16",
            "seed": 0,
            "settings": settings,
        }
        return {"train": arguments | ({"lora": True} if lora else {}), "score": {}}
    return peer_training(
        who,
        model=str(work.model),
        pooling="last" if lora else "avg",
        lora=lora,
        rows=str(work.path),
        max_length=work.max_length,
        epochs=epochs,
        batch_size=work.batch_size,
        lr=LR,
        precision="bf16",
    )


if __name__ == "__main__":
    main()
