"""The terminal: results on stdout, progress and errors on stderr, one exit code each way a run can end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from typer import Typer
from typer.core import TyperGroup

from pairkit.errors import PairkitError
from pairkit.printable import one_line, printable

INTERRUPTED = 130
BROKEN_PIPE = 141


class Ended(BaseException):
    """The run was ended from outside; typer has codes of its own for that, so it must not see the cause."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(code)


class _Console(Console):
    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(printable(part) if isinstance(part, str) else part for part in objects), **options)

    def on_broken_pipe(self) -> None:
        raise Ended(BROKEN_PIPE)


out = _Console(highlight=False, soft_wrap=True)
err = _Console(stderr=True, highlight=False, soft_wrap=True)


def progress(*, quiet: bool = False) -> Progress:
    """A progress display with ETA on stderr; it shows nothing when quiet or when stderr is no terminal."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=err,
        transient=False,
        disable=quiet or not err.is_terminal,
    )


def say(message: str, *, quiet: bool = False) -> None:
    """Tell the person something on stderr, unless they asked for quiet."""
    if not quiet:
        err.print(message, markup=False)


def print_json(result: Mapping[str, Any]) -> None:
    """Print one JSON object on one line of stdout, the last thing a command with `--json` prints.

    Its numbers must be finite: JSON knows no others, so that what is undefined is to be None.
    """
    sys.stdout.write(json.dumps(result, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


class Commands(TyperGroup):
    """Typer's group of commands, but for how a run ends from outside."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for.

        Raises:
            Ended: Ctrl-C, or nobody reads on.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Ended(INTERRUPTED) from None
        except BrokenPipeError:
            raise Ended(BROKEN_PIPE) from None


def application(name: str, purpose: str) -> Typer:
    """The application that the commands of one console script register with.

    Args:
        name: The script.
        purpose: One sentence, for its help.
    """
    return Typer(
        name=name,
        cls=Commands,
        help=purpose,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,  # a traceback with local variables could show a token
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="markdown",
    )


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "Examples:\n\n" + "\n\n".join(f"`{line}`" for line in lines)


def run(command: Callable[[], Any]) -> None:
    """Run a command line's entry point and exit: 0 done, 2 usage, 3 data, 4 remote, 130 interrupted.

    A bug (any exception outside the tree) is left to show its traceback and exits with 1.

    Args:
        command: A typer application of the class `Commands`.
    """
    try:
        command()
    except PairkitError as error:
        err.print(f"error: {one_line(str(error), None)}", markup=False, style="red")
        sys.exit(error.exit_code)
    except Ended as ended:
        if ended.code == INTERRUPTED:
            err.print("interrupted; run the same command again to go on", markup=False)
        # At once: a worker may still wait for a server, and a closed pipe can't be flushed. What is stored is
        # whole at any moment.
        os._exit(ended.code)
