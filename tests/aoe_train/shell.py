"""Runs `aoe` commands in this process."""

from __future__ import annotations

from typer.testing import CliRunner

from aoe_train.api.cli import app


def aoe(*arguments: object, stdin: str | bytes | None = None) -> str:
    """The stdout of a command; errors are raised."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout
