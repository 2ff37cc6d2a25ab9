"""The weighted sum of loss parts, for each kind of data and preset."""

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import grad
from torch.testing import assert_close

from aoe_train.objectives.labelled_pairs import (
    BatchTeachers,
    as_pairs,
    cosine,
    ranking_loss,
)
from aoe_train.objectives.objective import CustomObjective, Objective
from aoe_train.objectives.objective_checks import (
    NO_TEACHERS,
    LossContext,
    TeacherInfo,
    check_objective,
    check_teacher_use,
    positive_threshold,
)
from aoe_train.objectives.objective_settings import (
    PARTS,
    PRESETS,
    TAUGHT,
    ObjectiveSettings,
    Taus,
    Weights,
)
from aoe_train.objectives.training_rows import ABSENT
from tests.aoe_train.tiny import refusal, seeded
from tests.support.shorthand import approx, parametrize, table


def only(part, **others):
    """Settings of an objective with one part."""
    return ObjectiveSettings(weights=Weights(**{part: 1.0}), **others)


COLUMNS = {"binary": 2, "graded": 2, "positive": 2, "triplet": 3, "single": 2}
RANGE = (0.0, 5.0)


@parametrize("kind", COLUMNS)
@parametrize("part", PARTS)
def test_parts_and_kinds_of_data(part, kind):
    ranks = part in ("cosent", "angle", "sbert") and kind in ("positive", "single")
    impossible = ranks or (part == "margin_mse" and kind != "triplet")
    with refusal(f"objective {part}: found {kind}" if impossible else None):
        check_objective(LossContext(only(part), 8, kind, RANGE))


# Cosines of the anchor are 0.6 and 0, and the teacher's 1 and 0.8; all temperatures are 1.
TRIPLET = torch.tensor([[[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]])
TAUGHT_TRIPLET = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.8, 0.6]]])
BY_HAND = {
    "cosent": math.log(1 + math.exp(-0.6)),
    "in_batch": math.log(1 + math.exp(-0.6)),
    "angle": math.log(1 + math.exp(1 - 0.2)),  # |0 - 1| and |0.6 - 0.8|
    "contrastive": math.log(1 + math.exp(-0.6)),
    "sbert": math.log(2),  # of a classifier whose weights are 0
    "embed_distill": (0 + 0.4 + 0.4) / 3,
    "score_distill": (0.4**2 + 0.8**2) / 2,
    "margin_mse": (0.6 - 0.2) ** 2,
}


@parametrize("part", PARTS)  # a new part needs its value
def test_every_part_by_hand(part):
    taus = {part: 1.0} if PARTS[part].tau else {}
    teachers = TeacherInfo(teacher_dim=2) if part in TAUGHT else NO_TEACHERS
    wanted = only(part, tau=Taus(**taus))
    loss = Objective(wanted, dim=2, kind="triplet", teachers=teachers)
    for weight in loss.parameters():
        weight.data.zero_()
    taught = BatchTeachers(teacher=TAUGHT_TRIPLET)
    found = loss(TRIPLET, None, torch.tensor([[0, 1, 2]]), taught)
    assert found["loss"].item() == found[part].item() == approx(BY_HAND[part])


@table(
    r"""
    part, options, kind, label_range, message
    sbert | {} | graded | None | range of graded labels is unknown
    sbert | {} | graded | (3.0, 3.0) | from 3 to 3, expected at least two
    cosent | {} | graded | None | None
    angle | {'margin': 0.5} | binary | None | margin: has no effect without cosent; give it a weight
    cosent | {'margin': 0.5} | graded | None | margin: the range of graded labels is unknown
    cosent | {'margin': 0.5} | graded | (0.0, 5.0) | None
    cosent | {'margin': 0.5} | triplet | None | None
    in_batch | {'positive_from': 5.5} | graded | (0.0, 5.0) | found labels from 0 to 5
    in_batch | {'positive_from': 5.5} | binary | (0.0, 5.0) | found binary
    cosent | {'contrast_anchors': True} | binary | None | no effect without contrastive or in_batch
    in_batch | {'hard_negatives': False} | binary | None | no effect without contrastive;
    cosent | {'embed_form': 'mse'} | graded | None | no effect without embed_distill
    in_batch | {'contrast_anchors': True} | binary | None | None
    """,
)
def test_options_and_kinds_of_data(part, options, kind, label_range, message):
    wanted = only(part, **options)
    with refusal(message):
        Objective(wanted, dim=8, kind=kind, label_range=label_range)
    with refusal("odd embedding size 7" if part == "angle" else message):
        Objective(wanted, dim=7, kind=kind, label_range=label_range)


