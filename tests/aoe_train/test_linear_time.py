"""Texts of one unit, over and over: 65,536 characters take little CPU time, in every parser of `aoe`.

`benchmarks/hostile_texts.py` searches more units; this is its small twin.
"""

from __future__ import annotations

import pytest

from benchmarks.aoe_parsers import AOE, SIGNS
from benchmarks.hostile_texts import LARGE, MARKUP, repeated, seconds

UNITS = [*SIGNS[::2], *MARKUP[::20], "[CLS]##", "\r\n\u0301", "a/..", "{text} "]
MOST_CPU_SECONDS = 6.0  # what takes a tenth of a second, on a machine that is very busy


@pytest.mark.parametrize("name", AOE)
def test_no_repetition_takes_long(name: str) -> None:
    parse = AOE[name]()
    for unit in UNITS:
        assert seconds(parse, repeated(unit, LARGE)) < MOST_CPU_SECONDS, repr(unit)
