"""Distillation losses: by hand, against sentence-transformers, and refused settings."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional
from torch.testing import assert_close

from aoe_train.objectives.distillation import least_squares, principal_axes
from aoe_train.objectives.labelled_pairs import BatchTeachers
from aoe_train.objectives.objective import Objective, make_objective
from aoe_train.objectives.objective_checks import TeacherInfo, TeacherSample
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
from tests.support.shorthand import approx, config_error, parametrize, values

theirs = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
util = pytest.importorskip("sentence_transformers.util")

TEACHER = TeacherInfo(teacher_dim=3)


def drawn(seed, columns, dim=3):
    """Vectors of the model, of the teacher (size 3), and numbers of distinct texts."""
    generator = seeded(seed)
    own = random_vectors(generator, 5, columns, dim).requires_grad_()
    teacher = random_vectors(generator, 5, columns, 3)
    return own, teacher, torch.arange(5 * columns).view(5, columns)


def loss_of(
    part, kind, own, texts, teachers=TEACHER, *, teacher=None, scores=None, **more
):
    return Objective(
        only(part, **more),
        dim=own.shape[-1],
        kind=kind,
        label_range=(0.0, 1.0),
        teachers=teachers,
    ).double()(own, None, texts, BatchTeachers(teacher=teacher, scores=scores))["loss"]


def test_scores_of_all_pairs_by_hand():
    """Model's cosines [[1, 0], [0, 1]], teacher's [[0.6, 0.8], [1, 0]]."""
    own = torch.stack([torch.eye(2), torch.eye(2)], dim=1)
    teacher = torch.tensor([[[1.0, 0], [0.6, 0.8]], [[0.6, 0.8], [0.8, 0.6]]])
    # The second row's first text is the first row's second.
    for texts, squares in values("""
            [[0, 1], [2, 3]] | [0.4, 0.8, 1, 0.04]
            [[0, 1], [1, 3]] | [0.4, 0.8, 0.04]
            """):
        batch = own, torch.tensor(texts), TeacherInfo(teacher_dim=2)
        found = loss_of("score_distill", "positive", *batch, teacher=teacher)
        expected = sum(square**2 for square in squares) / len(squares)
        assert float(found) == approx(expected, abs=1e-6)


@quick
@given(seed=seeds, negatives=st.integers(1, 3), dot=st.booleans())
def test_margin_mse_equals_sentence_transformers(seed, negatives, dot):
    own, teacher, texts = drawn(seed, 2 + negatives)
    score = util.pairwise_dot_score if dot else util.pairwise_cos_sim
    anchor, *others = teacher.unbind(1)
    labels = torch.stack([score(anchor, other) for other in others], 1)
    peer = theirs.MarginMSELoss(None, similarity_fct=score)
    expected = peer.compute_loss_from_embeddings(list(own.unbind(1)), labels)
    for teachers, advice in (
        (TeacherInfo(teacher_dim=3, dot=dot), {"teacher": teacher}),
        (TeacherInfo(scores=True, dot=dot), {"scores": labels}),
    ):
        found = loss_of("margin_mse", "triplet", own, texts, teachers, **advice)
        equal_with_gradient(found, expected, own)


@quick
@given(
    seed=seeds,
    columns=st.integers(2, 4),
    form=st.sampled_from(["cosine", "mse"]),
)
def test_embed_distill_equals_sentence_transformers(seed, columns, form):
    own, teacher, texts = drawn(seed, columns)
    peer = theirs.EmbedDistillLoss(None, distance_metric=form)
    expected = peer.compute_loss_from_embeddings(
        list(own.unbind(1)), list(teacher.unbind(1))
    )
    found = loss_of(
        "embed_distill", "triplet", own, texts, teacher=teacher, embed_form=form
    )
    equal_with_gradient(found, expected, own)


def test_learned_map_equals_sentence_transformers_and_is_trained():
    own, teacher, texts = drawn(1, 2, dim=5)
    objective = Objective(
        only("embed_distill"), dim=5, kind="positive", teachers=TEACHER
    ).double()
    (weight,) = objective.parameters()
    peer = theirs.EmbedDistillLoss(None)
    peer.projection = torch.nn.Linear(5, 3, bias=False).double()
    peer.projection.weight.data.copy_(weight)
    expected = peer.compute_loss_from_embeddings(
        list(own.unbind(1)), list(teacher.unbind(1))
    )
    found = objective(own, None, texts, BatchTeachers(teacher=teacher))["loss"]
    equal_with_gradient(found, expected, own)
    found.backward()
    assert weight.grad.abs().sum() > 0


def test_learned_map_starts_at_least_squares():
    generator = seeded(0)
    own, there = (torch.randn(rows, 6, generator=generator) for rows in (400, 3))
    found = least_squares(TeacherSample(own, own @ there.T), 6)
    assert_close(found, there, rtol=0, atol=0.01)
    sample = TeacherSample(own, own[:, :4] @ there[:, :4].T)
    teachers = TeacherInfo(teacher_dim=3, sample=sample)
    (weight,) = Objective(
        only("embed_distill"), dim=4, kind="positive", teachers=teachers
    ).parameters()
    assert_close(weight.detach(), there[:, :4], rtol=0, atol=0.01)


def test_principal_axes_preserve_dot_products():
    generator = seeded(0)
    one, two = (torch.randn(*shape, generator=generator) for shape in ((50, 2), (2, 6)))
    flat = one @ two
    axes = principal_axes(flat)
    assert (axes.max(0).values == axes.abs().max(0).values).all()
    assert_close(axes.T @ axes, torch.eye(6), rtol=0, atol=1e-5)
    # Two numbers hold all dot products of what lies in a plane.
    turned = flat @ axes[:, :2]
    assert_close(turned @ turned.T, flat @ flat.T, rtol=0, atol=1e-4)
    assert (turned.square().sum(0).diff() < 0).all()
    assert_close(principal_axes(flat.flip(0))[:, :2], axes[:, :2], rtol=0, atol=1e-4)


@parametrize("part", ["margin_mse", "embed_distill", "score_distill"])
@quick
@given(seed=seeds)
def test_absent_negatives_do_not_count(part, seed):
    """Absent negatives have arbitrary vectors, here NaN."""
    own, teacher, texts = drawn(seed, 4)
    texts[0, 3] = ABSENT
    plain = loss_of(part, "triplet", own.detach(), texts, teacher=teacher)
    spoilt = own.detach().clone()
    for vectors in (spoilt, teacher):
        vectors[0, 3] = math.nan
    assert_close(loss_of(part, "triplet", spoilt, texts, teacher=teacher), plain)


@quick
@given(seed=seeds, kind=st.sampled_from(["single", "positive", "triplet"]))
def test_divergence_equals_torchs_own(seed, kind):
    """Row by row with `torch.nn.functional.kl_div`, leaving out a text's similarity to itself."""
    own, teacher, texts = drawn(seed, 3 if kind == "triplet" else 2)
    if kind == "single":
        own, teacher, texts = (
            each[:, :1].expand_as(each) for each in (own, teacher, texts)
        )
    found = loss_of("score_distill", kind, own, texts, teacher=teacher, score_form="kl")
    rows = []
    for anchor in range(len(own)):
        others = [(row, column) for column in range(1, own.shape[1]) for row in range(len(own))
                  if kind != "single" or row != anchor]  # fmt: skip
        unit = (functional.normalize(side, dim=-1) for side in (own, teacher))
        ours, theirs = (
            torch.stack([side[anchor, 0] @ side[place] / 0.05 for place in others])
            for side in unit
        )
        ours, theirs = ours.log_softmax(0), theirs.log_softmax(0)
        rows.append(functional.kl_div(ours, theirs, log_target=True, reduction="sum"))
    equal_with_gradient(found, torch.stack(rows).mean(), own)


def test_divergence_needs_vectors():
    with config_error("expected its vectors"):
        make_objective(only("score_distill", score_form="kl"), dim=3, kind="positive",
                       teachers=TeacherInfo(scores=True))  # fmt: skip


def test_ranking_by_teacher_equals_ranking_by_labels():
    own, _, texts = drawn(5, 2)
    scores = torch.rand(5, 1, dtype=torch.float64)
    how = {"tau": Taus(score_distill=0.1), "score_form": "ranking", "scores": scores}
    teachers = TeacherInfo(scores=True)
    found = loss_of("score_distill", "positive", own, texts, teachers, **how)
    wanted = only("cosent", tau=Taus(cosent=0.1))
    graded = Objective(wanted, dim=3, kind="graded", label_range=(0.0, 1.0))
    assert_close(found, graded(own, scores[:, 0], texts)["loss"])