@table(
    """
    kind, guide, margin, message
    single | True | 0.0 | needs a margin
    single | True | 0.3 | None
    positive | True | 0.0 | None
    positive | False | 0.3 | guide_margin: has no effect without a guide
    """,
)
def test_margins_of_guides(kind, guide, margin, message):
    with refusal(message):
        wanted = only("contrastive", guide_margin=margin)
        check_teacher_use(wanted, kind=kind, teachers=TeacherInfo(guide=guide))


@table(
    """
    given, kind, labels, expected
    None | binary | None | 0.5
    None | graded | (0.0, 5.0) | 4
    None | graded | (0.0, 1.0) | 0.8
    3 | graded | (0.0, 5.0) | 3
    3 | graded | None | 3
    5 | graded | (0.0, 5.0) | 5
    5 | graded | (5.0, 5.0) | ^positive_from: found labels from 5 to 5, expected
    None | graded | None | ^positive_from: the range of graded labels
    0.0 | graded | (0.0, 5.0) | found labels from 0 to 5
    -1.0 | graded | (0.0, 5.0) | found labels from 0 to 5
    5.5 | graded | (0.0, 5.0) | found labels from 0 to 5
    """,
)
def test_positive_threshold(given, kind, labels, expected):
    with refusal(expected if isinstance(expected, str) else None):
        wanted = only("in_batch", positive_from=given)
        assert positive_threshold(wanted, kind, labels) == expected


EVERYTHING = [
    (preset, kind) for preset in PRESETS for kind in ("binary", "graded", "triplet")
]
EVERYTHING += [("simcse", kind) for kind in ("positive", "single")]
quick = settings(max_examples=25)
seeds = st.integers(0, 10**6)


