"""Expected errors, with the words that they contain."""

import pytest

from pairkit import ConfigError, DataError, RemoteError


def config_error(words):
    return pytest.raises(ConfigError, match=words)


def data_error(words):
    return pytest.raises(DataError, match=words)


def remote_error(words):
    return pytest.raises(RemoteError, match=words)
