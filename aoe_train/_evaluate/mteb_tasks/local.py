"""mteb's STS tasks over files of this machine, so that its evaluator can be run without the Hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict
from mteb.abstasks.sts import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata

from aoe_train._evaluate.pairs import PairTask
from aoe_train._evaluate.suites.sts import Sts
from pairkit.files import sha256

_OURS = {
    "STSBenchmark": "STS-B",
    "SICK-R": "SICK-R",
    **{f"STS{year}": f"STS{year}" for year in range(12, 17)},
}
"""The suite's name of each task by mteb's."""


def local_task(name: str, data_dir: Path) -> AbsTaskSTS | None:
    """The task that mteb calls `name`, from the files of the `sts` suite; None if it is not there.

    It is named `NAME-local-DIGEST`, as mteb files results by the name: a file need not equal the published
    set, nor what it was yesterday.

    Raises:
        DataError: The file is damaged.
    """
    if name not in _OURS:
        return None
    suite = Sts()
    (path,) = suite.files(_OURS[name], data_dir, "test")
    if not path.is_file():
        return None
    digest = sha256(path)
    return _Local(f"{name}-local-{digest[:8]}", suite.read(_OURS[name], (path,)), digest)


class _Local(AbsTaskSTS):
    def __init__(self, name: str, pairs: PairTask, digest: str, **kwargs: Any) -> None:
        self.metadata = TaskMetadata(
            name=name,
            description="Pairs of a local file with graded labels.",
            dataset={"path": name, "revision": digest},
            type="STS",
            category="t2t",
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="cosine_spearman",
        )
        rows = Dataset.from_dict(
            {"sentence1": list(pairs.text1), "sentence2": list(pairs.text2), "score": pairs.labels.tolist()}
        )
        self.dataset = DatasetDict({"test": rows})
        self.data_loaded = True
        super().__init__(**kwargs)
