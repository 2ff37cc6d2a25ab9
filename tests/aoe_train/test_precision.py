"""What is told of a precision, by what this processor makes of it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from aoe_train.model import precision as _precision
from aoe_train.model.precision import choose_precision, product_time, slow_precision, training_note

SLOW, LIKE, FAST = 4.8, 1.1, 0.14  # times of fp32: of plain AVX-512, of no consequence, of AMX


@pytest.fixture
def takes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Called with how long bf16's products take, 1 being fp32's time."""
    return lambda times: monkeypatch.setattr(_precision, "product_time", lambda _: times)


@pytest.mark.parametrize(
    ("wanted", "device", "times", "told"),
    [
        ("bf16", "cpu", SLOW, "products take 4.8 times as long in bf16 as in fp32 .* fp32 is faster"),
        ("fp16", "cpu", SLOW, "4.8 times as long in fp16"),
        ("bf16", "cpu", LIKE, None),
        ("bf16", "cpu", FAST, None),
        ("auto", "cpu", SLOW, None),
        ("auto", "cpu", LIKE, None),
        (
            "auto",
            "cpu",
            FAST,
            "computes in fp32, .* products take 0.14 of the time in bf16 .*--precision bf16",
        ),
        ("fp32", "cpu", FAST, None),
        ("fp32", "cpu", SLOW, None),
        ("bf16", "cuda", SLOW, None),
        ("auto", "cuda", FAST, None),
    ],
)
def test_what_a_training_is_told(
    wanted: Any, device: str, times: float, told: str | None, takes: Any
) -> None:
    takes(times)
    found = training_note(wanted, torch.device(device))
    if told is None:
        assert found is None
    else:
        assert found is not None
        assert re.search(told, found)
    slow = slow_precision(wanted, torch.device(device))  # encoding is told of slow ones alone
    assert slow == (None if wanted == "auto" else found)


def test_auto_is_the_same_on_every_processor(takes: Any) -> None:
    takes(FAST)
    assert choose_precision("auto", torch.device("cpu")) == "fp32"


def test_the_processor_is_measured() -> None:
    threads = torch.get_num_threads()
    assert product_time(torch.float32) == pytest.approx(1, rel=0.9)
    assert product_time(torch.bfloat16) > 0
    assert torch.get_num_threads() == threads
