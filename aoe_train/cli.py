"""The `aoe` command: flags -> settings -> one call -> one summary. Heavy imports stay inside the commands."""

from __future__ import annotations

# isort: off
# Importing a module of commands registers them, in this order.
from aoe_train.commands import train, evaluate, encode, index, search, duplicates, export, push  # noqa: F401
from aoe_train.commands import serve, mine, distill  # noqa: F401

# isort: on
from aoe_train.commands.app import app
from pairkit.app.terminal import run


def main() -> None:
    """Run the command line; see `pairkit.app.terminal.run` for the exit codes."""
    run(app)
