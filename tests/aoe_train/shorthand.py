"""Short names of what most tests use."""

from __future__ import annotations

import pytest

from pairkit import ConfigError, DataError

approx = pytest.approx
cases = pytest.mark.parametrize
raises = pytest.raises
shared = pytest.fixture(scope="module")  # by all tests of a file


def config_error(words: str) -> pytest.RaisesExc[ConfigError]:
    """Expect this error with these words."""
    return raises(ConfigError, match=words)


def data_error(words: str) -> pytest.RaisesExc[DataError]:
    """Expect this error with these words."""
    return raises(DataError, match=words)
