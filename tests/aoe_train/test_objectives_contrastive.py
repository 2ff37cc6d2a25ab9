"""Ranking and in-batch losses: by hand, in loops, and against sentence-transformers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.linalg import norm
from torch.autograd import grad
from torch.testing import assert_close

from aoe_train.objectives.contrastive import (
    contrastive_loss,
    false_negatives,
    make_guide,
)
from aoe_train.objectives.labelled_pairs import (
    TINY,
    BatchTeachers,
    Classifier,
    Sides,
    angle_reference,
    as_pairs,
    cosine,
    ranking_loss,
    unit,
)
from aoe_train.objectives.objective import Objective
from aoe_train.objectives.objective_checks import TeacherInfo
from aoe_train.objectives.objective_settings import Taus
from aoe_train.objectives.training_rows import ABSENT
from tests.aoe_train.test_objectives_mix import (
    equal_with_gradient,
    only,
    quick,
    random_vectors,
    seeds,
)
from tests.aoe_train.tiny import seeded
from tests.support.shorthand import approx, parametrize, table


def draw(seed):
    """A batch with repeated texts; equal texts have equal vectors."""
    generator = seeded(seed)
    table = random_vectors(generator, 7, 5)
    texts = torch.randint(7, (6, 2), generator=generator)
    positive = torch.rand(6, generator=generator) < 0.6
    return table[texts[:, 0]], table[texts[:, 1]], texts, positive


def plain(anchors, candidates, numbers, positive, tau, usable, duplicates="exclude"):
    """The loss in plain loops; `numbers` are the (anchor, candidate) texts of each row."""
    together = {
        frozenset(pair) for pair, good in zip(numbers, positive, strict=True) if good
    }
    losses = []
    for i, anchor in enumerate(anchors):
        if not positive[i]:
            continue
        partners, total = [], 0.0
        for j, other in enumerate(candidates):
            similarity = math.exp(anchor @ other / norm(anchor) / norm(other) / tau)
            texts = (numbers[i][0], numbers[j][1])
            is_copy = texts[0] == texts[1] or frozenset(texts) in together
            if i == j or (usable[j] and is_copy and duplicates == "positive"):
                partners.append(similarity)
            if i == j or (usable[j] and not (is_copy and duplicates == "exclude")):
                total += similarity
        losses += [-math.log(similarity / total) for similarity in partners]
    return sum(losses) / max(len(losses), 1)


@table(
    """
    texts, positive, expected
    # 0-1 and 0-2 share an anchor, 3-1 shares a partner, 4-0 has that anchor second, 0-5 is labelled "no".
    # Of candidates 1, 2, 1, 0, 5 these are false: 0's partners, the copy of one and itself; again; 3's partner
    # and the copy; 4's own; 0's again, of which 5, being labelled "no", stays a negative.
    01 02 31 40 05 | 1 1 1 1 0 | 11110 11110 10100 00010 11110
    # Rows 0-1 and 2-3; then a negative of each: 4 and 3 (the second row's own partner), and 2, the
    # second anchor itself, and one that the second row lacks.
    01 23 04 23 02 2- | 1 1 | 100001 010111
    """,
)
def test_false_negatives_by_hand(texts, positive, expected):
    numbers = [
        [ABSENT if text == "-" else int(text) for text in pair]
        for pair in texts.split()
    ]
    is_positive = torch.tensor([label == "1" for label in positive.split()])
    found = false_negatives(torch.tensor(numbers), is_positive)
    assert found.int().tolist() == [[*map(int, row)] for row in expected.split()]


@quick
@given(seeds, st.sampled_from([0.05, 1.0]))
def test_loss_equals_plain_loops(seed, tau):
    first, second, texts, positive = draw(seed)
    numbers, flags = [tuple(row) for row in texts.tolist()], positive.tolist()
    a, b = first.numpy(), second.numpy()
    everyone = [True] * len(flags)
    whole = plain(a, b, numbers, flags, tau, everyone)
    some = plain(a, b, numbers, flags, tau, flags)
    back = plain(b, a, [pair[::-1] for pair in numbers], flags, tau, flags)
    batch = first, second, texts, positive, tau
    assert contrastive_loss(*batch).item() == approx(whole)
    assert contrastive_loss(*batch, hard_negatives=False).item() == approx(some)
    assert contrastive_loss(*batch, symmetric=True).item() == approx((whole + back) / 2)
    for duplicates in ("positive", "negative"):
        for usable, hard in ((everyone, True), (flags, False)):
            how = {"hard_negatives": hard, "duplicates": duplicates}
            expected = plain(a, b, numbers, flags, tau, usable, duplicates)
            assert contrastive_loss(*batch, **how).item() == approx(expected)


@parametrize("duplicates", ["exclude", "positive", "negative"])
def test_without_positives_loss_and_gradient_are_zero(duplicates):
    first, second, texts, positive = draw(0)
    batch = first.requires_grad_(), second, texts, positive & False
    value = contrastive_loss(*batch, 0.05, duplicates=duplicates)
    value.backward()
    assert value == 0
    assert (first.grad == 0).all()


theirs = pytest.importorskip("sentence_transformers.sentence_transformer.losses")


def test_equal_texts_are_not_extra_candidates():
    """Rows 0 and 1 share their anchor, rows 1 and 2 their positive, so there are no negatives."""
    vectors = torch.randn(3, 2, 4, generator=seeded(0))
    texts = torch.tensor([[0, 1], [0, 2], [3, 2]])
    positive = torch.ones(3, dtype=torch.bool)
    every = {"contrast_anchors": True, "contrast_positives": True}
    for two in (slice(2), slice(1, 3)):
        batch = *vectors[two].unbind(1), texts[two], positive[two]
        assert contrastive_loss(*batch, 0.5, **every).item() == 0


def drawn(seed, negatives):
    """The model's and the guide's vectors (row, column, dim) of distinct texts."""
    generator = seeded(seed)
    return [random_vectors(generator, 6, 2 + negatives, dim) for dim in (5, 3)]


@quick
@given(
    seed=seeds,
    negatives=st.integers(0, 3),
    # Below 0 theirs can filter the positive itself.
    margin=st.sampled_from([0.0, 0.1, 0.5]),
    strategy=st.sampled_from(["absolute", "relative"]),
    anchors=st.booleans(),
    positives=st.booleans(),
    part=st.sampled_from(["in_batch", "contrastive"]),
)
def test_value_and_gradient_equal_sentence_transformers(
    seed, negatives, margin, strategy, anchors, positives, part
):
    vectors, guide = drawn(seed, negatives)
    vectors.requires_grad_()
    peer = theirs.CachedGISTEmbedLoss.__new__(theirs.CachedGISTEmbedLoss)
    torch.nn.Module.__init__(peer)
    vars(peer).update(
        similarity_fct=torch.nn.CosineSimilarity(dim=-1),
        cross_entropy_loss=torch.nn.CrossEntropyLoss(),
        temperature=0.07,
        margin=margin,
        margin_strategy=strategy,
        contrast_anchors=anchors,
        contrast_positives=positives,
        gather_across_devices=False,
        show_progress_bar=False,
        mini_batch_size=4,
    )
    columns = [[column] for column in vectors.unbind(1)]
    expected = peer.calculate_loss(columns, [[column] for column in guide.unbind(1)])
    wanted = only(
        part,
        tau=Taus(**{part: 0.07}),
        contrast_anchors=anchors,
        contrast_positives=positives,
        guide_margin=margin,
        guide_margin_strategy=strategy,
    )
    kind = "triplet" if negatives else "positive"
    objective = Objective(wanted, dim=5, kind=kind, teachers=TeacherInfo(guide=True))
    texts = torch.arange(vectors[..., 0].numel()).view(6, -1)
    found = objective(vectors, None, texts, BatchTeachers(guide=guide))["loss"]
    equal_with_gradient(found, expected, vectors)


@quick
@given(seeds, st.sampled_from([0.0, 0.2]))
def test_guide_filters_both_directions(seed, margin):
    """The backward direction is the loss of swapped columns with the same thresholds."""
    vectors, told = drawn(seed, 0)
    texts = torch.arange(12).view(6, 2)
    positive = torch.ones(6, dtype=torch.bool)
    columns = told.unbind(1)
    there = make_guide(Sides(*columns), 6, margin, "absolute")
    back = make_guide(Sides(*columns[::-1]), 6, margin, "absolute")
    sides = vectors.unbind(1)
    batch = *sides, texts, positive, 0.1, there
    both = contrastive_loss(*batch, symmetric=True)
    one = contrastive_loss(*batch)
    other = contrastive_loss(*sides[::-1], texts.flip(1), positive, 0.1, back)
    assert_close(both, (one + other) / 2)


scales = st.sampled_from([0.5, 1.0, 20.0, 100.0])


def ranking_plain(scores, labels, scale, margin=0.0):
    """All B^2 differences at once."""
    above = labels[:, None] - labels
    terms = scale * (scores - scores[:, None] + margin * above)[above > 0]
    return torch.cat([terms.new_zeros(1), terms]).logsumexp(0)


def draw_scores(seed, size, levels):
    """Scores in [-1, 1] and labels of at most `levels` values, in float64."""
    generator = seeded(seed)
    scores = torch.rand(size, generator=generator, dtype=torch.float64) * 2 - 1
    return scores, torch.randint(levels, (size,), generator=generator).double()


def value_and_gradient(loss, scores, labels, scale, *margin):
    scores = scores.clone().requires_grad_()
    value = loss(scores, labels, scale, *margin)
    return value.detach(), grad(value, scores)[0]


@quick
@given(
    seeds,
    st.integers(1, 300),
    st.sampled_from([2, 3, 6, 1000]),
    scales,
    st.sampled_from([0.0, 0.3, 2.0]),
)
def test_equals_plain_form_also_in_float32(seed, size, levels, scale, margin):
    scores, labels = draw_scores(seed, size, levels)
    (value, gradient), (expected, slope) = (
        value_and_gradient(loss, scores, labels, scale, margin)
        for loss in (ranking_loss, ranking_plain)
    )
    assert_close(value, expected, rtol=1e-12 if margin == 0 else 1e-9, atol=1e-12)
    assert_close(gradient, slope, rtol=1e-9, atol=1e-11)
    exact, slope = value_and_gradient(ranking_plain, scores, labels, 20.0)
    rough = scores.float(), labels.float()
    value, gradient = value_and_gradient(ranking_loss, *rough, 20.0)
    assert_close(value.double(), exact, rtol=2e-6, atol=1e-5)
    assert_close(gradient.double(), slope, rtol=1e-4, atol=1e-5)


@table(
    """
    measure, x, y, expected
    COSINE | [3, 4] | [4, 3] | 0.96
    ANGLE | [1, 0] | [1, 0] | 1.0
    # 1 / i = -i
    ANGLE | [1, 0] | [0, 1] | 1.0
    # turned by -45 degrees: parts cancel
    ANGLE | [1, 0] | [0.70710678, 0.70710678] | 0.0
    # its maximum, not at X = Y
    ANGLE | [0.70710678, 0.70710678] | [1, 0] | 1.41421356
    """,
    COSINE=cosine,
    ANGLE=angle_reference,
)
def test_by_hand(measure, x, y, expected):
    first, second = (torch.tensor([v], dtype=torch.float64) for v in (x, y))
    assert measure(first, second).item() == approx(expected, abs=1e-6)


@parametrize("measure", [cosine, angle_reference])
@parametrize("size", [0.0, 1e-30, 1e-7])
def test_short_vectors_give_bounded_gradients(measure, size):
    short = torch.full((1, 4), size, requires_grad=True)
    other = torch.tensor([[1.0, -2.0, 0.5, 3.0]], requires_grad=True)
    for pair in ((short, other), (other, short), (short, short)):
        value = measure(*pair)
        assert value.item() == approx(0, abs=1e-5)
        for gradient in grad(value.sum(), (short, other), allow_unused=True):
            assert gradient is None or (gradient.abs() < 10).all()


def test_unit_keeps_tiny_vectors():
    vectors = torch.tensor([[[TINY, 0.0], [0.0, TINY / 2]]], dtype=torch.float64)
    assert unit(vectors).tolist() == [[[1.0, 0.0], [0.0, TINY / 2]]]


def test_softmax_by_hand():
    """Features 1, 0 and 0, 2 and their differences 1, 2: 0.1 + 2 * 0.4 + 0.5 + 2 * 0.6 and the bias 0.4."""
    classifier = Classifier(2)
    head = classifier.head
    head.weight.data = torch.tensor([[0.0] * 6, [0.1, 0.7, 0.9, 0.4, 0.5, 0.6]])
    head.bias.data = torch.tensor([0.0, 0.4])
    vectors = torch.tensor([[[1.0, 0], [0, 2]]]).expand(2, 2, 2)
    texts = torch.tensor([[0, 1], [0, 1]])
    loss = classifier(as_pairs(vectors, torch.tensor([1, 0]), texts))
    losses = math.log(1 + math.exp(-3)), math.log(1 + math.exp(3))
    assert loss.item() == approx(sum(losses) / 2)
