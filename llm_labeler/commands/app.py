"""The application that the commands of `label` register with."""

from __future__ import annotations

import typer

from pairkit.terminal import Commands

app = typer.Typer(
    name="label",
    cls=Commands,
    help="Make pairs of sentences with the same and with opposite meaning from unlabelled text, with LLMs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
)


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "Examples:\n\n" + "\n\n".join(f"`{line}`" for line in lines)
