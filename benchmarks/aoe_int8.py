"""CPU seconds of encoding in fp32, bf16 and int8 by `Encoder`, and in int8 by onnxruntime.

    python benchmarks/aoe_int8.py --texts TSV [--model minilm] [--threads 1] [--rounds 3]

The second column of TSV, below its head, is encoded. onnxruntime runs the graph that `aoe export --format
onnx` writes, quantised by its `quantize_dynamic` (weights a scale a channel), at batches of 8 and of 32 that
are sorted by length.
Contenders take turns. Seconds are those of the whole process, user and system, from strings to vectors, the
least of the rounds: what else runs on the machine matters little then, but for its share of the caches.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from machine import instruction_sets, processor
from onnxruntime import InferenceSession, SessionOptions
from onnxruntime.quantization import QuantType, quantize_dynamic
from transformers import AutoTokenizer

import aoe_train
from aoe_train import Encoder

PRECISIONS = ("fp32", "bf16", "int8")


def main() -> None:
    """Read the flags, time everybody, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    lines = options.texts.read_text(encoding="utf-8").splitlines()[1:]
    texts = [line.split("\t")[1] for line in lines]
    print(processor(), instruction_sets(), f"{options.threads} threads, {len(texts)} texts", sep="; ")
    encoders = {
        name: Encoder.load(options.model, device="cpu", precision=name, inference_only=True)
        for name in PRECISIONS
    }
    who: dict[str, Callable[[], np.ndarray]] = {
        name: lambda encoder=encoder: encoder.encode(texts) for name, encoder in encoders.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        graphs = {"onnxruntime int8": onnxruntime_int8(options.model, Path(folder) / "onnx", options.threads)}
        for name, graph in graphs.items():
            for size in (8, 32):
                who[f"{name}, batches of {size}"] = by_graph(graph, texts, size)
        report(in_turns(who, options.rounds))


Graph = tuple[Path, Callable[[dict[str, np.ndarray]], np.ndarray]]  # its folder, and what runs it


def onnxruntime_int8(model: str, folder: Path, threads: int) -> Graph:
    """An exported graph, made int8 by onnxruntime and run by it."""
    aoe_train.export(model, out=folder, format="onnx", progress=False)
    graph = folder / "onnx" / "model.onnx"
    quantize_dynamic(graph, folder / "int8.onnx", weight_type=QuantType.QInt8, per_channel=True)
    options = SessionOptions()
    options.intra_op_num_threads = threads
    session = InferenceSession(folder / "int8.onnx", options, providers=["CPUExecutionProvider"])
    return folder, lambda given: session.run(["sentence_embedding"], given)[0]


def by_graph(graph: Graph, texts: list[str], size: int) -> Callable[[], np.ndarray]:
    """What encodes `texts` by the graph, `size` at a time, the longest first."""
    folder, run = graph
    tokenizer = AutoTokenizer.from_pretrained(folder)
    order = np.argsort([-len(text) for text in texts])

    def encode() -> np.ndarray:
        found = []
        for start in range(0, len(order), size):
            batch = [texts[number] for number in order[start : start + size]]
            tokens = tokenizer(batch, padding=True, truncation=True, return_tensors="np")
            given = {name: tokens[name].astype("int64") for name in ("input_ids", "attention_mask")}
            found.append(run(given))
        return np.concatenate(found)[np.argsort(order)]

    return encode


def in_turns(who: dict[str, Callable[[], np.ndarray]], rounds: int) -> dict[str, tuple[float, np.ndarray]]:
    """The least CPU seconds of a few calls after one that warms up, and the vectors."""
    vectors = {name: encode() for name, encode in who.items()}
    took: dict[str, list[float]] = {name: [] for name in who}
    for _ in range(rounds):
        for name, encode in who.items():
            begun = time.process_time()
            encode()
            took[name].append(time.process_time() - begun)
    return {name: (min(took[name]), vectors[name]) for name in who}


def report(found: dict[str, tuple[float, np.ndarray]]) -> None:
    """A row for each contender."""
    slowest, exact = found["fp32"]
    print("| who | CPU s | times as fast as fp32 | mean cosine with fp32 |\n|---|---|---|---|")
    for name, (took, vectors) in found.items():
        print(f"| {name} | {took:.2f} | {slowest / took:.2f} | {(vectors * exact).sum(1).mean():.5f} |")


if __name__ == "__main__":
    main()
