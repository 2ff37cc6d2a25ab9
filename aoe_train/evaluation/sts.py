"""Semantic textual similarity as the papers measure it: STS 2012-2016, STS-B and SICK-R.

```
DATA_DIR/sts/STS12.tsv … STS16.tsv       score, sentence1, sentence2; `subset` where a year has parts
        /sts/STS12.senteval-tok.tsv …    the same lower-cased and tokenised, as SentEval and SimCSE score it
        /stsb/stsb-{dev,test}.tsv
        /sick/sick-{trial,test}.tsv
```

One header line, tabs, no quoting; further columns are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aoe_train.evaluation.pairs import PairTask, pair_task
from aoe_train.evaluation.task import Split, check_rows
from pairkit.app.errors import ConfigError, DataError
from pairkit.dataset.reader import read_pairs

_YEARS = {  # 2013 without SMT, which LDC keeps
    "STS12": 3108,
    "STS13": 1500,
    "STS14": 3750,
    "STS15": 3000,
    "STS16": 1186,
}
_FILES: dict[str, dict[Split, tuple[str, int]]] = {
    **{name: {"test": (f"sts/{name}.tsv", rows)} for name, rows in _YEARS.items()},
    "STS-B": {"test": ("stsb/stsb-test.tsv", 1379), "dev": ("stsb/stsb-dev.tsv", 1500)},
    "SICK-R": {"test": ("sick/sick-test.tsv", 4927), "dev": ("sick/sick-trial.tsv", 500)},
}
STS = tuple(_FILES)
"""What is read if nothing is chosen, in the order of the papers' tables."""

_FILES |= {
    name: {"test": (f"sts/{name}.tsv", rows)}
    for name, rows in ((f"{year}.senteval-tok", rows) for year, rows in _YEARS.items())
}


def read_sts(
    data_dir: Path, names: Sequence[str] = (), split: Split = "test"
) -> tuple[list[PairTask], dict[str, str]]:
    """The tasks that a data folder has, all subsets of a year together; and why others are left out."""
    for name in names:
        if name not in _FILES:
            raise ConfigError(f"no task {name!r}; there are {', '.join(_FILES)}")
    found: list[PairTask] = []
    missing: dict[str, str] = {}
    for name in [name for name in _FILES if name in (names or STS)]:
        if split not in _FILES[name]:
            missing[name] = f"has no {split} split"
            continue
        file, rows = _FILES[name][split]
        path = data_dir / file
        if not path.is_file():
            missing[name] = f"no file {path}"
            continue
        (frame,) = read_pairs(path).splits.values()
        check_rows(len(frame), rows, path)
        found.append(pair_task(name, frame))
    if not found:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        raise DataError(f"none of the tasks is here ({reasons})", path=data_dir)
    return found, missing