def random_vectors(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def equal_with_gradient(found, expected, vectors):
    assert_close(found, expected, rtol=1e-12, atol=1e-12)
    (ours,), (peers,) = (
        grad(loss, vectors, retain_graph=True) for loss in (found, expected)
    )
    assert_close(ours, peers, rtol=1e-10, atol=1e-12)


def draw(seed, kind, rows=6, columns=None):
    """Vectors, labels and numbers of a batch with repeated texts."""
    generator = seeded(seed)
    texts = torch.randint(9, (rows, columns or COLUMNS[kind]), generator=generator)
    if kind == "single":
        texts = texts[:, :1].expand(-1, 2)
    vectors = random_vectors(generator, 9, 6)[texts]
    labels = {"binary": torch.arange(rows) % 2, "graded": torch.arange(rows)}.get(kind)
    return vectors, None if labels is None else labels.float(), texts


def objective(preset, kind, **changes):
    torch.manual_seed(0)
    wanted = PRESETS[preset].model_copy(update=changes)
    return Objective(wanted, dim=6, kind=kind, label_range=RANGE)


@table(
    """
    kind, unit
    graded | 5.0
    binary | 1.0
    triplet | 1.0
    """,
)
def test_margin_spans_the_label_range(kind, unit):
    batch = draw(3, kind)
    first, second, labels, *_ = as_pairs(*batch)
    expected = ranking_loss(cosine(first, second), labels, 20.0, 0.5 / unit)
    found = objective("cosent", kind, margin=0.5)(*batch)["loss"]
    assert_close(found, expected)


@parametrize("preset", PRESETS)
@quick
@given(seed=seeds, negatives=st.integers(1, 4))
def test_absent_negatives_are_no_pairs(preset, seed, negatives):
    vectors, _, texts = draw(seed, "triplet", columns=2 + negatives)
    lacks = torch.rand(6, negatives, generator=seeded(seed)) < 0.4
    texts[:, 2:][lacks] = ABSENT
    cells = [(row, column) for column in range(1, 2 + negatives) for row in range(6)]
    there = [cell for cell in cells if texts[cell] != ABSENT]
    pairs, numbers = (
        torch.stack([each[row, [0, column]] for row, column in there])
        for each in (vectors, texts)
    )
    labels = torch.tensor([float(column == 1) for _, column in there])
    options = [{}]
    if preset == "simcse":
        options += [{"hard_negatives": False}, {"symmetric": True}]
    for chosen in options:
        leaf = vectors.clone().requires_grad_()
        losses = objective(preset, "triplet", **chosen)(leaf, None, texts)
        by_pairs = objective(preset, "binary", **chosen)(pairs, labels, numbers)
        assert_close(losses, by_pairs)
        (gradient,) = grad(losses["loss"], leaf)
        assert gradient.isfinite().all()
        assert (gradient[:, 2:][lacks] == 0).all()


def test_every_weight_of_the_classifier_is_trained():
    classifier = objective("sbert", "binary")
    assert classifier.sbert.head.weight.shape == (2, 18)
    classifier(*draw(4, "binary"))["loss"].backward()
    assert all(p.grad.abs().sum() > 0 for p in classifier.parameters())


@parametrize("dtype", [torch.float32, torch.bfloat16])
@parametrize("preset, kind", EVERYTHING)
def test_autocast_changes_nothing_and_gradients_are_finite(preset, kind, dtype):
    model = objective(preset, kind)
    vectors, labels, texts = draw(8, kind)
    plain = vectors.float()
    expected = model(plain, labels, texts)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_close(model(plain, labels, texts), expected, rtol=0, atol=0)
    same = vectors[:1, :1].expand_as(vectors)
    some_zero = torch.cat([torch.zeros_like(vectors[:2]), same[:2], vectors[4:]])
    for hard in (0 * vectors, same, some_zero, vectors * 1e-20, vectors * 1e15):
        hard = hard.to(dtype).clone().requires_grad_()
        loss = model(hard, labels, texts)["loss"]
        loss.backward()
        assert loss.dtype == torch.float32
        assert loss.isfinite()
        assert hard.grad.isfinite().all()


def test_label_range_from_1_to_5_by_hand():
    """A margin of 0.8 over the width 4 is 0.2 a label, and label 2 is scaled to 0.25."""
    how = {"dim": 2, "kind": "graded", "label_range": (1.0, 5.0)}
    cosent = Objective(only("cosent", margin=0.8), **how)
    sbert = Objective(PRESETS["sbert"], **how)
    vectors = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    labels, texts = torch.tensor([5.0, 2.0]), torch.tensor([[0, 0], [0, 1]])
    # Scores of 1 and 0 less 0.2 times the labels 5 and 2, all times 1 / tau = 20.
    by_hand = math.log(1 + math.exp(20 * (-0.4 - 0.0)))
    assert cosent(vectors, labels, texts)["loss"].item() == approx(by_hand, rel=1e-4)
    assert sbert(vectors, labels, texts)["loss"].item() == approx(0.25**2 / 2)


def test_custom_loss_gets_zeros_for_absent_negatives():
    vectors, _, texts = draw(5, "triplet", columns=4)
    texts[0, 3] = ABSENT
    seen = []
    loss = CustomObjective(lambda given, _: seen.append(given) or given.sum())
    loss(vectors.requires_grad_(), None, texts)
    assert_close(seen, [vectors * (texts != ABSENT)[..., None]])
