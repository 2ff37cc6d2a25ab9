"""Tasks of classes: what a classifier on the vectors gets right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aoe_train._evaluate.resample import Judged, Means
from aoe_train._evaluate.suites.probe import Labelled, predict
from aoe_train._evaluate.tasks import Verdict
from aoe_train._evaluate.vectors import Input, Vectors
from pairkit.errors import DataError


@dataclass(frozen=True)
class Examples:
    """Inputs and their classes.

    Attributes:
        columns: One column of inputs, or two whose vectors are compared.
        classes: int64 (example,)
    """

    columns: tuple[Sequence[Input], ...]
    classes: np.ndarray

    def labelled(self, vectors: Vectors) -> Labelled:
        """Each input's vector; for two columns |u - v| and u * v side by side (SentEval's MRPC)."""
        sides = [vectors.matrix[vectors.rows(column)] for column in self.columns]
        if len(sides) == 1:
            return Labelled(sides[0], self.classes)
        u, v = sides
        return Labelled(np.hstack([np.abs(u - v), u * v]), self.classes)


@dataclass(frozen=True)
class Detection(Judged):
    """How well a class was detected: `accuracy`, and `f1` of that class.

    Attributes:
        predicted: bool (example,)
        gold: bool (example,)
    """

    predicted: np.ndarray
    gold: np.ndarray

    @property
    def n(self) -> int:
        """Examples."""
        return len(self.gold)

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """Both, examples weighted by the counts; F1 is NaN where the class is neither there nor predicted."""
        hits = counts @ (self.predicted & self.gold)
        claims = counts @ self.predicted + counts @ self.gold
        return {
            "accuracy": counts @ (self.predicted == self.gold) / counts.sum(axis=1),
            "f1": np.divide(2 * hits, claims, out=np.full(len(counts), np.nan), where=claims > 0),
        }


@dataclass(frozen=True)
class ClassTask:
    """Examples whose classes a classifier on their vectors has to tell.

    Attributes:
        parts: All examples in one; or train and test; or train, dev and test. See `probe.predict` for what
            follows from that. The last is judged.
        detects: Whether class 1 is to be detected, so that F1 says more than accuracy alone.
    """

    name: str
    parts: tuple[Examples, ...]
    detects: bool = False

    @property
    def texts(self) -> Sequence[Input]:
        """Those of all parts: a classifier needs vectors to learn from."""
        return [item for part in self.parts for column in part.columns for item in column]

    @property
    def rows(self) -> Sequence[tuple[str, ...]]:
        """The texts of each judged example."""
        return [
            tuple(text for item in example for text in ((item,) if isinstance(item, str) else item))
            for example in zip(*self.parts[-1].columns, strict=True)
        ]

    def judge(self, vectors: Vectors) -> Verdict:
        """Accuracy, and F1 where a class is to be detected.

        Raises:
            DataError: Fewer than two classes, or a class with too few examples.
        """
        gold = self.parts[-1].classes
        try:
            predicted = predict(*(part.labelled(vectors) for part in self.parts))
        except DataError as error:
            raise DataError(str(error), path=self.name) from error
        if self.detects:
            return Verdict(Detection(predicted == 1, gold == 1))
        return Verdict(Means({"accuracy": predicted == gold}))


@dataclass(frozen=True)
class JoinedTask:
    """Several tests of one task, reported together and one by one.

    Attributes:
        tests: By name; each with accuracy.
    """

    name: str
    tests: Mapping[str, ClassTask]

    @property
    def texts(self) -> Sequence[Input]:
        """Those of all tests."""
        return [item for test in self.tests.values() for item in test.texts]

    @property
    def rows(self) -> Sequence[tuple[str, ...]]:
        """The texts of each judged example, test after test."""
        return [row for test in self.tests.values() for row in test.rows]

    def judge(self, vectors: Vectors) -> Verdict:
        """Accuracy over the examples of all tests, and of each.

        Raises:
            DataError: See `ClassTask.judge`.
        """
        verdicts = {name: test.judge(vectors).whole for name, test in self.tests.items()}
        right = [whole.outcomes["accuracy"] for whole in verdicts.values() if isinstance(whole, Means)]
        parts = {name: (whole, whole.n) for name, whole in verdicts.items()}
        return Verdict(Means({"accuracy": np.concatenate(right)}), parts)
