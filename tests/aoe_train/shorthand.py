"""Short names of what most tests use."""

from __future__ import annotations

import ast
import math
import shlex
from typing import Any

import pytest
from typer.testing import CliRunner

from pairkit import AuthError, BadReply, ConfigError, DataError, RateLimited, RemoteError
from tests.conftest import command_line
from tests.support.shorthand import config_error as config_error
from tests.support.shorthand import data_error as data_error

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


def stderr(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed to stderr, in one line."""
    return " ".join(capsys.readouterr().err.split())


def aoe(command: str, *arguments: object, stdin: str | bytes | None = None) -> str:
    """The stdout of a command line and further arguments; errors are raised."""
    words = [*shlex.split(command), *map(str, arguments)]
    done = CliRunner().invoke(command_line("aoe_train"), words, input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout
