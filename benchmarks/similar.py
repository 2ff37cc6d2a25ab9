"""Time and memory of near-identical texts: `python benchmarks/similar.py [kind …]`.

Every measurement is a process of its own. The texts are made up: `mixed` is what trackers hold (most texts
unlike all others, one in ten a copy with changed words, one in twenty from a bot's template), the others
are one template each: `tied`, three words filled in; `below`, nine words, so that pairs stay just below the
threshold; `slots`, three sentences of a hundred each, so that a pair is tied where two are equal; `lines`,
each of forty lines there or not, the worst kind.
"""

from __future__ import annotations

import json
import platform
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable

from machine import processor

SIZES = {
    "mixed": (50_000, 100_000, 200_000, 400_000),
    "tied": (50_000, 100_000),
    "below": (50_000, 100_000),
    "slots": (50_000, 100_000),
    "lines": (50_000, 100_000),
}
_PROJECTED = 5_000_000
_WORDS = [
    a + b + c
    for a in ("ka", "re", "to", "mi", "su")
    for b in ("lo", "ne", "vi", "da")
    for c in map(str, range(500))
]


def _sentence(random_: random.Random, words: int) -> list[str]:
    """Words as frequent as in a language: the second half as often as the first."""
    return [_WORDS[int(len(_WORDS) * random_.random() ** 3)] for _ in range(words)]


def _filled(random_: random.Random, body: list[str], slots: int) -> str:
    words = list(body)
    for slot in range(slots):
        words[len(body) // slots * slot] = f"x{random_.randrange(10**6)}"
    return " ".join(words)


def mixed(random_: random.Random, count: int) -> list[str]:
    """As a store of many trackers."""
    body, texts = _sentence(random_, 120), list[str]()
    for _ in range(count):
        chance = random_.random()
        if chance < 0.05:
            texts.append(_filled(random_, body, 4))
        elif chance < 0.15 and texts:
            texts.append(_filled(random_, random_.choice(texts).split(), 2))
        else:
            texts.append(" ".join(_sentence(random_, random_.randrange(20, 200))))
    return texts


def slots(random_: random.Random, count: int) -> list[str]:
    """A frame around three sentences of a hundred each."""
    values = [[_sentence(random_, 8) for _ in range(100)] for _ in range(3)]
    frame = [_sentence(random_, 30) for _ in range(3)]
    return [
        " ".join(" ".join(part + random_.choice(some)) for part, some in zip(frame, values, strict=True))
        for _ in range(count)
    ]


def lines(random_: random.Random, count: int) -> list[str]:
    """Forty lines, each there four times of five."""
    every = [" ".join(_sentence(random_, 6)) for _ in range(40)]
    return [" ".join(line for line in every if random_.random() < 0.8) for _ in range(count)]


def _template(words: int) -> Callable[[random.Random, int], list[str]]:
    def made(random_: random.Random, count: int) -> list[str]:
        body = _sentence(random_, 120)
        return [_filled(random_, body, words) for _ in range(count)]

    return made


MAKERS = {"mixed": mixed, "tied": _template(3), "below": _template(9), "slots": slots, "lines": lines}


def measure(kind: str, count: int) -> dict[str, float]:
    """Seconds of processor time, MiB at most, and what was found, in this process."""
    from pairkit.similarity.near_duplicates import near_identical

    texts = MAKERS[kind](random.Random(1), count)  # noqa: S311 - texts
    before = _peak()
    begun = time.process_time()
    groups = near_identical(texts)
    return {
        "seconds": time.process_time() - begun,
        "mib": _peak(),
        "texts_mib": before,
        "largest": max(map(len, groups), default=1),
        "groups": len(groups),
    }


def _peak() -> float:
    scale = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def main() -> None:
    """Print the curve of each kind, and what it says of five million mixed texts."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
        return
    print(f"{processor()}; Python {platform.python_version()}\n")
    print("| kind | texts | CPU seconds | peak MiB | of it the texts | groups | largest |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for kind in sys.argv[1:] or SIZES:
        curve = []
        for count in SIZES[kind]:
            ran = subprocess.run(
                [sys.executable, __file__, "--measure", kind, str(count)],
                check=True,
                capture_output=True,
                text=True,
            )
            found = json.loads(ran.stdout)
            curve.append((count, found["seconds"], found["mib"]))
            cells = (
                f"{count:,}",
                f"{found['seconds']:.1f}",
                f"{found['mib']:.0f}",
                f"{found['texts_mib']:.0f}",
            )
            print("|", kind, *(f"| {cell}" for cell in cells), end=" ")
            print(f"| {found['groups']:,} | {found['largest']:,} |", flush=True)
        if kind == "mixed":
            (few, seconds, mib), (many, more_seconds, more_mib) = curve[-2:]
            share = (_PROJECTED - many) / (many - few)
            cells = (more_seconds + share * (more_seconds - seconds), more_mib + share * (more_mib - mib))
            print(f"| {kind}, projected | {_PROJECTED:,} | {cells[0]:.0f} | {cells[1]:.0f} | | | |")


if __name__ == "__main__":
    main()
