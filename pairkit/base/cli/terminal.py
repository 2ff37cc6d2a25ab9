"""Output: results on stdout, progress and errors on stderr, and the exit codes."""

from __future__ import annotations

import errno
import io
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from json import dumps
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console

from pairkit.base.errors import ConfigError, PairkitError, shell, spoken
from pairkit.base.extras import can_run, missing
from pairkit.base.printable import escape_surrogates, one_line, printable, without_keys

INTERRUPTED = 130
BROKEN_PIPE = 141
_NO_EDGE = 1 << 16  # columns
# An argument that begins like a flag, but isn't one.
_DASHED = re.compile(r"-(?!\w$|-[a-z-]*$)")

Command: TypeAlias = str | Sequence[str | Path]
"""A command line, or its words, the first two of which name the command."""

# The path can't be used, whatever it was to be used for.
_PATH_ERRORS = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EROFS)


class Ended(BaseException):
    """The run was ended by a signal; a BaseException, as typer would use other exit codes."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(code)


class CommandResult:
    """A result that a command prints.

    Notes go to stderr, tables and lines to stdout, or `to_dict()` as JSON; next steps follow on stderr.
    """

    def notes(self) -> Sequence[str]:
        """Lines before the tables."""
        return ()

    def tables(self) -> Sequence[object]:
        """Texts, or tables that rich prints."""
        raise NotImplementedError

    def lines(self) -> Sequence[str]:
        """Lines below the tables."""
        return ()

    def next_steps(self) -> Sequence[tuple[str, Command]]:
        """Commands that may follow, each with its purpose."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON object."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise the error that ends the command, if the result has a fault."""


class _Console(Console):
    """Prints texts as they are, in which rich would replace `[red]` and `:bug:`."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(
            stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True
        )

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(
            *(printable(part) if isinstance(part, str) else part for part in objects),
            **options,
        )

    @property
    def table_width(self) -> int:
        """Width for tables: that of the terminal, unlimited in files."""
        return self.width if self.is_terminal or "COLUMNS" in os.environ else _NO_EDGE

    def on_broken_pipe(self) -> None:
        raise Ended(BROKEN_PIPE)


out = _Console()
err = _Console(stderr=True)


def say(message: str, *, quiet: bool = False) -> None:
    """Print a message on stderr, unless `quiet`."""
    if not quiet:
        err.print(without_keys(spoken(message)))


def next_step(why: str, command: Command, *, quiet: bool) -> None:
    """Print a next command on stderr, if its packages are installed."""
    if quiet:
        return
    if not isinstance(command, str):
        if not can_run(command):
            return
        words = list(map(str, command))
        # The first argument after the command's name may be a file.
        if _DASHED.match(" ".join(words[2:3])):
            words += ["--", words.pop(2)]
        command = shlex.join(words)
    err.print(f"next: {why}\n  {command}")


def show(
    result: object, *, json: bool, quiet: bool, given: Mapping[str, Any] = {}
) -> None:
    """Print a result of a command with the arguments `given`; of a list, a line for each item."""
    if not isinstance(result, CommandResult):
        out.print("\n".join(map(str, result)) if isinstance(result, list) else result)
        return
    for note in result.notes():
        say(note, quiet=quiet)
    if json:
        print_json(result.to_dict())
        return
    for place, table in enumerate(result.tables()):
        if place:
            out.print()
        out.print(table)
    for line in result.lines():
        out.print(line)
    for why, step in result.next_steps():
        next_step(why, with_input_flags(step, given), quiet=quiet)


def with_input_flags(step: Command, given: Mapping[str, Any]) -> Command:
    """A next command with the input flags of this one, if both read the same source."""
    if isinstance(step, str):
        return step
    data = given.get("source", given.get("data"))
    sources = data.values() if isinstance(data, Mapping) else [data]
    if set(map(str, sources)).isdisjoint(map(str, step)):
        return step
    columns = (given.get("columns") or {}).items()
    names = ["columns", "encoding"]
    if step[0] == "pairs" or step[1] in ("train", "evaluate"):
        names += ["labels", "label_range", "bad_rows"]
    else:
        # It reads only the first text of each row.
        columns = [
            ("text", column)
            for role, column in columns
            if role in ("text", "text1", "anchor")
        ]
    values = {**given, "columns": ",".join(map("=".join, columns))}
    flags = []
    for name in names:
        value = values.get(name)
        if value and value != "error":
            flags += [f"--{name.replace('_', '-')}", value]
    return [*step, *flags]


def print_json(result: Mapping[str, Any]) -> None:
    """Print a JSON object on one line of stdout; numbers must be finite."""
    # There is no stdout if the caller closed it.
    encoding = getattr(sys.stdout, "encoding", None) or ""
    is_unicode = "utf" in encoding.lower()
    text = dumps(result, ensure_ascii=not is_unicode, allow_nan=False)
    print(escape_surrogates(text), flush=True)


def run(command: Callable[[], Any]) -> None:
    """Run a command line and exit: 0 done, 1 a bug, 2 usage, 3 data, 4 remote, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for locales without UTF-8
    # A closed standard input is an empty one.
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BytesIO())
    try:
        with shell():
            _run_or_exit(command)
    except (Ended, KeyboardInterrupt) as ended:
        code = ended.code if isinstance(ended, Ended) else INTERRUPTED
        if code == INTERRUPTED:
            _print_last("interrupted; run the same command again to continue")
        # Exit at once, as a worker may still wait for a server, and a closed pipe can't be flushed.
        os._exit(code)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _print_last(
            f"error: standard output can't be written ({error.strerror}); free space"
        )
        os._exit(ConfigError.exit_code)


def _run_or_exit(command: Callable[[], Any]) -> None:
    """A function of its own, so that `run` also handles what happens while the error is printed."""
    try:
        try:
            command()
        except ImportError as error:
            raise missing(error, "this command") or error from error
    except PairkitError as error:
        err.print(f"error: {one_line(str(error), None)}", style="red")
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in _PATH_ERRORS or error.filename is None:
            raise
        path = one_line(str(error.filename), 100)
        err.print(f"error: {path}: {error.strerror}; give another path", style="red")
        sys.exit(ConfigError.exit_code)


def _print_last(text: str) -> None:
    with suppress(OSError, Ended):
        err.print(text)
