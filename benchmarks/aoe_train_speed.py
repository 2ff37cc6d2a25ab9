"""Pairs trained per second by `aoe train`, sentence-transformers and angle-emb on the same rows.

    python benchmarks/aoe_train_speed.py [--rounds 3] [--texts short,long] [--precisions fp32,bf16]
        [--sentence-transformers PYTHON] [--angle-emb PYTHON] [--data FOLDER]

Prints a table per text length and precision for all-MiniLM-L6-v2 in batches of 32 pairs. Each library's own
trainer runs in its own process with AdamW, dropout and clipped gradients; the libraries alternate within each
round. Losses: sentence-transformers' AnglE, angle-emb's cosent + in_batch + angle, and our preset `angle`
with the same three parts.

Each process trains two epochs, and the second is timed, from its first batch to its last step. Peers tokenise
in their loop, `aoe` once before the first epoch; so the time of the whole process is printed, too.

Share of peak: FLOPs of the matrix products of real tokens (without padding; forward and backward count as
three forward passes) per second, divided by the fastest matrix product of torch in the same run. On a shared
machine use the columns by CPU time, with OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from machine import instruction_sets, processor
from peers_aoe.environments import add_flags, minilm, pythons, run
from peers_aoe.flops import describe, forward_flops, token_lengths
from peers_aoe.jobs import peer_training
from peers_aoe.texts import long_rows, short_rows, write
from runs import argument_parser

PEERS = ("sentence-transformers", "angle-emb")
SCRIPTS = {
    "ours": "train_ours.py",
    "sentence-transformers": "train_st.py",
    "angle-emb": "train_angle.py",
}
MAX_LENGTH = {"short": 128, "long": 512}
EPOCHS, LR = 2, 2e-5


@dataclass(frozen=True)
class Work:
    """The work of each library; `flops` is for the real tokens of all rows, forward and backward."""

    path: Path
    rows: int
    flops: float
    max_length: int
    batch_size: int
    precision: str


def main() -> None:
    """Compare the libraries on short and long texts, in fp32 and bf16."""
    parser = argument_parser(__doc__)
    add_flags(parser, *PEERS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", default="short,long")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--batch-size", type=int, default=32, help="of all libraries")
    parser.add_argument(
        "--short-rows", type=int, default=1920, help="a multiple of the batch size"
    )
    parser.add_argument(
        "--long-rows", type=int, default=192, help="a multiple of the batch size"
    )
    options = parser.parse_args()
    python = pythons(options, *PEERS)
    with tempfile.TemporaryDirectory() as folder:
        for texts in options.texts.split(","):
            count = options.short_rows if texts == "short" else options.long_rows
            rows = (short_rows if texts == "short" else long_rows)(options.data, count)
            path = write(rows, Path(folder) / f"{texts}-train.jsonl")
            limit = MAX_LENGTH[texts]
            lengths = token_lengths(
                [row[side] for row in rows for side in ("text1", "text2")],
                minilm(),
                limit,
            )
            print(f"\n{texts}: {count:,} pairs; {describe(lengths, limit)}")
            flops = 3 * forward_flops(lengths, minilm())
            for precision in options.precisions.split(","):
                work = Work(path, count, flops, limit, options.batch_size, precision)
                compare(texts, work, python, options.rounds)


def compare(texts: str, work: Work, python: dict[str, str], rounds: int) -> None:
    """Run the libraries in turn, `rounds` times, and print their medians."""
    answers: dict[str, list[dict]] = {who: [] for who in python}
    peaks = []
    for _ in range(rounds):
        peaks.append(run(python["ours"], "peak.py", {}))
        for who, interpreter in python.items():
            answers[who].append(run(interpreter, SCRIPTS[who], job(who, work)))
            print(
                f"{who}: {work.rows / answers[who][-1]['seconds']:.1f} pairs/s",
                file=sys.stderr,
            )
    peak, threads = max(answer[work.precision] for answer in peaks), peaks[0]["threads"]
    print(
        f"\n{texts}, {work.precision}, batches of {work.batch_size}, {rounds} rounds, "
        f"{threads} threads, peak {peak:.0f} GFLOP/s; {processor()}, {instruction_sets()}\n"
    )
    titles = (
        *(
            "who",
            "pairs/s, median",
            "of each round",
            "share of peak",
            "ours is faster by",
        ),
        *("pairs/CPU s", "share of peak", "by CPU", "whole process s", "peak RSS MB"),
    )
    print(f"| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    speed, cpu_speed = (
        {
            who: [work.rows / answer[clock] for answer in given]
            for who, given in answers.items()
        }
        for clock in ("seconds", "cpu_s")
    )
    for who, given in answers.items():
        cells = (
            who,
            f"{median(speed[who]):.1f}",
            " ".join(f"{value:.1f}" for value in speed[who]),
            f"{share(median(speed[who]), peak, work):.0f} %",
            f"{ratio(speed, who):.2f}",
            f"{median(cpu_speed[who]):.1f}",
            f"{share(median(cpu_speed[who]), peak / threads, work):.0f} %",
            f"{ratio(cpu_speed, who):.2f}",
            f"{median(answer['wall_s'] for answer in given):.0f}",
            f"{max(answer['peak_rss_mb'] for answer in given):,}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)


def share(pairs: float, peak: float, work: Work) -> float:
    """The share of the peak FLOP/s, in percent."""
    return 100 * work.flops / work.rows * pairs / (1e9 * peak)


def ratio(speed: dict[str, list[float]], who: str) -> float:
    """How much faster ours is, compared round by round, because a machine's speed changes over minutes."""
    return median(
        ours / theirs for ours, theirs in zip(speed["ours"], speed[who], strict=True)
    )


def job(who: str, work: Work) -> dict:
    """The job for the library's script."""
    if who == "ours":
        return {"train": our_arguments(work), "score": {}}
    return peer_training(
        who,
        model=str(minilm()),
        rows=str(work.path),
        max_length=work.max_length,
        epochs=EPOCHS,
        batch_size=work.batch_size,
        lr=LR,
        precision=work.precision,
    )


def our_arguments(work: Work) -> dict:
    """Keyword arguments of `aoe_train.train`, without `out`."""
    return {
        "data": str(work.path),
        "backbone": "minilm",
        "preset": "angle-paper",
        "epochs": EPOCHS,
        "batch_size": work.batch_size,
        "lr": LR,
        "max_length": work.max_length,
        "precision": work.precision,
        "seed": 0,
        # The peers write nothing during the timed epoch either.
        "settings": {
            "batches.strategy": "length",
            "optim.warmup": 0,
            "log.checkpoint_minutes": 1000,
        },
    }


if __name__ == "__main__":
    main()
