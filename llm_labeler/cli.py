"""The `label` command: flags -> settings -> one call -> one summary. Heavy imports stay in the commands."""

from __future__ import annotations

# Importing a module of commands registers them.
from llm_labeler.commands import app, generate, work  # noqa: F401
from pairkit.app.terminal import run


def main() -> None:
    """Run the command line; see `pairkit.app.terminal.run` for the exit codes."""
    run(app)
