"""How good vectors are: suites of tasks, and the one figure by which training picks its best checkpoint.

A suite finds its tasks in a data folder; a task names its texts and scores their vectors. Whatever turns
texts into vectors can be judged, `Encoder.encode` or another.
"""

from aoe_train.evaluate.correlation import Correlation, correlation, pearson, spearman
from aoe_train.evaluate.dev import DevMetric, dev_metric
from aoe_train.evaluate.pairs import PairTask, pair_task, read_pair_task
from aoe_train.evaluate.sts import Sts
from aoe_train.evaluate.tasks import Result, Split, Suite, Task, evaluate, find_tasks

SUITES: dict[str, Suite] = {"sts": Sts()}
"""By the name that `aoe evaluate --suite` takes."""

__all__ = [
    "SUITES",
    "Correlation",
    "DevMetric",
    "PairTask",
    "Result",
    "Split",
    "Sts",
    "Suite",
    "Task",
    "correlation",
    "dev_metric",
    "evaluate",
    "find_tasks",
    "pair_task",
    "pearson",
    "read_pair_task",
    "spearman",
]
