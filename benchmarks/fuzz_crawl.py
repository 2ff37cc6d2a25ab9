"""Crawls of randomly changed answers: each must end well, or with one line and the right exit code.

    python benchmarks/fuzz_crawl.py [--first 0] [--count 20000] [--processes 2]

A seed determines a crawl, so a range of seeds can be split, and a failure repeated. Each crawl has a limit on
requests. Prints how the crawls ended; the exit code is 1 if one ended in any other way.
`tests/gis_builder/crawl_fuzz.py` makes the changes.
"""

from __future__ import annotations

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

from runs import argument_parser

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.gis_builder.conftest import write_world  # noqa: E402
from tests.gis_builder.crawl_fuzz import World, Wrong, fuzz_answers  # noqa: E402

_PART = 250  # seeds per task
_TIMEOUT_S = 120  # per crawl, of at most a few thousand requests within the process
_SHM = Path("/dev/shm")  # noqa: S108 - a folder in memory, if it exists


class Outcomes(NamedTuple):
    """How the crawls of some seeds ended."""

    ended: Counter[str]
    requests: int
    wrong: dict[str, str]  # by where it was raised


def main() -> int:
    """Run all seeds and print the outcomes."""
    parser = argument_parser(__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    ended: Counter[str] = Counter()
    wrong: dict[str, str] = {}
    requests = 0
    with ProcessPoolExecutor(options.processes) as pool:
        seeds = range(options.first, options.first + options.count)
        parts = [
            seeds[start : start + _PART] for start in range(0, options.count, _PART)
        ]
        for found in pool.map(run, parts):
            ended += found.ended
            requests += found.requests
            wrong |= found.wrong
            print(
                f"{ended.total():,} crawls, {requests:,} requests, {len(wrong)} kinds of wrong",
                flush=True,
            )
    for how, count in sorted(ended.items()):
        print(f"{count:8,}  {how}")
    for where, words in wrong.items():
        print(f"WRONG {where}\n{words}")
    return 1 if wrong else 0


def run(seeds: Sequence[int]) -> Outcomes:
    """Run the crawls of some seeds, one after the other."""
    signal.signal(signal.SIGALRM, _too_long)
    folder = Path(
        tempfile.mkdtemp(prefix="fuzz-crawl-", dir=_SHM if _SHM.is_dir() else None)
    )
    found = Outcomes(Counter(), 0, {})
    requests = 0
    try:
        world = World(write_world(folder / "dump"))
        for seed in seeds:
            work = folder / "work"
            work.mkdir()
            signal.alarm(_TIMEOUT_S)
            try:
                how, count = fuzz_answers(world, work, seed)
                found.ended[how] += 1
                requests += count
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
    raise Wrong(f"a crawl took more than {_TIMEOUT_S} s")


def _where(error: Wrong) -> str:
    """The innermost line of `gis_builder` in the traceback."""
    cause = error.__cause__ or error
    frames = [
        f
        for f in traceback.extract_tb(cause.__traceback__)
        if "gis_builder/" in f.filename
    ]
    last = frames[-1] if frames else None
    return (
        f"{type(cause).__name__} at {last.filename}:{last.lineno}"
        if last
        else str(error)
    )


def _shown(error: Wrong) -> str:
    return "".join(traceback.format_exception(error.__cause__ or error)[-8:]) + str(
        error
    )


if __name__ == "__main__":
    sys.exit(main())
