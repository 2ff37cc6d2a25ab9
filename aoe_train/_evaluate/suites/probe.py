"""Logistic regression on frozen vectors, as SentEval probes what they hold.

Source: Conneau & Kiela 2018 and the code they published. How the strength of the L2 penalty is chosen
follows from what a task is made of:

* **all in one**: ten folds, each predicted by a classifier of the other nine; within those nine, ten folds
  again choose C from 2^-2 … 2^3;
* **train, test**: ten folds of the training part choose C from 2^-1 … 2^5;
* **train, dev, test**: the dev part chooses C from 2^-2 … 2^3.

SentEval has two classifiers: scikit-learn's and, in the settings that SimCSE reports with and the AoE paper
follows, a linear layer trained by Adam with early stopping. This is the first: it has one optimum, which no
seed, batch size or patience moves. Folds are stratified and shuffled with SentEval's seed; candidates are
compared by accuracy in hundredths of a percent, and the stronger penalty wins a tie; vectors are not
standardised.

Two things differ from what SentEval ran with. More than two classes are fitted as one multinomial model and
the intercept is not penalised, both being scikit-learn's way today. And the figure is the share of all
predictions that are right, where SentEval takes the mean of ten folds, which hardly differ in size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import NamedTuple, TypeVar

import numpy as np

from pairkit.errors import ConfigError, DataError

FOLDS = 10
SEED = 1111
_NARROW = tuple(2.0**power for power in range(-2, 4))
_WIDE = tuple(2.0**power for power in range(-1, 6))
_TOLERANCE = 1e-5  # of the gradient, for vectors of length one
_ITERATIONS = 1000

_In = TypeVar("_In")
_Out = TypeVar("_Out")


class Labelled(NamedTuple):
    """Examples as a classifier sees them.

    Attributes:
        features: float32 (example, feature)
        classes: int64 (example,)
    """

    features: np.ndarray
    classes: np.ndarray

    def take(self, rows: np.ndarray) -> Labelled:
        """Some of them."""
        return Labelled(self.features[rows], self.classes[rows])


def require_classifier() -> None:
    """Say early, before texts are encoded, that scikit-learn is missing.

    Raises:
        ConfigError: It is.
    """
    if find_spec("sklearn") is None:
        raise ConfigError(
            "probing vectors needs scikit-learn, which isn't installed: pip install 'aoe-toolkit[eval]'"
        )


def predict(*parts: Labelled) -> np.ndarray:
    """Classes of the last part's examples, from classifiers that did not see them.

    Args:
        parts: All examples in one; or train and test; or train, dev and test.

    Returns:
        int64 (example,)

    Raises:
        DataError: Only one class, or too few examples of one for the folds.
    """
    from threadpoolctl import threadpool_limits

    _load_classifier()
    if len(parts) == 3:
        train, dev, test = parts
        _check_classes(train.classes, 1)
        scores = _scores(_NARROW, train, dev)
        return _fitted(train, _best(_NARROW, scores[None]), test.features)
    _check_classes(parts[0].classes, 2 * FOLDS)
    with threadpool_limits(1):  # a fold to a core: the products of one are too small to be shared out
        if len(parts) == 2:
            return _fold_then_predict(*parts)
        return _nested(parts[0])


def _load_classifier() -> None:
    """Only libraries that are loaded can be kept from spreading a product over all cores."""
    import sklearn.linear_model  # noqa: F401


def _fold_then_predict(train: Labelled, test: Labelled) -> np.ndarray:
    scores = _in_parallel(
        lambda fold: _scores(_WIDE, train.take(fold[0]), train.take(fold[1])), _folds(train.classes)
    )
    return _fitted(train, _best(_WIDE, np.stack(scores)), test.features)


def _nested(examples: Labelled) -> np.ndarray:
    folds = list(_folds(examples.classes))
    predicted = np.empty_like(examples.classes)
    answers = _in_parallel(
        lambda fold: _inner_fold_then_predict(examples.take(fold[0]), examples.features[fold[1]]), folds
    )
    for (_, held_out), answer in zip(folds, answers, strict=True):
        predicted[held_out] = answer
    return predicted


def _inner_fold_then_predict(train: Labelled, unseen: np.ndarray) -> np.ndarray:
    scores = [
        _scores(_NARROW, train.take(rows), train.take(held_out)) for rows, held_out in _folds(train.classes)
    ]
    return _fitted(train, _best(_NARROW, np.stack(scores)), unseen)


def _best(candidates: Sequence[float], scores: np.ndarray) -> float:
    """The C of the best mean accuracy; `scores` is (fold, candidate)."""
    return candidates[int(np.argmax(np.round(100 * scores.mean(axis=0), 2)))]


def _scores(candidates: Sequence[float], train: Labelled, held_out: Labelled) -> np.ndarray:
    """Accuracy on held-out examples for each C; a fit starts where the one before ended."""
    classifier = _classifier(train.features)
    scores = []
    for candidate in candidates:
        classifier.set_params(C=candidate).fit(train.features, train.classes)
        scores.append(np.mean(classifier.predict(held_out.features) == held_out.classes))
    return np.array(scores)


def _fitted(train: Labelled, strength: float, unseen: np.ndarray) -> np.ndarray:
    classifier = _classifier(train.features).set_params(C=strength).fit(train.features, train.classes)
    predicted: np.ndarray = classifier.predict(unseen)
    return predicted


def _classifier(features: np.ndarray):  # type: ignore[no-untyped-def]
    """Gradients grow with the vectors' lengths, so the tolerance does too."""
    from sklearn.linear_model import LogisticRegression

    length = float(np.sqrt(np.einsum("ef,ef->", features, features, dtype=np.float64) / len(features)))
    return LogisticRegression(
        tol=_TOLERANCE * max(length, 1e-6), max_iter=_ITERATIONS, warm_start=True, random_state=SEED
    )


def _folds(classes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows to train on and rows held out, ten times."""
    from sklearn.model_selection import StratifiedKFold

    folds: Iterator[tuple[np.ndarray, np.ndarray]] = StratifiedKFold(
        FOLDS, shuffle=True, random_state=SEED
    ).split(np.empty((len(classes), 0)), classes)
    return folds


def _in_parallel(work: Callable[[_In], _Out], items: Iterator[_In] | Sequence[_In]) -> list[_Out]:
    """Threads do: a fit spends its time in products, which let others run."""
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
