"""The `label` command: flags -> settings -> one call -> one summary. Heavy imports stay in the commands."""

from __future__ import annotations

# Importing a module of commands registers them.
from llm_labeler._commands import app, generate, work  # noqa: F401
from pairkit.terminal import run


def main() -> None:
    """Run the command line; see `pairkit.terminal.run` for the exit codes."""
    run(app)
