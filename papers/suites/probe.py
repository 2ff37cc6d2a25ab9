"""Logistic regression on frozen vectors, as SentEval probes them, and the tasks that are scored by it.

Source: Conneau & Kiela 2018 and the code they published. How the strength of the L2 penalty is chosen
follows from the parts of a task:

* **all in one**: ten folds, each predicted by a classifier of the other nine; within those nine, ten folds
  again choose C from 2^-2 … 2^3;
* **train, test**: ten folds of the training part choose C from 2^-1 … 2^5;
* **train, dev, test**: the dev part chooses C from 2^-2 … 2^3.

SentEval has two classifiers: scikit-learn's and, in the settings that SimCSE reports with and the AoE paper
follows, a linear layer trained by Adam with early stopping. This is the first: it has one optimum, which no
seed, batch size or patience moves. Folds are stratified and shuffled with SentEval's seed; candidates are
compared by accuracy in hundredths of a percent, and the stronger penalty wins a tie; vectors are not
standardised. Two things differ: more than two classes are one multinomial model whose intercept is not
penalised, as in scikit-learn today; and the figure is the share of all predictions that are right, where
SentEval takes the mean of ten folds of nearly the same size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from aoe_train import tasks
from pairkit.app.errors import DataError

FOLDS, SEED = 10, 1111
_NARROW = tuple(2.0**power for power in range(-2, 4))
_WIDE = tuple(2.0**power for power in range(-1, 6))
_TOLERANCE, _ITERATIONS = 1e-5, 1000  # of the gradient, for vectors of length one

_In = TypeVar("_In")
_Out = TypeVar("_Out")
_Part = tuple[np.ndarray, np.ndarray]
"""Features (example, number) and classes (example,)."""


@dataclass(frozen=True)
class Examples:
    """Inputs, in one column or two, and their classes."""

    columns: tuple[Sequence[tasks.Input], ...]
    classes: np.ndarray

    def features(self, vectors: tasks.TaskVectors) -> _Part:
        """Each input's vector; for two columns |u - v| and u * v side by side (SentEval's MRPC)."""
        sides = [vectors.matrix[vectors.rows(column)] for column in self.columns]
        if len(sides) == 1:
            return sides[0], self.classes
        u, v = sides
        return np.hstack([np.abs(u - v), u * v]), self.classes


@dataclass(frozen=True)
class ClassTask:
    """Examples whose classes are predicted from their vectors; the last part is the test."""

    name: str
    parts: tuple[Examples, ...]
    has_f1: bool = False

    @property
    def texts(self) -> Sequence[tasks.Input]:
        """Those of all parts: a classifier needs vectors to learn from."""
        return [item for part in self.parts for column in part.columns for item in column]

    @property
    def rows(self) -> Sequence[tuple[str, ...]]:
        """The texts of each test example."""
        return [
            tuple(text for item in example for text in ((item,) if isinstance(item, str) else item))
            for example in zip(*self.parts[-1].columns, strict=True)
        ]

    def measure(self, vectors: tasks.TaskVectors) -> tasks.Metrics:
        """Accuracy, and F1 of class 1 if wanted."""
        gold = self.parts[-1].classes
        try:
            predicted = predict(*(part.features(vectors) for part in self.parts))
        except DataError as error:
            raise DataError(str(error), path=self.name) from error
        if self.has_f1:
            return Detection(predicted == 1, gold == 1)
        return tasks.MeanMetrics({"accuracy": predicted == gold})


@dataclass(frozen=True)
class JoinedTask:
    """Several tests of one task, reported together and one by one."""

    name: str
    tests: Mapping[str, ClassTask]

    @property
    def texts(self) -> Sequence[tasks.Input]:
        """Those of all tests."""
        return [item for test in self.tests.values() for item in test.texts]

    @property
    def rows(self) -> Sequence[tuple[str, ...]]:
        """The texts of each test example."""
        return [row for test in self.tests.values() for row in test.rows]

    def measure(self, vectors: tasks.TaskVectors) -> tasks.TaskMetrics:
        """Accuracy over the examples of all tests, and of each."""
        found = {name: test.measure(vectors) for name, test in self.tests.items()}
        right = [
            metrics.outcomes["accuracy"]
            for metrics in found.values()
            if isinstance(metrics, tasks.MeanMetrics)
        ]
        parts = {name: (metrics, metrics.n) for name, metrics in found.items()}
        return tasks.TaskMetrics(tasks.MeanMetrics({"accuracy": np.concatenate(right)}), parts)


@dataclass(frozen=True)
class Detection(tasks.Metrics):
    """How well a class was detected: `accuracy`, and `f1` of that class."""

    predicted: np.ndarray
    gold: np.ndarray

    @property
    def n(self) -> int:
        """Examples."""
        return len(self.gold)

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """Both, examples weighted by the counts; F1 is NaN if the class is neither there nor predicted."""
        hits = counts @ (self.predicted & self.gold)
        claims = counts @ self.predicted + counts @ self.gold
        return {
            "accuracy": counts @ (self.predicted == self.gold) / counts.sum(axis=1),
            "f1": np.divide(2 * hits, claims, out=np.full(len(counts), np.nan), where=claims > 0),
        }


def predict(*parts: _Part) -> np.ndarray:
    """Classes of the last part's examples, from classifiers that did not see them."""
    import sklearn.linear_model  # noqa: F401 - loaded, so that its threads can be limited
    from threadpoolctl import threadpool_limits

    train = parts[0]
    if len(parts) == 3:
        _check_classes(train[1], 1)
        scores = _scores(_NARROW, train, parts[1])
        return _fitted(train, _best(_NARROW, [scores]), parts[2][0])
    _check_classes(train[1], 2 * FOLDS)
    with threadpool_limits(1):  # a fold to a core: the products of one are too small to be shared out
        if len(parts) == 2:
            found = _in_parallel(lambda fold: _scores(_WIDE, *_split(train, fold)), _folds(train[1]))
            return _fitted(train, _best(_WIDE, found), parts[1][0])
        folds = _folds(train[1])
        predicted = np.empty_like(train[1])
        for (_, held_out), answer in zip(
            folds, _in_parallel(lambda f: _nested(train, f), folds), strict=True
        ):
            predicted[held_out] = answer
        return predicted


