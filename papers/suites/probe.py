"""SentEval's probes: logistic regression on frozen vectors, and the tasks that use it.

Source: Conneau & Kiela 2018 and their code. The parts of a task decide how the L2 penalty is chosen:

* **one part**: ten folds, each predicted by a classifier trained on the other nine; ten inner folds of these
  nine choose C from 2^-2 … 2^3;
* **train, test**: ten folds of the training part choose C from 2^-1 … 2^5;
* **train, dev, test**: dev chooses C from 2^-2 … 2^3.

SentEval has two classifiers: scikit-learn's and, used by SimCSE and the AoE paper, a linear layer trained
with Adam and early stopping. This is the first one, because its optimum depends on no seed, batch size or
patience. Folds are stratified and shuffled with SentEval's seed; candidates are compared by accuracy in
hundredths of a percent, and the stronger penalty wins a tie; vectors are not standardised. Two differences:
with more than two classes it is one multinomial model with an unpenalised intercept, as in current
scikit-learn; and the accuracy is over all predictions, where SentEval averages ten folds of nearly the same
size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from aoe_train import tasks
from pairkit.base.errors import DataError

FOLDS = 10
SEED = 1111
_NARROW = tuple(2.0**power for power in range(-2, 4))
_WIDE = tuple(2.0**power for power in range(-1, 6))
_TOLERANCE = 1e-5  # of the gradient, for vectors of length one
_ITERATIONS = 1000

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
        """The vector of each input; for two columns |u - v| and u * v (SentEval's MRPC)."""
        sides = [vectors.matrix[vectors.rows(column)] for column in self.columns]
        if len(sides) == 1:
            return sides[0], self.classes
        u, v = sides
        return np.hstack([np.abs(u - v), u * v]), self.classes


@dataclass(frozen=True)
class ClassTask:
    """Classification of examples by their vectors; the last part is the test."""

    name: str
    parts: tuple[Examples, ...]
    has_f1: bool = False

    @property
    def texts(self) -> Sequence[tasks.Input]:
        """The inputs of all parts, because the classifier is trained on vectors, too."""
        return [
            item for part in self.parts for column in part.columns for item in column
        ]

    @property
    def rows(self) -> Sequence[tuple[str, ...]]:
        """The texts of each test example."""
        rows = []
        for example in zip(*self.parts[-1].columns, strict=True):
            texts: list[str] = []
            for item in example:
                texts += (item,) if isinstance(item, str) else item
            rows.append(tuple(texts))
        return rows

    def measure(self, vectors: tasks.TaskVectors) -> tasks.Metrics:
        """Accuracy, and with `has_f1` the F1 of class 1."""
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
    """Several tests of one task, with a total and a score of each."""

    name: str
    tests: Mapping[str, ClassTask]

    @property
    def texts(self) -> Sequence[tasks.Input]:
        """The inputs of all tests."""
        return [item for test in self.tests.values() for item in test.texts]

    @property
    def rows(self) -> Sequence[tuple[str, ...]]:
        """The texts of each test example."""
        return [row for test in self.tests.values() for row in test.rows]

    def measure(self, vectors: tasks.TaskVectors) -> tasks.TaskMetrics:
        """Accuracy over the examples of all tests, and of each test."""
        parts = {}
        right = []
        for name, test in self.tests.items():
            metrics = test.measure(vectors)
            parts[name] = (metrics, metrics.n)
            if isinstance(metrics, tasks.MeanMetrics):
                right.append(metrics.outcomes["accuracy"])
        total = tasks.MeanMetrics({"accuracy": np.concatenate(right)})
        return tasks.TaskMetrics(total, parts)


@dataclass(frozen=True)
class Detection(tasks.Metrics):
    """`accuracy`, and `f1` of one class."""

    predicted: np.ndarray
    gold: np.ndarray

    @property
    def n(self) -> int:
        """The number of examples."""
        return len(self.gold)

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """Both with examples weighted by the counts; F1 is NaN without gold and predicted members."""
        right = counts @ (self.predicted == self.gold)
        hits = counts @ (self.predicted & self.gold)
        claims = counts @ self.predicted + counts @ self.gold
        f1 = np.full(len(counts), np.nan)
        np.divide(2 * hits, claims, out=f1, where=claims > 0)
        return {"accuracy": right / counts.sum(axis=1), "f1": f1}


def predict(*parts: _Part) -> np.ndarray:
    """Predict the classes of the last part by classifiers that were not trained on them."""
    import sklearn.linear_model  # noqa: F401 - imported before its threads are limited
    from threadpoolctl import threadpool_limits

    train = parts[0]
    _, classes = train
    unseen, _ = parts[-1]
    if len(parts) == 3:
        _check_classes(classes, 1)
        scores = _scores(_NARROW, train, parts[1])
        return _fitted(train, _best(_NARROW, [scores]), unseen)
    _check_classes(classes, 2 * FOLDS)
    folds = _folds(classes)
    # One fold per core, because the products of a fold are small.
    with threadpool_limits(1):
        if len(parts) == 2:
            scores_of_folds = _in_parallel(
                lambda fold: _scores(_WIDE, *_split(train, fold)), folds
            )
            return _fitted(train, _best(_WIDE, scores_of_folds), unseen)
        predicted = np.empty_like(classes)
        answers = _in_parallel(lambda fold: _nested(train, fold), folds)
        for (_, held_out), answer in zip(folds, answers, strict=True):
            predicted[held_out] = answer
        return predicted


def _nested(examples: _Part, fold: _Part) -> np.ndarray:
    train, held_out = _split(examples, fold)
    _, classes = train
    unseen, _ = held_out
    scores = [_scores(_NARROW, *_split(train, inner)) for inner in _folds(classes)]
    return _fitted(train, _best(_NARROW, scores), unseen)


def _split(examples: _Part, fold: _Part) -> tuple[_Part, _Part]:
    features, classes = examples
    rows, held_out = fold
    return (features[rows], classes[rows]), (features[held_out], classes[held_out])


def _folds(classes: np.ndarray) -> list[_Part]:
    """Ten pairs of training rows and held-out rows."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    return list(folds.split(np.empty((len(classes), 0)), classes))


def _best(candidates: Sequence[float], scores: Sequence[np.ndarray]) -> float:
    """The C with the best mean accuracy; `scores` has one array (candidate,) per fold."""
    percents = 100 * np.mean(scores, axis=0)
    return candidates[int(np.round(percents, 2).argmax())]


def _scores(candidates: Sequence[float], train: _Part, held_out: _Part) -> np.ndarray:
    """Accuracy on held-out examples for each C; each fit starts from the previous one."""
    features, _ = train
    unseen, gold = held_out
    classifier = _classifier(features)
    accuracies = []
    for candidate in candidates:
        classifier.set_params(C=candidate).fit(*train)
        accuracies.append(np.mean(classifier.predict(unseen) == gold))
    return np.array(accuracies)


def _fitted(train: _Part, strength: float, unseen: np.ndarray) -> np.ndarray:
    features, _ = train
    classifier = _classifier(features).set_params(C=strength).fit(*train)
    predicted: np.ndarray = classifier.predict(unseen)
    return predicted


def _classifier(features: np.ndarray) -> Any:
    """A classifier whose tolerance is scaled by the vectors' lengths, as gradients grow with them."""
    from sklearn.linear_model import LogisticRegression

    squares = np.einsum("ef,ef->", features, features, dtype=np.float64)
    length = float(np.sqrt(squares / len(features)))
    return LogisticRegression(
        tol=_TOLERANCE * max(length, 1e-6),
        max_iter=_ITERATIONS,
        warm_start=True,
        random_state=SEED,
    )


def _in_parallel(work: Callable[[_In], _Out], items: Iterable[_In]) -> list[_Out]:
    """Use threads, because a fit spends its time in products, which release the GIL."""
    from joblib import Parallel, delayed

    return list(
        Parallel(n_jobs=-1, prefer="threads")(delayed(work)(item) for item in items)
    )


def _check_classes(classes: np.ndarray, min_count: int) -> None:
    found, counts = np.unique(classes, return_counts=True)
    if len(found) < 2:
        raise DataError("all examples have one class; a classifier needs two or more")
    if counts.min() < min_count:
        raise DataError(
            f"only {counts.min()} examples of class {found[counts.argmin()]}; expected at least {min_count}"
        )
