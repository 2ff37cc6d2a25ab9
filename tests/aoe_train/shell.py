"""Runs `aoe` commands in this process."""

from __future__ import annotations

from typer.testing import CliRunner

from tests.conftest import command_line


def aoe(*arguments, stdin: str | bytes | None = None) -> str:
    """The stdout of a command; errors are raised."""
    done = CliRunner().invoke(
        command_line("aoe_train"), [str(argument) for argument in arguments], input=stdin
    )
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout
