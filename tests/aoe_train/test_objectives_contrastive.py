"""In-batch losses with and without a guide: by hand, in loops, and against sentence-transformers."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from aoe_train.objectives.contrastive import (
    ExtraCandidates,
    Guide,
    contrastive_loss,
    false_negatives,
)
from aoe_train.objectives.kinds import TeacherInfo
from aoe_train.objectives.labelled_pairs import BatchTeachers, unit
from aoe_train.objectives.objective import Objective
from aoe_train.objectives.objective_settings import Taus
from aoe_train.objectives.training_rows import ABSENT
from tests.aoe_train.test_objectives_mix import only

quick = settings(max_examples=25)
seeds = st.integers(0, 10**6)


def draw(seed: int, rows: int = 6, dim: int = 5, distinct: int = 7) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A batch with repeated texts; equal texts have equal vectors."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(distinct, dim, generator=generator, dtype=torch.float64)
    texts = torch.randint(distinct, (rows, 2), generator=generator)
    positive = torch.rand(rows, generator=generator) < 0.6
    return table[texts[:, 0]], table[texts[:, 1]], texts, positive


def plain(anchors, candidates, numbers, positive, tau, usable, duplicates="exclude") -> float:
    """The loss in plain loops; `numbers` are the (anchor, candidate) texts of each row."""
    together = {frozenset(pair) for pair, good in zip(numbers, positive, strict=True) if good}
    losses = []
    for i, anchor in enumerate(anchors):
        if not positive[i]:
            continue
        partners, total = [], 0.0
        for j, other in enumerate(candidates):
            similarity = math.exp(anchor @ other / np.linalg.norm(anchor) / np.linalg.norm(other) / tau)
            texts = (numbers[i][0], numbers[j][1])
            is_copy = texts[0] == texts[1] or frozenset(texts) in together
            if i == j or (usable[j] and is_copy and duplicates == "positive"):
                partners.append(similarity)
            if i == j or (usable[j] and not (is_copy and duplicates == "exclude")):
                total += similarity
        losses += [-math.log(similarity / total) for similarity in partners]
    return sum(losses) / max(len(losses), 1)


@pytest.mark.parametrize(
    ("texts", "positive", "expected"),
    [
        # 0-1 and 0-2 share an anchor, 3-1 shares a partner, 4-0 has that anchor second, 0-5 is labelled "no".
        (
            [[0, 1], [0, 2], [3, 1], [4, 0], [0, 5]],
            [1, 1, 1, 1, 0],
            [  # candidates 1, 2, 1, 0, 5
                [1, 1, 1, 1, 0],  # 0: both its partners, the copy of one, itself
                [1, 1, 1, 1, 0],
                [1, 0, 1, 0, 0],  # 3: its partner and the copy
                [0, 0, 0, 1, 0],  # 4
                [1, 1, 1, 1, 0],  # 0 again; being labelled "no", 5 stays a negative
            ],
        ),
        # Rows 0-1 and 2-3; then a negative of each: 4 and 3 (the second row's own partner), and 2, the
        # second anchor itself, and one that the second row lacks.
        (
            [[0, 1], [2, 3], [0, 4], [2, 3], [0, 2], [2, ABSENT]],
            [1, 1],
            [[1, 0, 0, 0, 0, 1], [0, 1, 0, 1, 1, 1]],
        ),
    ],
)
def test_false_negatives_by_hand(texts, positive, expected):
    found = false_negatives(torch.tensor(texts), torch.tensor(positive, dtype=torch.bool))
    assert found.int().tolist() == expected


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
    assert contrastive_loss(*batch).item() == pytest.approx(whole)
    assert contrastive_loss(*batch, hard_negatives=False).item() == pytest.approx(some)
    assert contrastive_loss(*batch, symmetric=True).item() == pytest.approx((whole + back) / 2)
    for duplicates in ("positive", "negative"):
        for usable, hard_negatives in ((everyone, True), (flags, False)):
            expected = plain(a, b, numbers, flags, tau, usable, duplicates)
            found = contrastive_loss(*batch, hard_negatives=hard_negatives, duplicates=duplicates)
            assert found.item() == pytest.approx(expected)


@pytest.mark.parametrize("duplicates", ["exclude", "positive", "negative"])
def test_without_positives_loss_and_gradient_are_zero(duplicates):
    first, second, texts, positive = draw(0)
    none = torch.zeros_like(positive)
    value = contrastive_loss(first.requires_grad_(), second, texts, none, 0.05, duplicates=duplicates)
    value.backward()
    assert value == 0
    assert torch.equal(first.grad, torch.zeros_like(first))


theirs = pytest.importorskip("sentence_transformers.sentence_transformer.losses")


def test_equal_texts_are_not_extra_candidates():
    """Rows 0 and 1 share their anchor, rows 1 and 2 their positive, so there are no negatives."""
    vectors = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0))
    texts = torch.tensor([[0, 1], [0, 2], [3, 2]])
    positive = torch.ones(3, dtype=torch.bool)
    every = ExtraCandidates(anchors=True, positives=True)
    for two in (slice(2), slice(1, 3)):
        assert contrastive_loss(*vectors[two].unbind(1), texts[two], positive[two], 0.5, every).item() == 0


def drawn(seed: int, negatives: int, rows: int = 6) -> tuple[Tensor, Tensor]:
    """The model's and the guide's vectors (row, column, dim) of distinct texts."""
    generator = torch.Generator().manual_seed(seed)
    shape = rows, 2 + negatives
    return (
        torch.randn(*shape, 5, generator=generator, dtype=torch.float64),
        torch.randn(*shape, 3, generator=generator, dtype=torch.float64),
    )


@quick
@given(
    seed=st.integers(0, 10**6),
    negatives=st.integers(0, 3),
    margin=st.sampled_from([0.0, 0.1, 0.5]),  # below 0 theirs can filter the positive itself
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
    peer.similarity_fct, peer.cross_entropy_loss = (
        torch.nn.CosineSimilarity(dim=-1),
        torch.nn.CrossEntropyLoss(),
    )
    peer.temperature, peer.margin, peer.margin_strategy = 0.07, margin, strategy
    peer.contrast_anchors, peer.contrast_positives = anchors, positives
    peer.gather_across_devices, peer.show_progress_bar, peer.mini_batch_size = False, False, 4
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
    texts = torch.arange(vectors.shape[0] * vectors.shape[1]).view(vectors.shape[:2])
    found = objective(vectors, None, texts, BatchTeachers(guide=guide))["loss"]
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    (ours,), (peers,) = (torch.autograd.grad(loss, vectors) for loss in (found, expected))
    torch.testing.assert_close(ours, peers, rtol=1e-10, atol=1e-12)


@quick
@given(seed=st.integers(0, 10**6), margin=st.sampled_from([0.0, 0.2]))
def test_guide_filters_both_directions(seed, margin):
    """The backward direction is the loss of swapped columns with the same thresholds."""
    vectors, told = drawn(seed, 0)
    texts = torch.arange(12).view(6, 2)
    positive = torch.ones(6, dtype=torch.bool)
    first, second = unit(told[:, 0]), unit(told[:, 1])
    there = ExtraCandidates(guide=Guide(first, second, margin, "absolute"))
    back = ExtraCandidates(guide=Guide(second, first, margin, "absolute"))
    sides = vectors[:, 0], vectors[:, 1]
    both = contrastive_loss(*sides, texts, positive, 0.1, there, symmetric=True)
    one = contrastive_loss(*sides, texts, positive, 0.1, there)
    other = contrastive_loss(*sides[::-1], texts.flip(1), positive, 0.1, back)
    torch.testing.assert_close(both, (one + other) / 2)
