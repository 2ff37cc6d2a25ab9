"""The objective as a whole: which parts go with which data, and every preset on every kind it knows."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train.objectives.contrastive import contrastive_loss, ibn_loss
from aoe_train.objectives.kinds import check_objective, positive_threshold
from aoe_train.objectives.objective import CustomObjective, Objective, loss_weights
from aoe_train.objectives.pairs import as_pairs, cosine
from aoe_train.objectives.ranking import angle_reference, ranking_loss
from aoe_train.objectives.settings import PRESETS, ObjectiveSettings, Taus, Weights
from aoe_train.records import ABSENT
from pairkit.app.settings import load_settings
from tests.aoe_train.tiny import only, refusal

KINDS = ["binary", "graded", "positive", "triplet", "single"]
RANGED, RANGE = ("ibn", "contrastive", "sbert"), (0.0, 5.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["cosine", "ibn", "angle", "contrastive", "sbert", "margin_mse"])
def test_every_combination_is_as_the_table_says(part, kind):
    ranks = part in ("cosine", "angle", "sbert") and kind in ("positive", "single")
    impossible = ranks or (part == "margin_mse" and kind != "triplet")
    with refusal(f"objective {part}: found {kind}" if impossible else None):
        check_objective(only(part), dim=8, kind=kind, label_range=RANGE)


@pytest.mark.parametrize(
    ("wanted", "kind", "label_range", "message"),
    [
        *((only(part), "graded", None, "range of graded labels is not known") for part in RANGED),
        *((only(part), "graded", (3.0, 3.0), "from 3 to 3, expected at least two") for part in RANGED),
        (only("cosine"), "graded", None, None),
        (only("angle", margin=0.5), "binary", None, r"margin = 0.5: only the part cosine has one"),
        (only("cosine", margin=0.5), "graded", None, "margin: the range of graded labels is not known"),
        (only("cosine", margin=0.5), "graded", RANGE, None),
        (only("cosine", margin=0.5), "triplet", None, None),
        (only("ibn", positive_from=5.5), "graded", RANGE, "labels go from 0 to 5"),
        (only("ibn", positive_from=5.5), "binary", RANGE, "found binary"),
        (
            only("cosine", contrast_anchors=True),
            "binary",
            None,
            "contrast_anchors and contrast_positives are",
        ),
        (only("ibn", contrast_anchors=True), "binary", None, None),
    ],
)
def test_settings_and_data_belong_together(wanted, kind, label_range, message):
    with refusal(message):
        check_objective(wanted, dim=8, kind=kind, label_range=label_range)


def test_odd_size_is_refused_for_angle_only():
    with refusal("odd size 7"):
        check_objective(PRESETS["aoe"], dim=7, kind="binary")
    check_objective(PRESETS["cosent"], dim=7, kind="binary")


@pytest.mark.parametrize(
    ("given", "kind", "labels", "expected"),
    [
        *((None, "binary", None, 0.5), (None, "graded", RANGE, 4), (None, "graded", (0.0, 1.0), 0.8)),
        *((3, "graded", RANGE, 3), (3, "graded", None, 3), (5, "graded", RANGE, 5)),
        (5, "graded", (5.0, 5.0), r"^positive_from: found labels from 5 to 5, expected"),
        (None, "graded", None, r"^positive_from: the range of graded labels"),
        *((given, "graded", RANGE, "labels go from 0 to 5") for given in (0.0, -1.0, 5.5)),
    ],
)
def test_which_labels_are_positive(given, kind, labels, expected):
    with refusal(expected if isinstance(expected, str) else None):
        assert positive_threshold(only("ibn", positive_from=given), kind, labels) == expected


@pytest.mark.parametrize(
    ("key", "message"),
    [
        *((f"weights.{part}=-0.5", "greater than or equal to 0") for part in Weights(cosine=1).model_dump()),
        *(("tau.angle=0", "angle"), ("scale=20", "scale"), ("weights.cosine=0", "at least one part")),
    ],
)
def test_senseless_settings_are_refused(key, message):
    with refusal(message):
        load_settings(ObjectiveSettings, assignments=[key])


def test_presets_are_the_papers():
    assert {name: preset.weights.active for name, preset in PRESETS.items()} == {
        "angle": {"cosine": 1, "ibn": 1, "angle": 1},
        "aoe": {"angle": 1, "contrastive": 1},
        "cosent": {"cosine": 1},
        "sbert": {"sbert": 1},
        "simcse": {"contrastive": 1},
    }
    assert all(
        preset.tau == Taus(cosine=0.05, ibn=0.05, angle=1, contrastive=0.05) for preset in PRESETS.values()
    )


COLUMNS = {"binary": 2, "graded": 2, "positive": 2, "triplet": 3, "single": 2}
EVERYTHING = [(preset, kind) for preset in PRESETS for kind in ("binary", "graded", "triplet")]
EVERYTHING += [("simcse", kind) for kind in ("positive", "single")]
quick = settings(max_examples=25)
seeds = st.integers(0, 10**6)


def draw(seed: int, kind: str, rows: int = 6, dim: int = 6, distinct: int = 9, columns: int | None = None):
    """Vectors, labels and numbers of a batch in which texts repeat."""
    generator = torch.Generator().manual_seed(seed)
    texts = torch.randint(distinct, (rows, columns or COLUMNS[kind]), generator=generator)
    if kind == "single":
        texts = texts[:, :1].expand(-1, 2)
    vectors = torch.randn(distinct, dim, generator=generator, dtype=torch.float64)[texts]
    labels = {"binary": torch.arange(rows) % 2, "graded": torch.arange(rows)}.get(kind)
    return vectors, None if labels is None else labels.float(), texts


def objective(preset: str, kind: str, **changes) -> Objective:
    torch.manual_seed(0)
    wanted = PRESETS[preset].model_copy(update=changes)
    return Objective(wanted, dim=6, kind=kind, label_range=(0.0, 5.0))


def test_parts_are_unweighted_and_the_loss_is_their_weighted_sum():
    wanted = ObjectiveSettings(
        weights=Weights(cosine=1, ibn=35, angle=0.5, contrastive=2),
        tau=Taus(cosine=0.1, ibn=0.2, angle=0.3, contrastive=0.4),
        positive_from=3,
    )
    vectors, labels, texts = draw(1, "graded")
    first, second = vectors.unbind(1)
    expected = {
        "cosine": ranking_loss(cosine(first, second), labels, 10.0),
        "ibn": ibn_loss(first, second, texts, labels >= 3, 0.2),
        "angle": ranking_loss(angle_reference(first, second), labels, 1 / 0.3),
        "contrastive": contrastive_loss(first, second, texts, labels >= 3, 0.4),
    }
    parts = Objective(wanted, dim=6, kind="graded", label_range=(0.0, 5.0))(vectors, labels, texts)
    total = parts.pop("loss")
    torch.testing.assert_close(parts, expected)
    weights = wanted.weights.active
    torch.testing.assert_close(total, sum(weights[part] * value for part, value in expected.items()))


def test_a_weight_of_zero_is_not_computed():
    assert objective("cosent", "binary")(*draw(0, "binary")).keys() == {"loss", "cosine"}


@pytest.mark.parametrize(("kind", "unit"), [("graded", 5.0), ("binary", 1.0), ("triplet", 1.0)])
def test_the_margin_is_of_the_whole_label_range(kind, unit):
    vectors, labels, texts = draw(3, kind)
    first, second, labels, *_ = as_pairs(vectors, labels, texts)
    expected = ranking_loss(cosine(first, second), labels, 20.0, 0.5 / unit)
    found = objective("cosent", kind, margin=0.5)(vectors, draw(3, kind)[1], texts)
    torch.testing.assert_close(found["loss"], expected)
    assert found["loss"] > objective("cosent", kind)(vectors, draw(3, kind)[1], texts)["loss"]


def test_contrastive_options_are_passed_on():
    vectors, labels, texts = draw(2, "binary")
    options = {"hard_negatives": False, "symmetric": True}
    found = objective("simcse", "binary", **options)(vectors, labels, texts)["loss"]
    torch.testing.assert_close(
        found, contrastive_loss(*vectors.unbind(1), texts, labels > 0, 0.05, **options)
    )


def test_triplets_by_hand():
    # cosines: (anchor, positive) 1, (anchor, negative) 0; tau 1. Ranking: log(1 + e^-1); so is contrastive.
    vectors, texts = torch.tensor([[[1.0, 0], [2, 0], [0, 1]]]), torch.tensor([[0, 1, 2]])
    wanted = ObjectiveSettings(weights=Weights(cosine=1, contrastive=1), tau=Taus(cosine=1, contrastive=1))
    parts = Objective(wanted, dim=2, kind="triplet")(vectors, None, texts)
    assert parts["cosine"].item() == pytest.approx(math.log(1 + math.exp(-1)))
    assert parts["contrastive"].item() == pytest.approx(math.log(1 + math.exp(-1)))


@pytest.mark.parametrize("preset", PRESETS)
@quick
@given(seed=seeds, negatives=st.integers(1, 4))
def test_a_negative_that_a_row_lacks_is_no_pair(preset, seed, negatives):
    vectors, _, texts = draw(seed, "triplet", columns=2 + negatives)
    lacks = torch.rand(6, negatives, generator=torch.Generator().manual_seed(seed)) < 0.4
    texts[:, 2:][lacks] = ABSENT
    cells = [(row, column) for column in range(1, 2 + negatives) for row in range(6)]
    there = [cell for cell in cells if texts[cell] != ABSENT]
    pairs, numbers = (
        torch.stack([each[row, [0, column]] for row, column in there]) for each in (vectors, texts)
    )
    labels = torch.tensor([float(column == 1) for _, column in there])
    options = [{}, {"hard_negatives": False}, {"symmetric": True}] if preset == "simcse" else [{}]
    for chosen in options:
        given_vectors = vectors.clone().requires_grad_()
        losses = objective(preset, "triplet", **chosen)(given_vectors, None, texts)
        torch.testing.assert_close(losses, objective(preset, "binary", **chosen)(pairs, labels, numbers))
        (gradient,) = torch.autograd.grad(losses["loss"], given_vectors)
        assert gradient.isfinite().all()
        assert (gradient[:, 2:][lacks] == 0).all()


def test_sbert_regresses_on_scaled_grades_and_classifies_the_rest():
    vectors, _, texts = draw(4, "graded", rows=2)
    regressor = objective("sbert", "graded")
    assert not list(regressor.parameters())
    first, second = vectors.unbind(1)
    expected = ((cosine(first, second) - torch.tensor([0.4, 1.0])) ** 2).mean()
    torch.testing.assert_close(regressor(vectors, torch.tensor([2.0, 5.0]), texts)["loss"], expected)
    classifier = objective("sbert", "binary")
    assert (classifier.sbert.head.in_features, classifier.sbert.head.out_features) == (18, 2)
    classifier(*draw(4, "binary"))["loss"].backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in classifier.parameters())


def test_single_is_unsupervised_simcse():
    vectors = torch.eye(3).unsqueeze(1).expand(-1, 2, -1)
    texts = torch.arange(3)[:, None].expand(-1, 2)
    loss = Objective(PRESETS["simcse"], dim=3, kind="single")(vectors, None, texts)["loss"]
    assert loss.item() == pytest.approx(math.log(1 + 2 * math.exp(-20)), abs=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("preset", "kind"), EVERYTHING)
def test_nothing_breaks_it(preset, kind, dtype):
    model = objective(preset, kind)
    vectors, labels, texts = draw(8, kind)
    same = vectors[:1, :1].expand_as(vectors)
    some_zero = torch.cat([torch.zeros_like(vectors[:2]), same[:2], vectors[4:]])
    for hard in (torch.zeros_like(vectors), same, some_zero, vectors * 1e-20, vectors * 1e15):
        hard = hard.to(dtype).clone().requires_grad_()
        loss = model(hard, labels, texts)["loss"]
        loss.backward()
        assert loss.dtype == torch.float32
        assert loss.isfinite()
        assert hard.grad.isfinite().all()


@pytest.mark.parametrize("preset", ["angle", "aoe", "cosent"])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_one_label_value_ranks_nothing(preset, label):
    vectors, _, texts = draw(9, "binary")
    vectors.requires_grad_()
    parts = objective(preset, "binary")(vectors, torch.full((6,), label), texts)
    ranked = {"cosine", "angle"} & parts.keys()
    assert ranked
    assert all(parts[part] == 0 for part in ranked)
    parts["loss"].backward()
    assert vectors.grad.isfinite().all()
    if label == 0 or preset == "cosent":  # nor is there an anchor
        assert torch.equal(vectors.grad, torch.zeros_like(vectors))


@pytest.mark.parametrize(("preset", "kind"), EVERYTHING)
def test_autocast_changes_nothing(preset, kind):
    vectors, labels, texts = draw(10, kind)
    model, vectors = objective(preset, kind), vectors.float()
    expected = model(vectors, labels, texts)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(model(vectors, labels, texts), expected, rtol=0, atol=0)


def test_labels_that_do_not_begin_at_zero():
    """By hand, on a scale from 1 to 5: the margin is of its width 4, and 1 is as far from alike as can be."""
    how = {"dim": 2, "kind": "graded", "label_range": (1.0, 5.0)}
    assert Objective(only("cosine", margin=0.8), **how).context.margin == pytest.approx(0.2)
    sbert = Objective(PRESETS["sbert"], **how)
    vectors = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    labels, texts = torch.tensor([5.0, 1.0]), torch.tensor([[0, 0], [0, 1]])
    assert sbert(vectors, labels, texts)["loss"].item() == pytest.approx(0)


def test_without_in_batch_parts_no_label_need_be_a_positive():
    found = Objective(only("cosine"), dim=2, kind="graded", label_range=None)
    assert (found.context.positive_from, [*found.parameters()]) == (0.0, [])


def test_the_reference_angle_is_of_the_first_text_to_the_second():
    vectors, labels, texts = draw(3, "graded")
    found = Objective(only("angle", tau=Taus(angle=0.5)), dim=6, kind="graded")(vectors, labels, texts)[
        "angle"
    ]
    first, second = vectors.unbind(1)
    torch.testing.assert_close(found, ranking_loss(angle_reference(first, second), labels, 2))
    assert abs(found - ranking_loss(angle_reference(second, first), labels, 2)) > 1e-3


def test_a_part_is_a_function_and_a_line_of_the_table(monkeypatch):
    """Its weight and temperature come with the line."""
    from aoe_train.objectives import objective as module
    from aoe_train.objectives import ranking, settings

    def halved(given):
        return lambda pairs: ranking_loss(
            cosine(pairs.first, pairs.second), pairs.labels, given.tau("cosine")
        )

    monkeypatch.setattr(ranking, "halved", halved, raising=False)
    line = settings.LossPart("ranking.halved", learns_from="ranking", tau=0.5, about="half of it")
    monkeypatch.setattr(module, "PARTS", {**settings.PARTS, "cosine": line})
    vectors, labels, texts = draw(5, "graded")
    found = objective("cosent", "graded", tau=Taus(cosine=0.5))(vectors, labels, texts)
    torch.testing.assert_close(found["cosine"], ranking_loss(cosine(*vectors.unbind(1)), labels, 0.5))


def test_a_loss_of_ones_own_sees_zeros_for_a_negative_that_a_row_lacks():
    vectors, _, texts = draw(5, "triplet", columns=4)
    texts[0, 3] = ABSENT
    seen = []
    CustomObjective(lambda vectors, _: (seen.append(vectors), vectors.sum())[1])(
        vectors.requires_grad_(), None, texts
    )
    assert (seen[0][0, 3] == 0).all()
    torch.testing.assert_close(seen[0][1:], vectors[1:])
    torch.testing.assert_close(seen[0][0, :3], vectors[0, :3])


def test_every_negative_makes_a_pair_with_the_anchor_by_hand():
    texts = torch.tensor([[10, 11, 12, 13], [20, 21, 22, ABSENT]])
    pairs = as_pairs(texts[:, :, None].float(), None, texts)
    assert pairs.texts.tolist() == [[10, 11], [20, 21], [10, 12], [20, 22], [10, 13], [20, ABSENT]]
    assert pairs.first.flatten().tolist() == [10, 20] * 3
    assert pairs.second.flatten().tolist()[:5] == [11, 21, 12, 22, 13]
    assert pairs.labels.tolist() == [1, 1, 0, 0, 0, 0]
    assert pairs.present.tolist() == [True] * 5 + [False]
    assert pairs.anchors == 2
    assert as_pairs(texts[:, :3, None].float(), None, texts[:, :3]).texts.tolist() == pairs.texts[:4].tolist()


def test_a_run_learns_from_its_own_loss_or_from_the_settings_parts():
    assert loss_weights(PRESETS["aoe"], None) == {"angle": 1, "contrastive": 1}
    assert loss_weights(PRESETS["aoe"], draw) == {f"{__name__}.draw": 1}
