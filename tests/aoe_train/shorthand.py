"""Short names of what most tests use."""

from __future__ import annotations

import ast

import pytest

from pairkit import AuthError, BadReply, ConfigError, DataError, RateLimited, RemoteError

_ERRORS = {
    kind.__name__: kind
    for kind in (AuthError, BadReply, ConfigError, DataError, RateLimited, RemoteError)
}
approx = pytest.approx
cases = pytest.mark.parametrize
raises = pytest.raises
shared = pytest.fixture(scope="module")  # by all tests of a file


def table(names: str, text: str) -> pytest.MarkDecorator:
    """Cases, one a line; " | " parts cells, and a cell is an error, a literal of Python or plain text."""
    lines = [line.strip() for line in text.strip().splitlines()]
    rows = [[_cell(part) for part in line.split(" | ")] for line in lines if line[0] != "#"]
    return cases(names, rows)


def _cell(text: str) -> object:
    if text in _ERRORS:
        return _ERRORS[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def config_error(words: str) -> pytest.RaisesExc[ConfigError]:
    """Expect this error with these words."""
    return raises(ConfigError, match=words)


def data_error(words: str) -> pytest.RaisesExc[DataError]:
    """Expect this error with these words."""
    return raises(DataError, match=words)
