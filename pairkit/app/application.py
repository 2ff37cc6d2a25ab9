"""The command line of each package: its commands with help, version, completion, and details on request."""

from __future__ import annotations

import logging
from typing import Any

from typer import Exit, Option, Typer
from typer.core import TyperGroup

from pairkit.app.terminal import BROKEN_PIPE, INTERRUPTED, Ended, out, say


class Commands(TyperGroup):
    """Typer's group of commands, but for how a run ends from outside."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the arguments, and show help."""
        try:
            return super().make_context(*arguments, **options)
        except KeyboardInterrupt:
            raise Ended(INTERRUPTED) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Ended(INTERRUPTED) from None
        except BrokenPipeError:
            raise Ended(BROKEN_PIPE) from None


class _OnStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def tell_details(package: str) -> None:
    """Have what a package logs, and `pairkit` beneath it, told on stderr; else nobody is told."""
    for name in {package, "pairkit"}:
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.handlers = [_OnStderr()]


def application(name: str, purpose: str) -> Typer:
    """The application that the commands of one console script register with; it has `--version`."""

    def show_version(*, wanted: bool) -> None:
        if wanted:
            from pairkit.app.version import __version__

            out.print(f"{name} (aoe-toolkit {__version__})", markup=False)
            raise Exit

    option = Option(
        False,  # noqa: FBT003 - its default
        "--version",
        callback=lambda wanted: show_version(wanted=wanted),
        is_eager=True,
        metavar="",
        help="Show the version.",
    )

    def root(*, version: bool = option) -> None:
        """Each command begins here; `version` has ended the run."""

    app = Typer(
        name=name,
        cls=Commands,
        help=purpose,
        no_args_is_help=True,
        pretty_exceptions_enable=False,  # a traceback with local variables could show a token
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="markdown",
    )
    app.callback(help=purpose)(root)
    return app


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "Examples:\n\n" + "\n\n".join(f"`{line}`" for line in lines)