def _nested(examples: _Part, fold: _Part) -> np.ndarray:
    train, held_out = _split(examples, fold)
    scores = [_scores(_NARROW, *_split(train, inner)) for inner in _folds(train[1])]
    return _fitted(train, _best(_NARROW, scores), held_out[0])


def _split(examples: _Part, fold: _Part) -> tuple[_Part, _Part]:
    (features, classes), (rows, held_out) = examples, fold
    return (features[rows], classes[rows]), (features[held_out], classes[held_out])


def _folds(classes: np.ndarray) -> list[_Part]:
    """Rows to train on and rows held out, ten times."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    return list(folds.split(np.empty((len(classes), 0)), classes))


def _best(candidates: Sequence[float], scores: Sequence[np.ndarray]) -> float:
    """The C of the best mean accuracy; `scores` has one array (candidate,) for each fold."""
    return candidates[int(np.argmax(np.round(100 * np.mean(scores, axis=0), 2)))]


def _scores(candidates: Sequence[float], train: _Part, held_out: _Part) -> np.ndarray:
    """Accuracy on held-out examples for each C; a fit starts from the one before."""
    classifier = _classifier(train[0])
    return np.array(
        [
            np.mean(classifier.set_params(C=candidate).fit(*train).predict(held_out[0]) == held_out[1])
            for candidate in candidates
        ]
    )


def _fitted(train: _Part, strength: float, unseen: np.ndarray) -> np.ndarray:
    predicted: np.ndarray = _classifier(train[0]).set_params(C=strength).fit(*train).predict(unseen)
    return predicted


def _classifier(features: np.ndarray) -> Any:
    """Gradients grow with the vectors' lengths, so the tolerance does too."""
    from sklearn.linear_model import LogisticRegression

    length = float(np.sqrt(np.einsum("ef,ef->", features, features, dtype=np.float64) / len(features)))
    return LogisticRegression(
        tol=_TOLERANCE * max(length, 1e-6), max_iter=_ITERATIONS, warm_start=True, random_state=SEED
    )


def _in_parallel(work: Callable[[_In], _Out], items: Iterable[_In]) -> list[_Out]:
    """In threads: a fit spends its time in products, which release the lock."""
    from joblib import Parallel, delayed

    return list(Parallel(n_jobs=-1, prefer="threads")(delayed(work)(item) for item in items))


def _check_classes(classes: np.ndarray, least: int) -> None:
    found, counts = np.unique(classes, return_counts=True)
    if len(found) < 2:
        raise DataError("every example is of one class; a classifier needs two or more")
    if counts.min() < least:
        raise DataError(
            f"only {counts.min()} examples of class {found[counts.argmin()]}; expected at least {least}"
        )
