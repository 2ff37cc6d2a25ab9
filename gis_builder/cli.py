"""The `gis` command: flags -> settings -> one call -> one summary. Heavy imports stay inside the commands."""

from __future__ import annotations

# Importing a module of commands registers them, in this order.
from gis_builder.commands import builds, crawls, hours, suggests  # noqa: F401
from gis_builder.commands.app import app
from pairkit.app.terminal import run


def main() -> None:
    """Run the command line; see `pairkit.app.terminal.run` for the exit codes."""
    run(app)
