"""A short run of `benchmarks/label_fuzz.py`."""

import pytest

from benchmarks.label_fuzz import fuzz


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_answers_are_parsed(seed):
    outcome = fuzz(300, seed)
    assert outcome.faults == []
    assert outcome.sentences > 80


@pytest.mark.slow
def test_many_mutated_answers_are_parsed():
    assert fuzz(50_000, 3).faults == []
