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

from pairkit.errors import PairkitError

INTERRUPTED = 130
BROKEN_PIPE = 141

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


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
    """Print one JSON object on one line of stdout, the last thing a command with `--json` prints."""
    sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def run(command: Callable[[], Any]) -> None:
    """Run a command line's entry point and exit: 0 done, 2 usage, 3 data, 4 remote, 130 interrupted.

    A bug (any exception outside the tree) is left to show its traceback and exits with 1.
    """
    try:
        command()
    except PairkitError as error:
        err.print(f"error: {error}", markup=False, style="red")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        err.print("interrupted; run the same command again to go on", markup=False)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the last flush can't fail
        sys.exit(BROKEN_PIPE)
