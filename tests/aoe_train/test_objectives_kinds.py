"""Which parts go with which data, and what is said where they don't."""

from __future__ import annotations

import pytest

from aoe_train.objectives.kinds import check_objective, positive_threshold
from aoe_train.objectives.settings import PRESETS, ObjectiveSettings, Taus
from pairkit.app.errors import ConfigError
from pairkit.app.settings import load_settings
from tests.aoe_train.tiny import only

KINDS = ["binary", "graded", "positive", "triplet", "single"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["cosine", "ibn", "angle", "contrastive", "sbert", "margin_mse"])
def test_every_combination_is_as_the_table_says(part, kind):
    impossible = (part in ("cosine", "angle", "sbert") and kind in ("positive", "single")) or (
        part == "margin_mse" and kind != "triplet"
    )
    if not impossible:
        check_objective(only(part), dim=8, kind=kind, label_range=(0.0, 5.0))
        return
    with pytest.raises(ConfigError, match=f"objective {part}: found {kind}"):
        check_objective(only(part), dim=8, kind=kind, label_range=(0.0, 5.0))


def test_odd_size_is_refused_for_angle_only():
    with pytest.raises(ConfigError, match="odd size 7"):
        check_objective(PRESETS["aoe"], dim=7, kind="binary")
    check_objective(PRESETS["cosent"], dim=7, kind="binary")


@pytest.mark.parametrize("part", ["ibn", "contrastive", "sbert"])
def test_graded_labels_need_their_range_where_it_decides_something(part):
    with pytest.raises(ConfigError, match="range of graded labels is not known"):
        check_objective(only(part), dim=8, kind="graded")
    with pytest.raises(ConfigError, match="from 3 to 3, expected at least two values"):
        check_objective(only(part), dim=8, kind="graded", label_range=(3.0, 3.0))
    check_objective(only("cosine"), dim=8, kind="graded")


def test_a_margin_is_of_cosines_over_a_known_range():
    with pytest.raises(ConfigError, match=r"margin = 0.5: only the part cosine has one"):
        check_objective(only("angle", margin=0.5), dim=8, kind="binary")
    with pytest.raises(ConfigError, match="margin: the range of graded labels is not known"):
        check_objective(only("cosine", margin=0.5), dim=8, kind="graded")
    check_objective(only("cosine", margin=0.5), dim=8, kind="graded", label_range=(0.0, 5.0))
    check_objective(only("cosine", margin=0.5), dim=8, kind="triplet")


@pytest.mark.parametrize(
    ("given", "kind", "labels", "expected"),
    [
        (None, "binary", None, 0.5),
        (None, "graded", (0.0, 5.0), 4),
        (None, "graded", (0.0, 1.0), 0.8),
        (3, "graded", (0.0, 5.0), 3),
        (3, "graded", None, 3),
        (5, "graded", (0.0, 5.0), 5),
        (5, "graded", (5.0, 5.0), r"^positive_from: found labels from 5 to 5, expected"),
        (None, "graded", None, r"^positive_from: the range of graded labels"),
        *((given, "graded", (0.0, 5.0), "labels go from 0 to 5") for given in (0.0, -1.0, 5.5)),
    ],
)
def test_which_labels_are_positive(given, kind, labels, expected):
    if isinstance(expected, str):
        with pytest.raises(ConfigError, match=expected):
            positive_threshold(only("ibn", positive_from=given), kind, labels)
    else:
        assert positive_threshold(only("ibn", positive_from=given), kind, labels) == expected


@pytest.mark.parametrize(
    ("kind", "message"), [("graded", "labels go from 0 to 5"), ("binary", "found binary")]
)
def test_a_threshold_that_parts_nothing_is_refused_before_training(kind, message):
    with pytest.raises(ConfigError, match=message):
        check_objective(only("ibn", positive_from=5.5), dim=8, kind=kind, label_range=(0.0, 5.0))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        *(("weights.cosine=-1", "cosine"), ("tau.angle=0", "angle"), ("scale=20", "scale")),
        ("weights.cosine=0", "at least one part"),
    ],
)
def test_senseless_settings_are_refused(key, message):
    with pytest.raises(ConfigError, match=message):
        load_settings(ObjectiveSettings, assignments=[key])


def test_presets_are_the_papers():
    assert {name: preset.weights.wanted for name, preset in PRESETS.items()} == {
        "angle": {"cosine": 1, "ibn": 1, "angle": 1},
        "aoe": {"angle": 1, "contrastive": 1},
        "cosent": {"cosine": 1},
        "sbert": {"sbert": 1},
        "simcse": {"contrastive": 1},
    }
    assert all(
        preset.tau == Taus(cosine=0.05, ibn=0.05, angle=1, contrastive=0.05) for preset in PRESETS.values()
    )
