"""SentEval's transfer tasks, as in Table 3 of the AoE paper and Table 6 of the AnglE paper.

```
DATA_DIR/senteval/{MR,CR,SUBJ,MPQA}.tsv.gz          label, text
        /senteval/SST2-{train,dev,test}.tsv.gz      label, text; train holds phrases, as SentEval's does
        /senteval/TREC-{train,test}.tsv.gz          coarse, …, text
        /pairs/mrpc-{train,test}.tsv.gz             label, sentence1, sentence2
```

All of a task also without `.gz`; or SentEval's own files in its own folders (`MR/rt-polarity.pos`,
`SST/binary/…`). How the classifier is fitted is told in `probe`. Texts stand in SentEval's order, by words
and class, so that the folds are its folds. A few texts of CR and MPQA are empty; like SentEval's examples, we
encode a full stop for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aoe_train._evaluate.suites.classification import ClassTask
from aoe_train._evaluate.suites.probe import require_classifier
from aoe_train._evaluate.suites.senteval_files import examples, locate, read_parts
from aoe_train._evaluate.tasks import Split, check_rows

_ROWS: dict[str, tuple[int, ...]] = {
    "MR": (10662,),
    "CR": (3775,),
    "SUBJ": (10000,),
    "MPQA": (10606,),
    "SST2": (67349, 872, 1821),
    "TREC": (5452, 500),
    "MRPC": (4076, 1725),
}


class Transfer:
    """The seven tasks; see `aoe_train._evaluate.tasks.Suite`.

    Raises:
        ConfigError: scikit-learn is missing.
    """

    tasks = tuple(_ROWS)
    extra: tuple[str, ...] = ()

    def __init__(self) -> None:
        require_classifier()

    def files(self, task: str, data_dir: Path, split: Split) -> tuple[Path, ...]:
        """Where a task's examples lie, in our layout or SentEval's; tests only."""
        return locate(task, data_dir) if split == "test" else ()

    def read(self, task: str, files: Sequence[Path]) -> ClassTask:
        """A task's parts, each with as many examples as published.

        Raises:
            DataError: A column or class that is not expected, with file and row; another number of rows.
        """
        parts = read_parts(task, files)
        for rows, published, path in zip(parts, _ROWS[task], files, strict=False):
            check_rows(len(rows), published, path)
        return ClassTask(task, tuple(examples(rows) for rows in parts), detects=task == "MRPC")
