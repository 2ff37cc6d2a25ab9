"""The `pairs` command: flags -> keyword arguments of the face -> what it says. Heavy imports come later."""

from __future__ import annotations

from pairkit.app.terminal import run

# Importing a module of commands registers them, in this order.
from pairkit.commands import look, make, people  # noqa: F401
from pairkit.commands.options import app


def main() -> None:
    """Run the command line; see `pairkit.app.terminal.run` for the exit codes."""
    run(app)
