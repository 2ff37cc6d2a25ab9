"""Objectives over sizes and layers: by hand, and against sentence-transformers."""

import math
import random

import numpy as np
import torch
from hypothesis import given, settings
from torch import nn

from aoe_train.objectives.objective import (
    LayerwiseObjective,
    Objective,
    divergence,
    make_objective,
)
from aoe_train.objectives.objective_settings import PRESETS, ObjectiveSettings, Taus
from tests.aoe_train.test_objectives_mix import EVERYTHING, draw, only, seeds
from tests.aoe_train.tiny import load, save_bert
from tests.support.shorthand import approx, config_error, parametrize, raises, table

TEXTS = [
    ["a cat is playing", "the dog is eating"],
    ["a red car", "a blue car"],
    ["the boat", "an error"],
]
LABELS = [0.1, 0.9, 0.3]


class Sum(nn.Module):
    """The sum of all numbers as a loss."""

    def forward(self, vectors, *_):
        return {"loss": vectors.sum(), "part": vectors.sum()}


@table(
    """
    given, first, fourth
    falling | 1 | FALLING
    equal | 1 | 1
    (2.0, 0.5) | 2 | 0.5
    """,
    FALLING=1 / (1 + math.log(4)),
)
def test_layers_by_hand(given, first, fourth):
    """Weighted sums 2 and 6 of layers 1 and 4, and 10 of the last."""
    vectors = torch.tensor([1.0, 3, 5]).view(1, 1, 3, 1).expand(1, 2, 3, 1)
    settings = ObjectiveSettings(layers=(1, 4), layer_weights=given)
    found = LayerwiseObjective(Sum(), settings, [1, 4])(
        vectors, None, torch.zeros(1, 2)
    )
    assert found["loss"].item() == approx(10 + (2 * first + 6 * fourth) / 2)
    told = {name: value.item() for name, value in found.items() if name != "loss"}
    assert told == {"part": 10, "layer_1": 2, "layer_4": 6}
    with config_error("found 1 for the layers 2, 3"):
        too_few = ObjectiveSettings(layers=(2, 3), layer_weights=(1.0,))
        LayerwiseObjective(Sum(), too_few, (2, 3))


def test_divergence_by_hand():
    """From (0, 0), softmax (1/2, 1/2), to (tau ln 3, 0), softmax (3/4, 1/4); absent texts don't count."""
    tau = 0.5
    wanted = torch.tensor([[[tau * math.log(3), 0.0], [7.0, 8.0]]])
    found = divergence(torch.zeros(1, 2, 2), wanted, torch.tensor([[True, False]]), tau)
    assert found.item() == approx(tau * (0.75 * math.log(1.5) + 0.25 * math.log(0.5)))


