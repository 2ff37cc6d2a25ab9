"""`python -m papers`, from a checkout: all commands of `papers.commands`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from pairkit.app.terminal import run
from papers import commands
from papers.app import app


def load_commands() -> None:
    """Have all commands registered."""
    for module in iter_modules(commands.__path__):
        import_module(f"{commands.__name__}.{module.name}")


def main() -> None:
    """Run the command line; see `pairkit.app.terminal.run` for the exit codes."""
    load_commands()
    run(app)


if __name__ == "__main__":
    main()
