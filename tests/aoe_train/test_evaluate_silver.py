"""The area under the curve by labels that judges are not sure of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.evaluation.binary import Binary
from aoe_train.evaluation.gain import Silver, reliability

once = np.ones((1, 4))


def test_reliability_by_hand() -> None:
    assert reliability(np.array([1.0, 1, 0, 0]), once) == [1]
    assert reliability(np.array([0.9, 0.9, 0.1, 0.1]), once) == pytest.approx(
        [0.16 / 0.25]
    )  # mean square 0.41
    assert np.isnan(reliability(np.array([0.5] * 4), once)[0])  # judges that tell nothing
    twice = np.array([[2.0, 0, 0, 2]])  # the second and third pair don't stand there
    assert reliability(np.array([1, 0.5, 0.5, 0.5]), twice) == pytest.approx([0.0625 / (0.75 * 0.25)])


def test_an_area_by_hand() -> None:
    judged = Silver(np.array([0.9, 0.8, 0.2, 0.1]), np.array([0.9, 0.1, 0.9, 0.1]))
    # label 1 above label 0, from the top: 0.9 (0.9 + 0.1 + 0.9) + 0.1 (0.1 + 0.9) + 0.9 * 0.9, each pair with
    # itself half: 4 * 0.09 / 2; of 2 * 2
    measured = (1.71 + 0.1 + 0.81 + 0.18) / 4
    assert judged.scores()["roc_auc"] == pytest.approx(0.5 + (measured - 0.5) / 0.64)


@given(
    st.lists(st.tuples(st.floats(-1, 1, width=16), st.booleans(), st.integers(0, 3)), min_size=2, max_size=12)
)
def test_labels_that_nobody_doubts_are_labels(rows: list[tuple[float, bool, int]]) -> None:
    cosines, labels, counts = (np.array(column, float) for column in zip(*rows, strict=True))
    if not 0 < counts @ labels < counts.sum():
        return
    found = Silver(cosines, labels).figures(counts[None])["roc_auc"]
    assert found == pytest.approx(Binary(cosines, labels).figures(counts[None])["roc_auc"], abs=1e-12)


def test_doubts_that_are_justified_leave_the_area_of_true_labels() -> None:
    """A judge that is right in eight of ten, asked about many pairs, tells what the truth would."""
    draw = np.random.default_rng(1)
    truth = draw.random(40_000) < 0.3
    cosines = draw.normal(size=truth.size) + truth
    said = truth ^ (draw.random(truth.size) < 0.2)
    likely = np.where(said, 0.24 / (0.24 + 0.14), 0.06 / (0.06 + 0.56))  # Bayes
    by_truth, by_judge = (
        Binary(cosines, labels.astype(float)).scores()["roc_auc"] for labels in (truth, said)
    )
    assert Silver(cosines, likely).scores()["roc_auc"] == pytest.approx(by_truth, abs=0.01)
    assert by_judge < by_truth - 0.08
