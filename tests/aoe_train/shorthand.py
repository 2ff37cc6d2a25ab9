"""Short names of what most tests use."""

from __future__ import annotations

import shlex

import pytest
from typer.testing import CliRunner

from tests.conftest import command_line


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
