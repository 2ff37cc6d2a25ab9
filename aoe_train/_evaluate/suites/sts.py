"""Semantic textual similarity as the papers measure it: STS 2012-2016, STS-B and SICK-R.

```
DATA_DIR/sts/STS12.tsv … STS16.tsv       score, sentence1, sentence2; `subset` where a year has parts
        /sts/STS12.senteval-tok.tsv …    the same lower-cased and tokenised, as SentEval and SimCSE score it
        /stsb/stsb-{dev,test}.tsv
        /sick/sick-{trial,test}.tsv
```

One header line, tabs, no quoting; further columns do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aoe_train._evaluate.pairs import PairTask, pair_task
from aoe_train._evaluate.tasks import Split, check_rows
from pairkit.reader import read_pairs

_YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")
_TOKENISED = tuple(f"{year}.senteval-tok" for year in _YEARS)
_FILES: dict[str, dict[Split, str]] = {
    **{name: {"test": f"sts/{name}.tsv"} for name in (*_YEARS, *_TOKENISED)},
    "STS-B": {"test": "stsb/stsb-test.tsv", "dev": "stsb/stsb-dev.tsv"},
    "SICK-R": {"test": "sick/sick-test.tsv", "dev": "sick/sick-trial.tsv"},
}


_ROWS = {
    **dict(zip(_YEARS, (3108, 1500, 3750, 3000, 1186), strict=True)),  # 2013 without SMT, which LDC keeps
    "STS-B": 1379,
    "SICK-R": 4927,
}
_ROWS_DEV = {"STS-B": 1500, "SICK-R": 500}


class Sts:
    """The seven tasks; see `aoe_train._evaluate.tasks.Suite`."""

    tasks = (*_YEARS, "STS-B", "SICK-R")
    extra = _TOKENISED

    def files(self, task: str, data_dir: Path, split: Split) -> tuple[Path, ...]:
        """Where a task's pairs lie; STS 2012-2016 are test sets only."""
        file = _FILES[task].get(split)
        return (data_dir / file,) if file else ()

    def read(self, task: str, files: Sequence[Path]) -> PairTask:
        """A task's pairs, all subsets of a year together.

        Raises:
            DataError: A column is missing, a text empty, a score out of range (with file and row), or not the
                published number of rows.
        """
        (path,) = files
        (frame,) = read_pairs(path).splits.values()
        name = task.partition(".")[0]
        dev = path.name == Path(_FILES[task].get("dev", "")).name
        check_rows(len(frame), (_ROWS_DEV if dev else _ROWS)[name], path)
        return pair_task(task, frame)
