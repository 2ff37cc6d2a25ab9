"""The application that the commands of `aoe` register with."""

from __future__ import annotations

import typer

from pairkit.terminal import Commands

app = typer.Typer(
    name="aoe",
    cls=Commands,
    help="Train text embeddings with angles in complex space, encode with them, evaluate and export them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
)


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "Examples:\n\n" + "\n\n".join(f"`{line}`" for line in lines)
