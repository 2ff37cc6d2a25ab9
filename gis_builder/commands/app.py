"""The application that the commands of `gis` register with."""

from __future__ import annotations

import typer

from pairkit.terminal import Commands

app = typer.Typer(
    name="gis",
    cls=Commands,
    help="From duplicate GitHub issues to a leak-free dataset of text pairs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with local variables could show a token
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
)


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "Examples:\n\n" + "\n\n".join(f"`{line}`" for line in lines)
