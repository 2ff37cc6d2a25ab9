"""Tasks of your own for `aoe_train.evaluate`: texts, and metrics of their vectors.

A task is any object with `name`, `texts` and `measure(vectors)`, which returns metrics for each example. From
these, `evaluate` makes figures with bootstrap intervals, and paired tests between models.

Example:
    import numpy as np
    import aoe_train
    from aoe_train.evaluation.tasks import MeanMetrics, TaskVectors

    class Nearest:
        name = "nearest"
        queries, answers = ["a small dog"], ["a puppy", "a red car"]  # query k wants answer k
        texts = [*queries, *answers]

        def measure(self, vectors: TaskVectors) -> MeanMetrics:
            queries, answers = (vectors.matrix[vectors.rows(texts)] for texts in (self.queries, self.answers))
            best = (queries @ answers.T).argmax(axis=1)
            return MeanMetrics({"accuracy": best == np.arange(len(queries))})

    aoe_train.evaluate("model", tasks=[Nearest()])
"""

from aoe_train.evaluation.resample import MeanMetrics, Metrics
from aoe_train.evaluation.task import EvaluationTask, Input, TaskMetrics, TaskVectors

__all__ = ["EvaluationTask", "Input", "MeanMetrics", "Metrics", "TaskMetrics", "TaskVectors"]
