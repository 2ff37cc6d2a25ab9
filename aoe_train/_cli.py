"""The `aoe` command: flags -> settings -> one call -> one summary. Heavy imports stay inside the commands."""

from __future__ import annotations

from typing import Annotated

import typer

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
from pairkit import __version__
from pairkit.errors import ConfigError
from pairkit.terminal import run

# What each extra brings; `gis` alone does without.
_TRAIN = ("torch", "transformers", "tokenizers", "peft", "accelerate", "safetensors", "jaxtyping", "pyarrow")
_EXTRA_OF = {**dict.fromkeys(_TRAIN, "train"), "httpx2": "eval", "openai": "eval"}


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
        raise ConfigError(f"aoe needs {error.name}: pip install 'aoe-toolkit[{extra}]'") from error


@app.callback(invoke_without_command=True)
def _root(*, version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        typer.echo(f"aoe (aoe-toolkit {__version__})")
        raise typer.Exit
