"""Training and encoding on one GPU with `aoe`, sentence-transformers and angle-emb: speed and memory.

    python benchmarks/gpu.py [--work train-bert,encode-bert,train-llama,encode-llama] [--texts short,long]
        [--epochs 4] [--rounds 2] [--minutes 5] [--profile] [--compile] [--layers 8] [--tiny]
        [--tokenizer FOLDER] [--sentence-transformers PYTHON] [--angle-emb PYTHON] [--data FOLDER]

Models have random weights, so no Hub is needed: `bert` is a BERT-base and `llama` a LLaMA of LLaMA-7B's width
(4,096) with `--layers` layers, both with the tokenizer of `--tokenizer` (default: all-MiniLM-L6-v2). Rows and
settings are those of aoe_train_speed.py, in bf16. BERT is trained in full, LLaMA with adapters of rank 16 on
all linear layers; sentence-transformers loads rows in four workers. The libraries run in turns, in the
opposite order in every other round, because a host's speed varies. All epochs but the first are timed, with
GPU synchronisation at both ends, except the last, of which a few steps are profiled. After `--minutes`, no
further process is started.

Prints real tokens per second, share of peak, milliseconds in which the GPU worked (of a step of training, or
of encoding all texts), and memory. Share of peak: FLOPs of matrix products (training takes three forward
passes, two for a frozen layer) per second, divided by the fastest bf16 product in the same run. Memory: the
maximum that torch allocated and reserved. `--profile` adds launches, operators and the host's time per step.

On a bare CUDA machine without network, the first command having run elsewhere with the same Python:
    pip download -d wheels ".[train,minilm]" "sentence-transformers[train]==6.2.0" (its torch has CUDA)
    pip install --no-index --find-links wheels "aoe-toolkit[train,minilm]" "sentence-transformers[train]"
and there `python benchmarks/gpu.py --sentence-transformers "$(which python)" --data FOLDER`.
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

PEERS = ("sentence-transformers", "angle-emb")  # the second only if its Python is given
TRAIN = {
    "ours": "train_ours.py",
    "sentence-transformers": "train_st.py",
    "angle-emb": "train_angle.py",
}
ENCODE = {
    "ours": "encode_ours.py",
    "sentence-transformers": "encode_st.py",
    "angle-emb": "encode_angle.py",
}
MAX_LENGTH = {"short": 128, "long": 512}
# Number of pairs, and batch size, by model and texts.
SIZES = {
    ("bert", "short"): (2_560, 64),
    ("bert", "long"): (640, 32),
    ("llama", "short"): (512, 32),
    ("llama", "long"): (64, 4),
}
RANK, LR = 16, 2e-5
PROFILED = 6  # steps
TINY = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}


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
    parser.add_argument("--work", default="train-bert,encode-bert")
    parser.add_argument("--texts", default="short,long")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument(
        "--tokenizer",
        type=Path,
        help="a folder with tokenizer.json, up to 32,000 tokens",
    )
    parser.add_argument(
        "--profile", action="store_true", help="print where the time of a step goes"
    )
    parser.add_argument(
        "--compile", action="store_true", help="add a run with run.compile"
    )
    parser.add_argument(
        "--layers", type=int, default=8, help="of LLaMA; LLaMA-7B has 32"
    )
    parser.add_argument(
        "--tiny",
        action="store_true",
        help="tiny models and few rows, to try the script",
    )
    options = parser.parse_args()
    options.end = time.monotonic() + 60 * options.minutes
    python = pythons(options, *(PEERS if options.angle_emb else PEERS[:1]))
    peak = best_product()
    print(
        f"{device()}; torch {torch.__version__}; peak {peak / 1e12:.0f} TFLOP/s in bf16"
    )
    with tempfile.TemporaryDirectory() as folder:
        models: dict[str, Path] = {}
        for wanted in options.work.split(","):
            kind, name = wanted.split("-")
            if name not in models:
                models[name] = make(name, Path(folder) / name, options)
            for texts in options.texts.split(","):
                work = prepared(name, models[name], texts, Path(folder), options)
                compare(f"{kind} {name}, {texts}", kind, work, python, options, peak)


def device() -> str:
    """The name of the GPU."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"


def best_product(size: int = 8192, times: int = 20) -> float:
    """FLOP/s of the best product of two square matrices of random bf16 numbers."""
    if not torch.cuda.is_available():
        size = 1024
    where = "cuda" if torch.cuda.is_available() else "cpu"
    one, other = (
        torch.randn(size, size, device=where, dtype=torch.bfloat16) for _ in range(2)
    )
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
            model = BertModel(
                BertConfig(**(TINY if options.tiny else {})), add_pooling_layer=False
            )
        else:
            sizes = TINY if options.tiny else {"num_hidden_layers": options.layers}
            config = LlamaConfig(**sizes, dtype="bfloat16")
            torch.set_default_dtype(torch.bfloat16)
            model = LlamaModel(config)
            torch.set_default_dtype(torch.float32)
    model.save_pretrained(folder)
    source = options.tokenizer or minilm()
    for file in (
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "vocab.txt",
    ):
        shutil.copy(source / file, folder / file)
    del model
    if where == "cuda":
        torch.cuda.empty_cache()
    return folder


