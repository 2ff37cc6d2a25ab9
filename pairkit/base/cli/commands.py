"""Command-line applications, and commands made from public functions."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any

from typer import Argument, Exit, Option, Typer
from typer.core import TyperCommand, TyperGroup

from pairkit.base.cli.flag import INPUT, OUTPUT, RUN, Flag, Parameter, parameters
from pairkit.base.cli.terminal import BROKEN_PIPE, INTERRUPTED, Ended, next_step, out, print_json, say
from pairkit.base.cli.terminal import out as stdout
from pairkit.base.errors import PairkitError


class Commands(TyperGroup):
    """A group of commands with our exit codes for signals."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the arguments and show help."""
        try:
            return super().make_context(*arguments, **options)
        except KeyboardInterrupt:
            raise Ended(INTERRUPTED) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Ended(INTERRUPTED) from None
        except BrokenPipeError:
            raise Ended(BROKEN_PIPE) from None


class _OnStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def log_to_stderr(package: str) -> None:
    """Print the logs of a package and of `pairkit` on stderr."""
    for name in {package, "pairkit"}:
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.handlers = [_OnStderr()]


def application(name: str, purpose: str) -> Typer:
    """The application of a console script, with `--version`."""

    def show_version(requested: bool) -> None:
        if requested:
            from pairkit.base.version import __version__

            out.print(f"{name} (aoe-toolkit {__version__})", markup=False)
            raise Exit

    version_flag = Option(
        "--version", callback=show_version, is_eager=True, metavar="", help="Show the version."
    )

    def root(*, version: Annotated[bool, version_flag] = False) -> None:
        """Declare `--version`, whose callback ends the run."""

    root.__annotations__["version"] = Annotated[bool, version_flag]
    app = Typer(
        name=name,
        cls=Commands,
        help=purpose,
        no_args_is_help=True,
        pretty_exceptions_enable=False,  # they show local variables, such as tokens
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="markdown",
    )
    app.callback(help=purpose)(root)
    return app


_MAX_EXAMPLES = 3  # in `--help`; `--help-all` has all


def examples(*lines: str) -> str:
    """The examples of a command's help."""
    return "Examples:\n\n" + "\n\n".join(f"`{line}`" for line in lines)


JSON = Flag(panel=OUTPUT, main=True, help="End with one JSON object on stdout.")
QUIET = Flag("-q", panel=OUTPUT, main=True, help="No progress and no notes on stderr.")
VERBOSE = Flag("-v", panel=OUTPUT, help="Log each step on stderr.")


def add_command(
    app: Typer,
    function: Callable[..., Any],
    *lines: str,
    name: str | None = None,
    run: Callable[..., Any] | None = None,
    settings: str = "",
    json: bool = True,
) -> None:
    """Add a command that calls a public function and prints the result; `lines` are examples.

    `run(function, arguments, **flags)` is called instead, with further flags from its keyword-only
    parameters; it returns a result to print, or None. `settings` is the model (`module:Class`) with defaults.
    """
    own = parameters(run or function)
    own, public = (own[2:] if run else []), parameters(function)
    general = {"json": JSON, "quiet": QUIET, "verbose": VERBOSE}
    shared = [
        Parameter(key, Annotated[bool, flag], default=False)
        for key, flag in general.items()
        if json or key != "json"
    ]
    everything = [*public, *(one for one in own if one.name not in general), *shared]
    takes_progress = "progress" in inspect.signature(function).parameters

    def command(**words: Any) -> None:
        if words["verbose"]:
            log_to_stderr(function.__module__.partition(".")[0])
        given = {one.name: one.read(words[one.name]) for one in public}
        if takes_progress:
            given["progress"] = not words["quiet"]
        logger = logging.getLogger("pairkit")
        level = logger.level
        if words["quiet"]:
            logger.setLevel(logging.ERROR)
        try:
            if run is None:
                result = function(**given)
            else:
                result = run(function, given, **{one.name: one.read(words[one.name]) for one in own})
        except PairkitError as error:
            error.args = (_with_flag(str(error.args[0]), public), *error.args[1:])
            raise
        finally:
            logger.setLevel(level)
        if result is not None:
            show(result, json=words.get("json", False), quiet=words["quiet"], given=given)

    order = {INPUT: 0, OUTPUT: 2, RUN: 3}  # of panels; any others are between
    everything.sort(key=lambda one: (order.get(one.flag.panel, 1), not one.is_required))
    options = [_option(one) for one in everything]
    help_all = Option(
        "--help-all", callback=_show_all, is_eager=True, metavar="", help="Show all options and exit."
    )
    options.append(_keyword("help_all", Annotated[bool, help_all], default=False))
    vars(command)["__signature__"] = inspect.Signature(options)
    command.__annotations__ = {one.name: one.annotation for one in options}

    of_class = {"parameters": {one.name: one for one in everything}, "model": settings}
    register = Typer.command(
        app,
        name or function.__name__.replace("_", "-"),
        cls=type("Command", (_Command,), of_class),
        help=_purpose(function),
        epilog=examples(*lines),
    )
    register(command)


