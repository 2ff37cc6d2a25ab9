"""What the vector of one text costs from nothing, in CPU seconds: `aoe encode` and sentence-transformers.

    python benchmarks/aoe_start.py [--rounds 5] [--sentence-transformers PYTHON] [--tree TREE ...]

all-MiniLM-L6-v2 from one folder, in turns. A process is counted from its start to its end, with all its
threads, user and system; wall time is only shown. `--tree` adds other trees of this repository as contenders,
such as one of before a change. All vectors must be the same to 1e-6.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
from machine import processor
from peers_aoe.environments import ROOT, add_flags, minilm, pythons

TEXT = "A man plays the guitar."
_OURS = ("-m", "aoe_train", "encode", "text.txt", "--model", str(minilm()), "--out")
_PEER = (
    "import numpy, sys; from sentence_transformers import SentenceTransformer; "
    f"numpy.save(sys.argv[1], SentenceTransformer({str(minilm())!r}, device='cpu').encode([{TEXT!r}]))"
)
# Imported alone, these are the floor of both.
_FLOORS = {
    "import torch": "import torch",
    "import torch, transformers": "import torch, transformers; transformers.AutoTokenizer",
}


def main() -> None:
    """Read the flags; run every contender in turns and print medians of CPU and wall seconds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_flags(parser, "sentence-transformers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tree", type=Path, action="append", default=[], help="another tree of ours")
    options = parser.parse_args()
    python = pythons(options, "sentence-transformers")
    runs = {"ours": (python["ours"], ROOT, _OURS)}
    runs |= {f"ours, {tree.name}": (python["ours"], tree.resolve(), _OURS) for tree in options.tree}
    runs |= {"sentence-transformers": (python["sentence-transformers"], ROOT, ("-c", _PEER))}
    runs |= {name: (python["ours"], ROOT, ("-c", program)) for name, program in _FLOORS.items()}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    vectors: dict[str, np.ndarray] = {}
    for _ in range(options.rounds):
        for name, (interpreter, tree, command) in runs.items():
            with tempfile.TemporaryDirectory() as folder:
                taken[name].append(cost(interpreter, tree, command, Path(folder)))
                if (made := Path(folder) / "vector.npy").exists():
                    vectors[name] = np.load(made)
    print(f"{processor()}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}\n")
    print("| who | CPU s | least, most | wall s | largest difference |\n|---|---|---|---|---|")
    for name, given in taken.items():
        cpu, wall = zip(*given, strict=True)
        gap = f"{np.abs(vectors[name] - vectors['ours']).max():.0e}" if name in vectors else ""
        print(f"| {name} | {median(cpu):.1f} | {min(cpu):.1f}, {max(cpu):.1f} | {median(wall):.1f} | {gap} |")
    if any(np.abs(vector - vectors["ours"]).max() > 1e-6 for vector in vectors.values()):
        raise SystemExit("the vectors differ")


def cost(interpreter: str, tree: Path, command: tuple[str, ...], folder: Path) -> tuple[float, float]:
    """CPU and wall seconds of a process that has nothing but its files."""
    (folder / "text.txt").write_text(f"{TEXT}\n", encoding="utf-8")
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [interpreter, *command, "vector.npy"],
        check=True,
        capture_output=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(tree), "HF_HUB_OFFLINE": "1"},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return used, time.perf_counter() - start


if __name__ == "__main__":
    main()