@parametrize("dims", [(), (32, 8)])
@parametrize("align", [0.0, 0.7])
def test_layers_equal_sentence_transformers(dims, align, tmp_path, monkeypatch):
    """With one earlier layer; for several, theirs sums the divergences and ours averages them."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.modules import Pooling

    source = save_bert(tmp_path / "bert", layers=3, dropout=0)
    theirs = SentenceTransformer(
        modules=[Transformer(str(source)), Pooling(32, "mean")]
    )
    inner = losses.CoSENTLoss(theirs, scale=20.0)
    options = {"kl_div_weight": align, "kl_temperature": 0.3, "layer_weighting": "log"}
    loss = losses.AdaptiveLayerLoss(theirs, inner, **options)
    if dims:
        loss = losses.Matryoshka2dLoss(
            theirs, inner, [*dims], n_dims_per_step=-1, **options
        )
    monkeypatch.setattr(random, "sample", lambda *_: [2])  # the layer that they draw
    columns = [theirs.preprocess([row[column] for row in TEXTS]) for column in (0, 1)]
    expected = loss(columns, torch.tensor(LABELS))
    expected.backward()

    ours = load(source, pooling="avg")
    settings = only(
        "cosent",
        tau=Taus(cosent=0.05),
        dims=dims,
        layers=(2,),
        layer_weights=(1 / (1 + math.log(3)),),  # they count the embeddings as a layer
        align=align,
    )
    objective = make_objective(
        settings, dim=32, kind="graded", label_range=(0, 1), layers=(2,)
    )
    batch = ours.tokens([text for row in TEXTS for text in row]).batch(np.arange(6))
    vectors = ours.model(batch["input_ids"], batch["lengths"], layers=(2,))
    found = objective(
        vectors.view(3, 2, 2, 32), torch.tensor(LABELS), torch.arange(6).view(3, 2)
    )
    found["loss"].backward()
    assert found["loss"].item() == approx(expected.item(), rel=1e-5)
    models = (ours.model.backbone, theirs[0].auto_model)
    mine, other = (model.encoder.layer[0].output.dense.weight.grad for model in models)
    assert torch.allclose(mine, other, rtol=1e-3, atol=1e-5)


@table(
    """
    given, message
    {'layers': (2, 2)} | a duplicate in 2, 2
    {'align': 1} | align: has no effect without layers
    {'layer_weights': 'equal'} | layer_weights: has no effect without layers
    {'dims': (4, 4)} | a duplicate in 4, 4
    {'dims': (4, 2), 'dim_weights': (1,)} | found 1 for 2 dims
    """,
)
def test_invalid_settings_are_refused(given, message):
    with raises(ValueError, match=message):
        ObjectiveSettings(**given)


def wanted(preset="cosent", **changes):
    return PRESETS[preset].model_copy(update=changes)


@parametrize("preset, kind", EVERYTHING)
@settings(max_examples=10)
@given(seed=seeds)
def test_sum_of_objectives_of_truncated_vectors(preset, kind, seed):
    vectors, labels, texts = draw(seed, kind)
    how = {"kind": kind, "label_range": (0, 5)}
    torch.manual_seed(0)
    found = make_objective(
        wanted(preset, dims=(6, 2), dim_weights=(1.0, 0.5)), dim=6, **how
    )(vectors, labels, texts)
    torch.manual_seed(0)
    whole, cut = (
        Objective(wanted(preset), dim=size, **how)(vectors[..., :size], labels, texts)
        for size in (6, 2)
    )
    for name, value in whole.items():
        assert found[name].item() == approx((value + cut[name] / 2).item())
    for size, parts in ((6, whole), (2, cut)):
        assert found[f"loss_{size}"].item() == approx(parts["loss"].item())


def test_custom_loss_gets_truncated_vectors():
    seen = []

    class Scaled(nn.Linear):
        def forward(self, vectors, labels):
            seen.append(vectors.shape[-1])
            return self.weight * vectors.sum()

    loss = Scaled(1, 1, bias=False)
    objective = make_objective(
        wanted("angle", dims=(6, 3)), dim=6, kind="single", custom_loss=loss
    )
    found = objective(torch.ones(1, 2, 6), None, torch.zeros(1, 2, dtype=torch.long))
    assert seen == [6, 3]
    assert found["loss"].item() == approx((12 + 6) * loss.weight.item())
    assert len([*objective.parameters()]) == len(objective.state_dict()) == 1


def test_each_size_has_its_own_weights():
    objective = make_objective(wanted("sbert", dims=(6, 2)), dim=6, kind="binary")
    assert {
        weight.shape[-1]
        for name, weight in objective.named_parameters()
        if "weight" in name
    } == {3 * 2, 3 * 6}


@table(
    """
    preset, dims, message
    cosent | (8, 4) | dims 8: this backbone's vectors have 6 numbers
    cosent | (4, 2) | dims: lacks the full size 6
    angle | (6, 3) | angle: found an odd embedding size 3
    """,
)
def test_invalid_dims_are_refused(preset, dims, message):
    with config_error(message):
        make_objective(wanted(preset, dims=dims), dim=6, kind="binary")
    # Which needs no halves.
    make_objective(wanted(dims=(6, 3)), dim=6, kind="binary")
