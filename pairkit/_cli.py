"""The `pairs` command: flags -> keyword arguments of the face -> what it says. Heavy imports come later."""

from __future__ import annotations

# Importing a module of commands registers them, in this order.
from pairkit._commands import look, make, people  # noqa: F401
from pairkit._commands.options import app
from pairkit.terminal import run


def main() -> None:
    """Run the command line; see `pairkit.terminal.run` for the exit codes."""
    run(app)
