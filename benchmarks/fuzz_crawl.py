"""Whole crawls against answers that were changed at random.

    python benchmarks/fuzz_crawl.py [--first 0] [--count 20000] [--processes 2]

A seed decides a crawl wholly, so a range of seeds can be run in parts, and a finding again. Each crawl must
end well or with one line and its right exit code, within a bound on requests. Prints how they ended; the exit
code is 1 if one ended otherwise. `tests/gis_builder/crawl_fuzz.py` says what is changed and how.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.gis_builder.crawl_fuzz import (  # noqa: E402
    World,
    Wrong,
    fuzz_answers,
    write_world,
)

_PART = 250  # seeds to a process at a time
_MOST_S = 120  # of one crawl; it has at most some thousand requests, none of which leaves the process
_SHM = Path("/dev/shm")  # noqa: S108 - a folder in memory, if there is one


class Found(NamedTuple):
    """How the crawls of some seeds ended."""

    ended: Counter[str]
    requests: int
    wrong: dict[str, str]  # by where it was raised


def main() -> int:
    """Run the seeds that the flags name."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    ended: Counter[str] = Counter()
    wrong: dict[str, str] = {}
    requests = 0
    with ProcessPoolExecutor(options.processes) as pool:
        seeds = range(options.first, options.first + options.count)
        parts = [seeds[start : start + _PART] for start in range(0, options.count, _PART)]
        for found in pool.map(run, parts):
            ended += found.ended
            requests += found.requests
            wrong |= found.wrong
            print(f"{ended.total():,} crawls, {requests:,} requests, {len(wrong)} kinds of wrong", flush=True)
    for how, count in sorted(ended.items()):
        print(f"{count:8,}  {how}")
    for where, words in wrong.items():
        print(f"WRONG {where}\n{words}")
    return 1 if wrong else 0


def run(seeds: Sequence[int]) -> Found:
    """The crawls of some seeds, one after the other."""
    signal.signal(signal.SIGALRM, _too_long)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-crawl-", dir=_SHM if _SHM.is_dir() else None))
    found = Found(Counter(), 0, {})
    requests = 0
    try:
        world = World(write_world(folder / "dump"))
        for seed in seeds:
            work = folder / "work"
            work.mkdir()
            signal.alarm(_MOST_S)
            try:
                ended = fuzz_answers(world, work, seed)
                found.ended[ended.how] += 1
                requests += ended.requests
            except Wrong as error:
                found.ended["WRONG"] += 1
                found.wrong.setdefault(_where(error), _shown(error))
            finally:
                signal.alarm(0)
                shutil.rmtree(work)
    finally:
        shutil.rmtree(folder)
    return found._replace(requests=requests)


def _too_long(_number: int, _frame: object) -> None:
    raise Wrong(f"a crawl that takes more than {_MOST_S} s")


def _where(error: Wrong) -> str:
    """The last line of ours that an exception passed."""
    cause = error.__cause__ or error
    frames = [f for f in traceback.extract_tb(cause.__traceback__) if "gis_builder/" in f.filename]
    last = frames[-1] if frames else None
    return f"{type(cause).__name__} at {last.filename}:{last.lineno}" if last else str(error)


def _shown(error: Wrong) -> str:
    return "".join(traceback.format_exception(error.__cause__ or error)[-8:]) + str(error)


if __name__ == "__main__":
    sys.exit(main())
