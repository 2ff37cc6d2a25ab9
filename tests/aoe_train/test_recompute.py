"""Recomputed layers, under both names that releases of transformers have for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from aoe_train.model.backbones.recompute import recompute_argument, recompute_layers


class Older:
    """A model of an earlier release."""

    asked: Any = None

    def gradient_checkpointing_enable(self, options: dict[str, bool]) -> None:
        self.asked = ("older", options)


class Newer(Older):
    """A model of a later one, which has both."""

    def activation_checkpointing_enable(self, options: dict[str, bool]) -> None:
        self.asked = ("newer", options)


@pytest.mark.parametrize(("model", "name"), [(Older(), "older"), (Newer(), "newer")])
def test_a_model_is_asked_by_the_newest_name_it_has(model: Older, name: str) -> None:
    recompute_layers(model)
    assert model.asked == (name, {"use_reentrant": False})


def test_arguments_are_given_by_the_newest_name() -> None:
    @dataclass
    class Earlier:
        gradient_checkpointing: bool = False

    @dataclass
    class Later(Earlier):
        activation_checkpointing: bool = False

    assert recompute_argument(Earlier) == "gradient_checkpointing"
    assert recompute_argument(Later) == "activation_checkpointing"
