"""The `aoe` command: flags -> settings -> one call -> one summary. Heavy imports stay inside the commands."""

from __future__ import annotations

# Importing a module of commands registers them.
from aoe_train._commands import (  # noqa: F401
    convert,
    encode,
    evaluate,
    export,
    figures,
    pretrain,
    push,
    reproduce,
    train,
)
from aoe_train._commands.app import app
from pairkit.terminal import run


def main() -> None:
    """Run the command line; see `pairkit.terminal.run` for the exit codes."""
    run(app)
