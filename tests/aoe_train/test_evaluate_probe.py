"""The classifier on vectors, against SentEval's loops written out with scikit-learn."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import StratifiedKFold

from aoe_train._evaluate.suites.classification import Detection
from aoe_train._evaluate.suites.probe import Labelled, predict, require_classifier
from pairkit.errors import ConfigError, DataError

NARROW = [2.0**t for t in range(-2, 4)]
WIDE = [2.0**t for t in range(-1, 6)]


def blobs(size: int, classes: int = 2, seed: int = 0, dim: int = 5, spread: float = 1.2) -> Labelled:
    """Overlapping clouds, so that some predictions are wrong and the penalty matters."""
    draw = np.random.default_rng(seed)
    labels = np.arange(size) % classes
    centres = np.random.default_rng(99).normal(size=(classes, dim))
    return Labelled((centres[labels] + spread * draw.normal(size=(size, dim))).astype(np.float32), labels)


def fit(c: float, x: np.ndarray, y: np.ndarray) -> LogisticRegression:
    return LogisticRegression(C=c, tol=1e-8, max_iter=5000).fit(x.astype(float), y)


def folds(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(StratifiedKFold(10, shuffle=True, random_state=1111).split(np.zeros(len(y)), y))


def chosen(regs: Sequence[float], x: np.ndarray, y: np.ndarray) -> float:
    scores = [
        round(100 * np.mean([fit(c, x[a], y[a]).score(x[b].astype(float), y[b]) for a, b in folds(y)]), 2)
        for c in regs
    ]
    return regs[int(np.argmax(scores))]


def test_all_in_one_is_the_nested_loop() -> None:
    x, y = blobs(110)
    expected = np.empty_like(y)
    for a, b in folds(y):
        expected[b] = fit(chosen(NARROW, x[a], y[a]), x[a], y[a]).predict(x[b].astype(float))
    assert 0.6 < np.mean(expected == y) < 0.99
    assert predict(Labelled(x, y)).tolist() == expected.tolist()


@pytest.mark.parametrize("classes", [2, 3])
def test_train_and_test_choose_by_folds_of_train(classes: int) -> None:
    (x, y), test = blobs(150, classes), blobs(300, classes, seed=1)
    expected = fit(chosen(WIDE, x, y), x, y).predict(test.features.astype(float))
    assert predict(Labelled(x, y), test).tolist() == expected.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_three_parts_choose_by_dev(seed: int) -> None:
    (x, y), dev, test = blobs(40, 3, seed), blobs(200, 3, seed + 10), blobs(300, 3, seed + 20)
    scores = [round(100 * fit(c, x, y).score(dev.features.astype(float), dev.classes), 2) for c in NARROW]
    expected = fit(NARROW[int(np.argmax(scores))], x, y).predict(test.features.astype(float))
    assert predict(Labelled(x, y), dev, test).tolist() == expected.tolist()


def test_a_tie_goes_to_the_stronger_penalty() -> None:
    """One feature parts the classes whatever the penalty; how far out the border lies depends on it."""
    train = Labelled(np.float32([[-3], [-3], [-3], [1]]), np.array([0, 0, 0, 1]))
    dev = Labelled(np.float32([[-9], [9]]), np.array([0, 1]))
    border = {c: -fit(c, *train).intercept_[0] / fit(c, *train).coef_[0, 0] for c in (NARROW[0], NARROW[-1])}
    between = np.float32([[sum(border.values()) / 2]])
    predicted = predict(train, dev, Labelled(between, np.array([0])))
    assert predicted == fit(NARROW[0], *train).predict(between)
    assert predicted != fit(NARROW[-1], *train).predict(between)


@pytest.mark.parametrize("length", [1e-3, 1.0, 300.0])
def test_converges_for_short_and_for_long_vectors(length: int) -> None:
    train, dev, test = (
        Labelled(part.features * np.float32(length), part.classes)
        for part in (blobs(200, 3), blobs(50, 3, 1), blobs(50, 3, 2))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predict(train, dev, test)


def test_vectors_that_are_all_alike_give_the_larger_class() -> None:
    y = np.array([0] * 40 + [1] * 25)
    assert predict(Labelled(np.ones((65, 3), np.float32), y)).tolist() == [0] * 65


def test_too_little_to_learn_from() -> None:
    x = np.zeros((60, 2), np.float32)
    with pytest.raises(DataError, match="one class"):
        predict(Labelled(x, np.zeros(60, int)))
    with pytest.raises(DataError, match=r"only 5 examples of class 1; expected at least 20"):
        predict(Labelled(x, np.array([0] * 55 + [1] * 5)), blobs(10))


def test_says_how_to_get_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    require_classifier()
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ConfigError, match=r"pip install 'aoe-toolkit\[eval\]'"):
        require_classifier()


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3)), min_size=1).filter(
        lambda rows: any(count for *_, count in rows)
    )
)
def test_detection_with_counts_is_that_of_repeated_examples(rows: list[tuple[bool, bool, int]]) -> None:
    predicted, gold, counts = (np.array(column) for column in zip(*rows, strict=True))
    figures = Detection(predicted, gold).figures(counts[None].astype(float))
    often = np.repeat(np.arange(len(rows)), counts)
    assert figures["accuracy"][0] == pytest.approx(accuracy_score(gold[often], predicted[often]))
    if (predicted | gold)[often].any():
        assert figures["f1"][0] == pytest.approx(f1_score(gold[often], predicted[often]))
    else:
        assert np.isnan(figures["f1"][0])
