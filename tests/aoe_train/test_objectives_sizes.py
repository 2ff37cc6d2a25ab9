"""The objective at several sizes: hand-worked, and beside sentence-transformers' MatryoshkaLoss."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from aoe_train.objectives.matryoshka import make_objective
from aoe_train.objectives.objective import Objective
from aoe_train.objectives.own import CustomObjective
from aoe_train.objectives.settings import PRESETS, ObjectiveSettings, Taus, Weights
from aoe_train.settings.training import TrainSettings
from pairkit.app.errors import ConfigError
from pairkit.app.settings import load_settings
from tests.aoe_train.test_objectives_mix import EVERYTHING, draw

quick = settings(max_examples=10, deadline=None)
seeds = st.integers(0, 10**6)


def wanted(preset: str = "cosent", **changes: Any) -> ObjectiveSettings:
    return PRESETS[preset].model_copy(update=changes)


def test_cosines_by_hand() -> None:
    """Alike in their first two numbers, at right angles as a whole; so the ranking holds only at size 2."""
    alike = [[1.0, 0, 0, 1], [1, 0, 0, -1]]
    apart = [[1.0, 0, 0, 0], [0, 1, 0, 0]]
    objective = make_objective(
        wanted(tau=Taus(cosine=1), dims=(4, 2), dim_weights=(1.0, 3.0)), dim=4, kind="binary"
    )
    found = objective(torch.tensor([alike, apart]), torch.tensor([1.0, 0.0]), torch.tensor([[0, 1], [2, 3]]))
    whole, cut = math.log(1 + 1), math.log(1 + math.exp(-1))
    assert {name: value.item() for name, value in found.items()} == pytest.approx(
        {"loss": whole + 3 * cut, "cosine": whole + 3 * cut, "loss_4": whole, "loss_2": cut}
    )


def test_the_angle_halves_what_is_left() -> None:
    """First numbers (1, 0) and (0, 1) are the complex numbers 1 and i, of measure |-1|; whole ones differ."""
    pairs = torch.tensor([[[1.0, 0, 0, 0], [0, 1, 0, 0]], [[1, 0, 0, 0], [1, 0, 5, 0]]])
    objective = make_objective(ObjectiveSettings(weights=Weights(angle=1), dims=(4, 2)), dim=4, kind="binary")
    found = objective(pairs, torch.tensor([1.0, 0.0]), torch.tensor([[0, 1], [2, 3]]))
    assert found["loss_2"].item() == pytest.approx(math.log(1 + math.exp(1 - 1)))
    # As a whole: z = (1, 0) beside w = (0, 1) gives 0; beside w = (1 + 5i, 0) it gives |1 - 5| / sqrt(26).
    assert found["loss_4"].item() == pytest.approx(math.log(1 + math.exp(4 / math.sqrt(26))))


@pytest.mark.parametrize(("preset", "kind"), EVERYTHING)
@quick
@given(seed=seeds)
def test_it_is_the_sum_of_the_objectives_of_cut_vectors(preset: str, kind: str, seed: int) -> None:
    vectors, labels, texts = draw(seed, kind)
    torch.manual_seed(0)
    whole = make_objective(
        wanted(preset, dims=(6, 2), dim_weights=(1.0, 0.5)), dim=6, kind=kind, label_range=(0, 5)
    )
    torch.manual_seed(0)
    parts = {
        size: Objective(wanted(preset), dim=size, kind=kind, label_range=(0, 5))(
            vectors[..., :size], labels, texts
        )
        for size in (6, 2)
    }
    found = whole(vectors, labels, texts)
    assert found["loss"].item() == pytest.approx((parts[6]["loss"] + parts[2]["loss"] / 2).item())
    for name, value in parts[6].items():
        assert found[name].item() == pytest.approx((value + parts[2][name] / 2).item())


class Model(nn.Module):
    """What MatryoshkaLoss asks of a model, over vectors that are there."""

    def get_embedding_dimension(self) -> int:
        return 8

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"sentence_embedding": features["vectors"]}


@pytest.mark.parametrize("loss", ["cosine", "ibn", "angle"])
@pytest.mark.parametrize("weights", [(), (1.0, 0.25, 3.0)])
def test_values_and_gradients_are_those_of_sentence_transformers(
    loss: str, weights: tuple[float, ...]
) -> None:
    from sentence_transformers.sentence_transformer import losses

    theirs = {
        "cosine": losses.CoSENTLoss,
        "ibn": losses.MultipleNegativesRankingLoss,
        "angle": losses.AnglELoss,
    }
    model = Model()
    matryoshka = losses.MatryoshkaLoss(
        model, theirs[loss](model, scale=20.0), [8, 4, 2], list(weights) or None
    )
    vectors = torch.randn(5, 2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    labels = torch.arange(5.0, dtype=torch.float64)
    mine, other = vectors.clone().requires_grad_(), vectors.clone().requires_grad_()
    columns = [{"vectors": other[:, 0]}, {"vectors": other[:, 1]}]
    expected = matryoshka(columns, labels)
    expected.backward()
    ours = make_objective(
        ObjectiveSettings(
            weights=Weights(**{loss: 1}), tau=Taus(**{loss: 0.05}), dims=(8, 4, 2), dim_weights=weights
        ),
        dim=8,
        kind="positive" if loss == "ibn" else "graded",
        label_range=(0, 4),
    )
    found = ours(mine, None if loss == "ibn" else labels, torch.arange(10).view(5, 2))["loss"]
    found.backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-9)
    assert mine.grad is not None
    assert other.grad is not None
    assert torch.allclose(mine.grad, other.grad, rtol=1e-7, atol=1e-10)


def test_without_sizes_it_is_the_objective_alone() -> None:
    assert type(make_objective(wanted(), dim=6, kind="binary")) is Objective
    assert (
        type(make_objective(wanted(), dim=6, kind="binary", own=lambda *_: torch.zeros(1))) is CustomObjective
    )


def test_a_loss_of_ones_own_is_given_the_first_numbers() -> None:
    seen = []

    class Mean(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(2.0))

        def forward(self, vectors: Tensor, labels: Tensor | None) -> Tensor:
            seen.append(vectors.shape[-1])
            return self.scale * vectors.sum()

    objective = make_objective(wanted("angle", dims=(6, 3)), dim=6, kind="single", own=Mean())
    found = objective(torch.ones(1, 2, 6), None, torch.zeros(1, 2, dtype=torch.long))
    assert seen == [6, 3]
    assert found["loss"].item() == 2 * (12 + 6)
    assert len([*objective.parameters()]) == len(objective.state_dict()) == 1


def test_a_softmax_has_weights_for_each_size() -> None:
    objective = make_objective(wanted("sbert", dims=(6, 2)), dim=6, kind="binary")
    assert sorted(weight.shape[-1] for name, weight in objective.named_parameters() if "weight" in name) == [
        3 * 2,
        3 * 6,
    ]


@pytest.mark.parametrize(
    ("preset", "dims", "message"),
    [
        ("cosent", (8, 4), "dims 8: this backbone's vectors have 6 numbers"),
        ("cosent", (4, 2), "6, the whole vector, is not among them"),
        ("angle", (6, 3), "dims 3: expected even sizes, as the angle halves"),
    ],
)
def test_sizes_that_cannot_be_had(preset: str, dims: tuple[int, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_objective(wanted(preset, dims=dims), dim=6, kind="binary")


def test_odd_sizes_are_for_what_needs_no_halves() -> None:
    make_objective(wanted("cosent", dims=(6, 3)), dim=6, kind="binary")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dims": (4, 4)}, "given twice among 4, 4"),
        ({"dims": (4, 2), "dim_weights": (1,)}, "found 1 for 2 dims"),
        ({"dims": (0,)}, "greater than or equal to 1"),
        ({"dims": (4,), "dim_weights": (0,)}, "greater than 0"),
        ({"dims": "4,x"}, "valid integer"),
    ],
)
def test_settings_that_mean_nothing(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(ObjectiveSettings, flags=given)


def test_a_command_line_has_commas() -> None:
    given = ["objective.dims=384,128", "objective.dim_weights=1, 0.5"]
    objective = load_settings(TrainSettings, assignments=given).objective
    assert (objective.dims, objective.dim_weights) == ((384, 128), (1.0, 0.5))
