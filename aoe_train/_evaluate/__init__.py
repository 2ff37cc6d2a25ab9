"""How good vectors are: suites of tasks, and the one figure by which training picks its best checkpoint.

A suite finds its tasks in a data folder; a task names its texts and scores their vectors. Whatever turns
texts into vectors can be judged, `Encoder.encode` or another.
"""

from aoe_train._evaluate.choose import ALL, DUPLICATES, Chosen, choose_pairs, choose_tasks
from aoe_train._evaluate.correlation import Correlation, correlation, pearson, spearman
from aoe_train._evaluate.dev import DevMetric, dev_metric
from aoe_train._evaluate.gain import Gain, gain
from aoe_train._evaluate.overlap import Overlap, overlap, read_digests, write_digests
from aoe_train._evaluate.pairs import PairTask, pair_task, read_pair_task
from aoe_train._evaluate.resample import Comparison, Interval, Judged, Means, compare
from aoe_train._evaluate.score import Draws, Score, score
from aoe_train._evaluate.suites import SUITES
from aoe_train._evaluate.suites.sts import Sts
from aoe_train._evaluate.tasks import (
    NoTaskHere,
    Result,
    Split,
    Suite,
    Task,
    Verdict,
    find_tasks,
    judge,
    summarise,
)
from aoe_train._evaluate.vectors import Input, Vectors

__all__ = [
    "ALL",
    "DUPLICATES",
    "SUITES",
    "Chosen",
    "Comparison",
    "Correlation",
    "DevMetric",
    "Draws",
    "Gain",
    "Input",
    "Interval",
    "Judged",
    "Means",
    "NoTaskHere",
    "Overlap",
    "PairTask",
    "Result",
    "Score",
    "Split",
    "Sts",
    "Suite",
    "Task",
    "Vectors",
    "Verdict",
    "choose_pairs",
    "choose_tasks",
    "compare",
    "correlation",
    "dev_metric",
    "find_tasks",
    "gain",
    "judge",
    "overlap",
    "pair_task",
    "pearson",
    "read_digests",
    "read_pair_task",
    "score",
    "spearman",
    "summarise",
    "write_digests",
]
