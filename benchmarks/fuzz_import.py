"""Imports of saved trackers of every layout that were changed at random, through status and verdicts.

    python benchmarks/fuzz_import.py [--first 0] [--count 4000]

A seed decides an import wholly. Each must end in one line, or in a store that is read again. Prints how they
ended; the exit code is 1 if one ended otherwise. `tests/gis_builder/import_fuzz.py` says what is changed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.gis_builder.import_fuzz import fuzz_import


def main() -> int:
    """Run the seeds that the flags name."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=4000)
    options = parser.parse_args()
    ended: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.count):
        with tempfile.TemporaryDirectory(prefix="fuzz-import-") as folder:
            try:
                ended[fuzz_import(Path(folder), seed)] += 1
            except AssertionError as error:
                ended["WRONG"] += 1
                print(error, flush=True)
    for how, count in sorted(ended.items()):
        print(f"{count:8,}  {how}")
    return 1 if ended["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
