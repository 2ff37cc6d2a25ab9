"""Peak memory of `aoe encode` by the number of texts.

    python benchmarks/encode_memory.py [--texts 10000 100000 1000000]

Encodes generated texts of a few words with a BERT of two small layers and random weights. Prints VmHWM, the
peak resident memory of the process with its libraries and the model. Linux only.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path

from runs import argument_parser

from tests.aoe_train.tiny import WORDS, save_bert

_SCRIPT = """
import sys, aoe_train
aoe_train.encode(sys.argv[1], model=sys.argv[2], out=sys.argv[3], quantize=sys.argv[4], progress=False)
print(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
"""


def peak_mb(texts: Path, model: Path, out: Path, quantize: str) -> float:
    """Peak resident memory of a run in MiB."""
    command = [sys.executable, "-c", _SCRIPT, str(texts), str(model), str(out), quantize]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 1024


def main() -> None:
    """Print a table."""
    parser = argument_parser(__doc__)
    parser.add_argument("--texts", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    given = parser.parse_args()
    choose = random.Random(0)  # noqa: S311 - no secret
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = save_bert(folder / "model")
        print("| texts | to | peak, MiB | bytes of OUT |\n|---|---|---|---|")
        for count in given.texts:
            texts = folder / "texts.txt"
            with texts.open("w") as file:
                for _ in range(count):
                    file.write(" ".join(choose.choices(WORDS, k=choose.randint(3, 12))) + "\n")
            for suffix, quantize in ((".npy", "float32"), (".parquet", "int8")):
                out = folder / f"{count}{suffix}"
                peak = peak_mb(texts, model, out, quantize)
                size = out.stat().st_size
                print(f"| {count:,} | {suffix[1:]}, {quantize} | {peak:,.0f} | {size:,} |", flush=True)
                out.unlink()


if __name__ == "__main__":
    main()