def prepared(
    name: str, model: Path, texts: str, folder: Path, options: argparse.Namespace
) -> Work:
    """The rows with their tokens and FLOPs."""
    count, batch_size = (80, 8) if options.tiny else SIZES[name, texts]
    rows = (short_rows if texts == "short" else long_rows)(options.data, count)
    limit = MAX_LENGTH[texts]
    lengths = token_lengths(
        [row[side] for row in rows for side in ("text1", "text2")], model, limit
    )
    print(f"\n{texts}: {count:,} pairs; {describe(lengths, limit)}")
    path = write(rows, folder / f"{name}-{texts}.jsonl")
    flops = forward_flops(lengths, model)
    return Work(
        model, name == "llama", rows, path, int(lengths.sum()), flops, limit, batch_size
    )


def compare(
    title: str,
    kind: str,
    work: Work,
    python: dict[str, str],
    options: argparse.Namespace,
    peak: float,
) -> None:
    """Run the libraries in turns, and print the median of their epochs."""
    contenders = dict(python)
    if kind == "train":
        contenders |= {"ours, without graphs": python["ours"]}
        contenders |= {"ours, compiled": python["ours"]} if options.compile else {}
    answers: dict[str, list[dict]] = {who: [] for who in contenders}
    for number in range(options.rounds):
        for who in list(contenders)[:: 1 if number % 2 == 0 else -1]:
            if time.monotonic() > options.end:
                print(
                    f"{title}: no time is left for {who}", file=sys.stderr, flush=True
                )
                continue
            try:
                answers[who].append(
                    once(kind, who, contenders[who], work, options.epochs)
                )
            except SystemExit as failed:  # the failure of one library is a result
                print(f"{title}: {who} failed\n{failed}", file=sys.stderr, flush=True)
    print(
        f"\n{title}, bf16, batches of {work.batch_size} pairs, {options.epochs} epochs\n"
    )
    titles = (
        "who",
        "tokens/s, median",
        "of each epoch",
        "share of peak",
        "ours is faster by",
    )
    titles = (*titles, "GPU busy, ms", "held, GB", "reserved, GB", "whole process s")
    print(f"| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    factor = 1 if kind == "encode" else 2 if work.llama else 3
    last = -1 if kind == "train" else None  # a training's last epoch is profiled
    seconds = {
        who: [each for one in found for each in one["each"][1:last]]
        for who, found in answers.items()
    }
    for who, found in answers.items():
        if not found:
            continue
        middle, last_found = median(seconds[who]), found[-1]
        busy = last_found.get("profile")
        cells = (
            who,
            f"{work.tokens / middle:,.0f}",
            " ".join(f"{work.tokens / value:,.0f}" for value in seconds[who]),
            f"{100 * factor * work.flops / middle / peak:.0f} %",
            f"{middle / median(seconds['ours']):.2f}" if seconds["ours"] else "-",
            f"{busy['busy_ms']:.1f}" if busy else "-",
            f"{last_found['gpu_gb'][0]:.1f}",
            f"{last_found['gpu_gb'][1]:.1f}",
            f"{last_found['wall_s']:.0f}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)
    if options.profile and kind == "train":
        print_profiles(answers, seconds)


def print_profiles(
    answers: dict[str, list[dict]], seconds: dict[str, list[float]]
) -> None:
    """Print where a training step's time goes; the host's parts only for `aoe`."""
    titles = (
        "who",
        "ms a step",
        "GPU busy",
        "launches",
        "operators",
        "host, ms a step",
    )
    print(f"\n| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    for who, found in answers.items():
        if not found or not (profile := found[-1].get("profile")):
            continue
        step = 1e3 * median(seconds[who]) * len(found[-1]["each"]) / found[-1]["steps"]
        host = found[-1].get("host_ms", {})
        cells = (
            who,
            f"{step:.1f}",
            f"{profile['busy_ms'] / step:.0%}",
            f"{profile['launches']:,.0f}",
            f"{profile['operators']:,.0f}",
            ", ".join(f"{part} {value:.1f}" for part, value in host.items()),
        )
        print(f"| {' | '.join(cells)} |", flush=True)


def once(kind: str, who: str, interpreter: str, work: Work, epochs: int) -> dict:
    """The result of one library."""
    if kind == "train":
        return run(
            interpreter, TRAIN[who.partition(",")[0]], training(who, work, epochs)
        )
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
            "profile": True,
        }
        return run(interpreter, ENCODE[who], job)


def training(who: str, work: Work, epochs: int) -> dict:
    """The job for the library's script."""
    lora = RANK if work.llama else None
    if who.startswith("ours"):
        settings: dict = {
            "run.compile": "compiled" in who,
            "run.graphs": "without graphs" not in who,
            "batches.strategy": "length",
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
        arguments |= {"lora": True} if lora else {}
        return {"train": arguments, "score": {}, "profile": PROFILED}
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
        workers=4,
        profile=PROFILED,
    )


if __name__ == "__main__":
    main()
