"""The `label` command: flags -> settings -> one call -> one summary. Heavy imports stay in the commands."""

from __future__ import annotations

from typing import Annotated

import typer

# Importing a module of commands registers them.
from llm_labeler._commands import generate, work  # noqa: F401
from llm_labeler._commands.app import app
from pairkit import __version__
from pairkit.errors import ConfigError
from pairkit.terminal import run

# What each extra brings; `gis` alone does without.
_EXTRA_OF = {
    "httpx2": "label",
    "openai": "label",
    "json_repair": "label",
    "torch": "train",
    "transformers": "train",
    "tokenizers": "train",
}


def main() -> None:
    """Run the command line; see `pairkit.terminal.run` for the exit codes."""
    run(_commands)


def _commands() -> None:
    try:
        app()
    except ModuleNotFoundError as error:
        extra = _EXTRA_OF.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        raise ConfigError(f"label needs {error.name} here: pip install 'aoe-toolkit[{extra}]'") from error


@app.callback(invoke_without_command=True)
def _root(*, version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        typer.echo(f"label (aoe-toolkit {__version__})")
        raise typer.Exit
