"""What is told of a precision that a processor only emulates."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from aoe_train._precision import cpu_has_bf16, slow_precision


@pytest.mark.parametrize(
    ("wanted", "device", "has_bf16", "told"),
    [
        ("bf16", "cpu", False, True),
        ("bf16", "cpu", True, False),
        ("auto", "cpu", False, False),
        ("fp32", "cpu", False, False),
        ("bf16", "cuda", False, False),
    ],
)
def test_emulated_bf16_is_told(wanted: Any, device: str, *, has_bf16: bool, told: bool) -> None:
    found = slow_precision(wanted, torch.device(device), has_bf16=has_bf16)
    assert (found is not None and "--precision fp32" in found) == told


def test_the_processor_can_be_asked() -> None:
    assert cpu_has_bf16() in (True, False)
