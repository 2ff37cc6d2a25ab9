"""The command line of each package: its commands with help, version, completion, and details on request."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, TypeVar

from typer import Exit, Option, Typer
from typer.core import TyperGroup

from pairkit.app.terminal import BROKEN_PIPE, INTERRUPTED, Ended, out, say

Command = TypeVar("Command", bound=Callable[..., Any])


class Commands(TyperGroup):
    """Typer's group of commands, but for how a run ends from outside and what its help says of flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of the group itself."""
        return _with_bare_flags(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, if there is one."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _with_bare_flags(command.get_params(ctx))
        return command

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


def _with_bare_flags(options: list[Any]) -> list[Any]:
    """Options whose help names no type where they take no value: the room is needed for words."""
    for option in options:
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = ""
    return options


class Application(Typer):
    """Typer's application, but that each of its commands takes `--verbose`."""

    def command(self, *arguments: Any, **options: Any) -> Callable[[Command], Command]:
        """Register a function as a command; see `Typer.command`."""
        register = super().command(*arguments, **options)

        def take(command: Command) -> Command:
            register(_with_verbose(command))
            return command

        return take


def _with_verbose(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the option `--verbose`, behind `--quiet` where it has that."""
    signature = inspect.signature(command, eval_str=True)
    parameters = dict(signature.parameters)
    quiet = parameters.get("quiet")
    option = Option(
        "--verbose",
        "-v",
        help="Tell in detail what is done.",
        rich_help_panel=quiet.annotation.__metadata__[0].rich_help_panel if quiet else None,
    )
    verbose = inspect.Parameter(
        "verbose", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, option]
    )

    @wraps(command)
    def run(*, verbose: bool, **given: Any) -> Any:
        if verbose:
            tell_details(command.__module__.partition(".")[0])
        return command(**given)

    ordered = list(parameters.values())
    ordered.insert(ordered.index(quiet) + 1 if quiet else len(ordered), verbose)
    vars(run)["__signature__"] = signature.replace(parameters=ordered)  # what typer goes by
    return run


class _OnStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def tell_details(package: str) -> None:
    """Have what a package logs, and `pairkit` beneath it, told on stderr; else nobody is told."""
    for name in {package, "pairkit"}:
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.handlers = [_OnStderr()]


def application(name: str, purpose: str) -> Application:
    """The application that the commands of one console script register with.

    It knows `--version` and how to install completion for shells, and its commands `--verbose`.
    """

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
        help="Show the version.",
    )

    def root(*, version: bool = option) -> None:
        """Each command begins here; `version` has ended the run."""

    app = Application(
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
