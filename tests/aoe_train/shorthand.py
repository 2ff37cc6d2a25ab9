"""Short names of what most tests use."""

from __future__ import annotations

import ast
import math
from typing import Any

import pytest

from pairkit import AuthError, BadReply, ConfigError, DataError, RateLimited, RemoteError

_NAMED = {"nan": math.nan} | {
    kind.__name__: kind
    for kind in (AuthError, BadReply, ConfigError, DataError, RateLimited, RemoteError)
}
approx = pytest.approx
cases = pytest.mark.parametrize
raises = pytest.raises
shared = pytest.fixture(scope="module")  # by all tests of a file


def table(columns: str, text: str, **named: object) -> pytest.MarkDecorator:
    """Cases, one a line of text."""
    return cases(columns, read_rows(text, **named))


def read_rows(text: str, **named: object) -> list[list[Any]]:
    """Rows of cells, parted by " | ": a name given here, an error, a literal of Python or plain text."""
    lines = [line.strip() for line in text.strip().splitlines()]
    cells = [line.split(" | ") for line in lines if line[0] != "#"]
    return [[_value(cell, _NAMED | named) for cell in row] for row in cells]


def _value(cell: str, named: dict[str, Any]) -> object:
    if cell in named:
        return named[cell]
    try:
        return ast.literal_eval(cell)
    except (ValueError, SyntaxError):
        return cell


def config_error(words: str) -> pytest.RaisesExc[ConfigError]:
    """Expect this error with these words."""
    return raises(ConfigError, match=words)


def data_error(words: str) -> pytest.RaisesExc[DataError]:
    """Expect this error with these words."""
    return raises(DataError, match=words)


def stderr(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed to stderr, in one line."""
    return " ".join(capsys.readouterr().err.split())
