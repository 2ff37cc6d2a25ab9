"""Expected errors, with the words that they contain."""

from __future__ import annotations

import pytest

from pairkit import ConfigError, DataError


def config_error(words: str) -> pytest.RaisesExc[ConfigError]:
    return pytest.raises(ConfigError, match=words)


def data_error(words: str) -> pytest.RaisesExc[DataError]:
    return pytest.raises(DataError, match=words)