def show(result: Any, *, json: bool, quiet: bool, given: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Print a result: `notes` on stderr, `tables` and `lines` or JSON on stdout, and `next_steps`.

    `given` are the arguments of its command.
    """
    for line in result.notes() if hasattr(result, "notes") else ():
        say(line, quiet=quiet)
    if json:
        print_json(result.to_dict())
        return
    tables = (
        result.tables()
        if hasattr(result, "tables")
        else [result.table() if hasattr(result, "table") else result]
    )
    for place, table in enumerate(tables):
        if place:
            stdout.print()
        stdout.print(table, **({"markup": False} if isinstance(table, str) else {}))
    for line in result.lines() if hasattr(result, "lines") else ():
        stdout.print(line, markup=False)
    for why, step in result.next_steps() if hasattr(result, "next_steps") else ():
        next_step(why, with_input_flags(step, given), quiet=quiet)


def with_input_flags(step: Any, given: Mapping[str, Any]) -> Any:
    """A next command with the input flags of this one, if both read the same source."""
    data = given.get("source", given.get("data"))
    sources = [*data.values()] if isinstance(data, Mapping) else [data]
    if isinstance(step, str) or not {*map(str, sources)} & {*map(str, step)}:
        return step
    reads_pairs = step[0] == "pairs" or step[1] in ("train", "evaluate")
    names = ["columns", *(["labels", "label_range", "bad_rows"] if reads_pairs else [])]
    flags = {name: given[name] for name in names if given.get(name) not in (None, "error")}
    if isinstance(columns := flags.get("columns"), Mapping):
        flags["columns"] = ",".join(f"{role}={column}" for role, column in columns.items())
    return [
        *step,
        *(word for name, value in flags.items() for word in (f"--{name.replace('_', '-')}", value)),
    ]


class _Command(TyperCommand):
    """A command whose `--help` shows main flags, few examples, and the defaults of settings."""

    parameters: dict[str, Parameter]
    model: str

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print help with the flags and examples to show."""
        self.add_defaults()
        for option in self._options():
            one = self.parameters.get(option.name or "")
            option.hidden = not (one is None or one.flag.main or one.is_required or ctx.meta.get("all"))
        every = self.epilog or ""
        if not ctx.meta.get("all"):
            self.epilog = "\n\n".join(every.split("\n\n")[: 1 + _MAX_EXAMPLES])
        super().format_help(ctx, formatter)
        self.epilog = every

    def add_defaults(self) -> None:
        """Add the defaults of settings to the help of flags."""
        for option in self._options():
            one = self.parameters.get(option.name or "")
            if one is not None and one.flag.setting and self.model and "[default:" not in option.help:
                value = _setting(self.model, one.flag.setting)
                option.help += "" if value in (None, "", (), False) else f" [default: {_as_words(value)}]"

    def _options(self) -> list[Any]:
        return [*self.params]


def _show_all(context: Any, requested: bool) -> None:
    if requested:
        context.meta["all"] = True
        context.get_help()
        raise Exit


def _option(one: Parameter) -> inspect.Parameter:
    """The declaration of a parameter for typer."""
    flag, kind = one.flag, one.kind
    stated = re.search(r"\bDefault: (.+?)\.(?:\s|$)", one.entry)
    default = None if one.is_required or kind is bool else _as_words(one.default)
    shown = stated[1] if stated else default
    details: dict[str, Any] = {
        "help": flag.help + (f" [default: {shown}]" if shown not in (None, "") else "")
    }
    details |= {"metavar": "" if kind is bool else flag.metavar, "show_default": False}
    plain = "--" + one.name.replace("_", "-")
    both = kind is bool and one.default is not False
    names = filter(None, (flag.long or (f"{plain}/--no-{plain[2:]}" if both else plain), flag.short))
    declared = (
        Argument(**details) if flag.positional else Option(*names, rich_help_panel=flag.panel, **details)
    )
    kind = list[str] if flag.repeat else kind
    if one.is_required:
        return _keyword(one.name, Annotated[kind, declared])
    return _keyword(
        one.name,
        Annotated[kind | None if one.default is None else kind, declared],
        default=one.default if kind is bool else _as_words(one.default),
    )


def _purpose(function: Callable[..., Any]) -> str:
    return re.split(
        r"^(?:Args|Returns|Raises|Example|Examples):$", inspect.getdoc(function) or "", flags=re.M
    )[0]


def _keyword(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _as_words(value: Any) -> Any:
    """A default value in the syntax of the command line."""
    if isinstance(value, tuple | list):
        return ",".join(str(item) for item in value) or None
    return value if value is None or isinstance(value, bool | int | float) else str(value)


@cache
def _defaults(model: str) -> Any:
    """The default settings of a model."""
    module, _, name = model.partition(":")
    return getattr(import_module(module), name)()


def _setting(model: str, key: str) -> Any:
    found = _defaults(model)
    for part in key.split("."):
        found = getattr(found, part)
    return found


def _with_flag(message: str, parameters: Iterable[Parameter]) -> str:
    """A message that begins with a keyword or setting, with the flag instead."""
    for one in parameters:
        found = re.match(rf"(?:{one.name}|setting '{re.escape(one.flag.setting)}') = ", message)
        if found and not one.flag.positional:
            return f"--{one.name.replace('_', '-')} {message[found.end() :]}"
    return message
