"""Texts that repeat one unit take linear time in every parser of `aoe`.

`benchmarks/hostile_texts.py` searches more units; this is its small twin.
"""

from __future__ import annotations

import pytest

from benchmarks.aoe_parsers import AOE, SIGNS
from benchmarks.hostile_texts import MARKUP
from tests.support.linear import assert_linear, repeated

UNITS = [*SIGNS[::2], *MARKUP[::20], "[CLS]##", "\r\n\u0301", "a/..", "{text} "]


@pytest.mark.parametrize("name", AOE)
def test_repetitions_take_linear_time(name: str) -> None:
    parse = AOE[name]()
    for unit in UNITS:
        assert_linear(parse, repeated(unit))
