"""Texts encoded per second by `Encoder`, sentence-transformers (torch, ONNX, OpenVINO) and angle-emb.

    python benchmarks/aoe_encode_speed.py [--rounds 3] [--texts short,long] [--precisions fp32,bf16,int8]
        [--sentence-transformers PYTHON] [--angle-emb PYTHON] [--onnx PYTHON] [--openvino PYTHON]
        [--skip onnx,openvino] [--clock cpu]

Prints a table per text length and precision for all-MiniLM-L6-v2 on STS-B sentences and on issues of mixed
length (512 tokens). It times one call with all texts, from strings to float32 vectors, after a warm-up call;
loading and conversion are not timed. The libraries alternate within each round. Peers are shown with their
default batch size (32) and with the fastest one; `Encoder` makes its own batches. In bf16, torch models have
bf16 weights, OpenVINO computes in bf16, and ONNX Runtime stays in fp32. In int8, activations are rounded too.

The difference is the largest of any vector component from sentence-transformers with torch in fp32. Share of
peak: see aoe_train_speed.py. On a shared machine use `--clock cpu` and OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from math import nan
from pathlib import Path
from statistics import median

import numpy as np
from peers_aoe.environments import add_flags, minilm, pythons, run
from peers_aoe.flops import describe, forward_flops, token_lengths
from peers_aoe.texts import issues, short_rows
from runs import argument_parser

PEERS = ("sentence-transformers", "angle-emb", "onnx", "openvino")
MAX_LENGTH = {"short": 128, "long": 512}
REFERENCE = "sentence-transformers, torch"
# Name: environment, script, backend, precisions.
CONTENDERS = {
    "ours": ("ours", "encode_ours.py", "", ("fp32", "bf16", "int8")),
    REFERENCE: ("sentence-transformers", "encode_st.py", "torch", ("fp32", "bf16")),
    "sentence-transformers, ONNX": ("onnx", "encode_st.py", "onnx", ("fp32", "int8")),
    "sentence-transformers, ONNX O3": ("onnx", "encode_st.py", "onnx-O3", ("fp32",)),
    "sentence-transformers, OpenVINO": (
        "openvino",
        "encode_st.py",
        "openvino",
        ("fp32", "bf16", "int8"),
    ),
    "angle-emb": ("angle-emb", "encode_angle.py", "", ("fp32", "bf16")),
}


def main() -> None:
    """Compare the libraries on short and long texts, in fp32 and bf16."""
    parser = argument_parser(__doc__)
    add_flags(parser, *PEERS)
    parser.add_argument(
        "--skip", default="", help="peers to leave out, such as onnx,openvino"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", default="short,long")
    parser.add_argument("--precisions", default="fp32,bf16,int8")
    parser.add_argument("--clock", default="wall", choices=["wall", "cpu"])
    parser.add_argument(
        "--batch-sizes", default="32,16,8,4", help="of the peers, their default first"
    )
    parser.add_argument("--short-texts", type=int, default=4000)
    parser.add_argument("--long-texts", type=int, default=500)
    options = parser.parse_args()
    python = pythons(
        options, *(peer for peer in PEERS if peer not in options.skip.split(","))
    )
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.texts.split(","):
            texts = choose(kind, options)
            (Path(folder) / "texts.json").write_text(
                json.dumps(texts), encoding="utf-8"
            )
            lengths = token_lengths(texts, minilm(), MAX_LENGTH[kind])
            print(f"\n{kind}: {describe(lengths, MAX_LENGTH[kind])}")
            flops = forward_flops(lengths, minilm())
            for precision in options.precisions.split(","):
                compare(python, Path(folder), kind, precision, options, flops)


def choose(kind: str, options: argparse.Namespace) -> list[str]:
    """The texts to encode: sentences of STS-B, or every n-th issue of the tracker."""
    if kind == "short":
        rows = short_rows(options.data, options.short_texts // 2)
        return [row[side] for row in rows for side in ("text1", "text2")]
    found = issues(options.data)
    return found[:: max(1, len(found) // options.long_texts)][: options.long_texts]


def compare(
    python: dict[str, str],
    folder: Path,
    kind: str,
    precision: str,
    options: argparse.Namespace,
    flops: float,
) -> None:
    """Run the libraries in turn, `rounds` times, and print their medians."""
    answers: dict[str, list[dict]] = {}
    peaks = []
    for _ in range(options.rounds):
        # Unknown in int8.
        peaks.append(run(python["ours"], "peak.py", {}).get(precision, nan))
        for who, (home, script, backend, precisions) in CONTENDERS.items():
            if home in python and precision in precisions:
                work = {
                    "model": str(minilm()),
                    "backend": backend,
                    "precision": precision,
                    "max_length": MAX_LENGTH[kind],
                    "texts": str(folder / "texts.json"),
                    "batch_sizes": [
                        int(size) for size in options.batch_sizes.split(",")
                    ],
                    "clock": options.clock,
                    "vectors": str(folder / f"{kind} {who} {precision}.npy"),
                }
                if home == "ours":
                    work["batch_sizes"] = work["batch_sizes"][:1]
                answers.setdefault(who, []).append(run(python[home], script, work))
    report(answers, folder, kind, precision, flops, max(peaks))


def report(
    answers: dict[str, list[dict]],
    folder: Path,
    kind: str,
    precision: str,
    flops: float,
    peak: float,
) -> None:
    """Print a row for each library: speed at its default and best batch size, and the ratio to ours."""
    count = len(json.loads((folder / "texts.json").read_text(encoding="utf-8")))
    print(f"\n{kind}, {precision}, peak {peak:.0f} GFLOP/s\n")
    titles = (
        *("who", "texts/s, default", "best", "at batch", "share of peak"),
        *("ours is faster by", "than best by", "largest difference"),
    )
    print(f"| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    ours = median(first(answer["seconds"]) for answer in answers["ours"])
    for who, given in answers.items():
        seconds = {
            size: median(answer["seconds"][size] for answer in given)
            for size in given[0]["seconds"]
        }
        best = min(seconds, key=lambda size: seconds[size])
        cells = (
            f"{who} {given[0].get('version', '')}".strip(),
            f"{count / first(seconds):.0f}",
            f"{count / seconds[best]:.0f}",
            "its own" if who == "ours" else best,
            f"{100 * flops / seconds[best] / (1e9 * peak):.0f} %",
            f"{first(seconds) / ours:.2f}",
            f"{seconds[best] / ours:.2f}",
            difference(folder, kind, who, precision),
        )
        print(f"| {' | '.join(cells)} |", flush=True)


def first(seconds: dict[str, float]) -> float:
    """The time at the default batch size, which is the first."""
    return next(iter(seconds.values()))


def difference(folder: Path, kind: str, who: str, precision: str) -> str:
    """The largest difference of a vector component from the reference in fp32."""
    reference = folder / f"{kind} {REFERENCE} fp32.npy"
    if not reference.exists():
        return "-"
    return f"{np.abs(np.load(folder / f'{kind} {who} {precision}.npy') - np.load(reference)).max():.1e}"


if __name__ == "__main__":
    main()
