"""Time and memory of `label`'s split: `python benchmarks/label_split.py [sentences …]`.

Every measurement is a process of its own, on made-up sentences of 6 to 18 words as frequent as in a language.
Each text has six candidates: five with a third of its words changed, and one that is short and often said by
others, too. Of a hundred texts one says what another says, and five are of one of a thousand templates, with
a word of their own in place of the last. What is measured begins where the sentences are in memory.
"""

from __future__ import annotations

import json
import platform
import random
import subprocess
import sys
import time
from array import array

import numpy as np
from machine import processor
from similar import _peak, _sentence

SIZES = (250_000, 1_000_000, 4_000_000)
_PROJECTED = (10_000_000, 100_000_000)
_A_TEXT = 7  # sentences: itself and six candidates


def sentences(random_: random.Random, count: int) -> tuple[list[str], array[int]]:
    """So many sentences, and the place of the text that each belongs to."""
    templates = [_sentence(random_, random_.randrange(10, 18)) for _ in range(1000)]
    texts = [_text(random_, templates) for _ in range(count // _A_TEXT)]
    for place in range(0, len(texts), 100):
        texts[place] = random_.choice(texts)
    said, owners = list(texts), array("i", range(len(texts)))
    for place, text in enumerate(texts):
        words = text.split()
        for _ in range(_A_TEXT - 2):
            changed = random_.sample(range(len(words)), len(words) // 3)
            others = dict(zip(changed, _sentence(random_, len(changed)), strict=True))
            said.append(" ".join(others.get(number, word) for number, word in enumerate(words)))
        said.append(" ".join(_sentence(random_, random_.randrange(2, 6))))
        owners.extend([place] * (_A_TEXT - 1))
    return said, owners


def _text(random_: random.Random, templates: list[list[str]]) -> str:
    if random_.random() < 0.05:
        return " ".join([*random_.choice(templates)[:-1], f"x{random_.randrange(10**6)}"])
    return " ".join(_sentence(random_, random_.randrange(6, 19)))


def measure(count: int) -> dict[str, float]:
    """Seconds of processor time and MiB at most, in this process."""
    from llm_labeler.dataset.split import split_texts
    from llm_labeler.settings.labelling import SplitSettings

    said, owners = sentences(random.Random(1), count)  # noqa: S311 - texts
    ids = [f"{place:016x}" for place in range(len(said) // _A_TEXT)]
    before, begun = _peak(), time.process_time()
    splits = split_texts(ids, said, np.array(owners), SplitSettings(), 42)
    return {
        "sentences": len(said),
        "seconds": time.process_time() - begun,
        "mib": _peak(),
        "before": before,
        "train": splits.count("train") / len(splits),
    }


def main() -> None:
    """Print the curve, and what it says of more sentences."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(int(sys.argv[2]))))
        return
    print(f"{processor()}; Python {platform.python_version()}\n")
    print(
        "| sentences | CPU seconds | us each | peak MiB | of it the sentences | bytes each beside | train |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|")
    found = {}
    for count in map(int, sys.argv[1:] or SIZES):
        ran = subprocess.run(
            [sys.executable, __file__, "--measure", str(count)], check=True, capture_output=True, text=True
        )
        found = json.loads(ran.stdout)
        _line(found["sentences"], found["seconds"], found["mib"], found["before"], f"{found['train']:.1%}")
    for count in _PROJECTED:  # each sentence takes what it took in the longest run
        share = count / found["sentences"]
        _line(count, *(found[name] * share for name in ("seconds", "mib", "before")), "projected")


def _line(count: int, seconds: float, mib: float, before: float, last: str) -> None:
    each = f"{seconds / count * 1e6:.0f}", f"{(mib - before) * (1 << 20) / count:.0f}"
    cells = (f"{count:,}", f"{seconds:,.0f}", each[0], f"{mib:,.0f}", f"{before:,.0f}", each[1], last)
    print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
