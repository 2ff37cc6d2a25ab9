"""Command-line applications, and commands made from public functions."""

from __future__ import annotations

import inspect
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from typer import Exit, Typer
from typer.core import TyperCommand, TyperGroup

from pairkit.base.cli.options import (
    ENCODING,
    INPUT,
    OUTPUT,
    RUN,
    Option,
    Parameter,
    as_words,
    parameters,
    purpose,
    settings_model,
)
from pairkit.base.cli.terminal import (
    BROKEN_PIPE,
    INTERRUPTED,
    CommandResult,
    Ended,
    out,
    say,
    show,
)
from pairkit.base.errors import ConfigError, PairkitError
from pairkit.base.printable import one_line
from pairkit.base.settings import keys_ending, plain_words

# The base class of usage errors, which typer doesn't export.
_UsageError: type[Any] = typer.BadParameter.__mro__[1]
_MIN_SIMILARITY = 0.7  # of a misspelt option to the option that is proposed

_MAX_EXAMPLES = 3  # in `--help`; `--help-all` has all
_PANELS = {INPUT: 0, OUTPUT: 2, RUN: 3}  # their order; any others are between

GENERAL = {
    "json": Option("End with one JSON object on stdout.", panel=OUTPUT, main=True),
    "quiet": Option(
        "Print no progress and no notes on stderr.", short="-q", panel=OUTPUT, main=True
    ),
    "verbose": Option("Log each step on stderr.", short="-v", panel=OUTPUT),
}
# Of commands that read tables.
_ENCODING = Parameter(
    "encoding",
    "str | None",
    default=None,
    option=Option(
        "Encoding of text files that aren't UTF-8.", metavar="NAME", panel=INPUT
    ),
)


class Commands(TyperGroup):
    """A group of commands with our exit codes for signals."""

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
            from pairkit.base.extras import __version__

            out.print(f"{name} (aoe-toolkit {__version__})")
            raise Exit

    version_flag = typer.Option(
        "--version",
        callback=show_version,
        is_eager=True,
        metavar="",
        help="Show the version.",
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


def examples(*lines: str) -> str:
    """The examples of a command's help."""
    return "Examples:\n\n" + "\n\n".join(f"`{line}`" for line in lines)


def add_command(
    app: Typer,
    function: Callable[..., Any],
    *lines: str,
    name: str | None = None,
    run: Callable[..., Any] | None = None,
    json: bool = True,
) -> None:
    """Add a command that prints the result of a function, or of `run(arguments, **flags)` instead."""
    public = parameters(function)
    run_parameters = parameters(run)[1:] if run else []
    own = [each for each in run_parameters if each.name not in GENERAL]
    reads_tables = any(each.name == "columns" for each in public)
    general = _general_parameters(json=json, reads_tables=reads_tables)
    declared = [*public, *own, *general]
    declared.sort(
        key=lambda each: (_PANELS.get(each.option.panel, 1), not each.is_required)
    )
    command = _command(function, public, run, run_parameters)
    _sign(command, declared)
    register = Typer.command(
        app,
        name or function.__name__.replace("_", "-"),
        cls=type(
            "Command", (_Command,), {"declared": {each.name: each for each in declared}}
        ),
        help=purpose(function),
        epilog=examples(*lines),
    )
    register(command)


def run_command(*command: str) -> str:
    """The command line of a dry run as one of `command` with the same options."""
    options = (word for word in sys.argv[2:] if word != "--dry-run")
    return shlex.join([*command, *options])


def _general_parameters(*, json: bool, reads_tables: bool) -> Iterator[Parameter]:
    for name, option in GENERAL.items():
        if json or name != "json":
            yield Parameter(name, "bool", default=False, option=option)
    if reads_tables:
        yield _ENCODING


def _command(
    function: Callable[..., Any],
    public: Sequence[Parameter],
    run: Callable[..., Any] | None,
    run_parameters: Sequence[Parameter],
) -> Callable[..., None]:
    """The function of a command, whose keywords are the values of all flags."""
    takes_progress = "progress" in inspect.signature(function).parameters

    def command(**values: Any) -> None:
        quiet = values["quiet"]
        encoding = values.get("encoding")
        if values["verbose"]:
            log_to_stderr(function.__module__.partition(".")[0])
        arguments = _read(public, values)
        if takes_progress:
            arguments["progress"] = not quiet
        with _only_errors_logged(quiet), _flags_in_errors(public), _files_in(encoding):
            if run is None:
                result = function(**arguments)
            else:
                result = run(arguments, **_read(run_parameters, values))
        if result is not None:
            given = {**arguments, "encoding": encoding}
            show(result, json=values.get("json", False), quiet=quiet, given=given)
        if isinstance(result, CommandResult):
            result.check()

    return command


def _read(parameters: Iterable[Parameter], values: Mapping[str, Any]) -> dict[str, Any]:
    return {each.name: each.read(values[each.name]) for each in parameters}


def _sign(command: Callable[..., None], declared: Iterable[Parameter]) -> None:
    """Give a command the signature from which typer makes its flags."""
    help_all = typer.Option(
        "--help-all",
        callback=_show_all,
        is_eager=True,
        metavar="",
        help="Show all options and exit.",
    )
    flags = [
        *map(_flag, declared),
        _keyword("help_all", Annotated[bool, help_all], default=False),
    ]
    vars(command)["__signature__"] = inspect.Signature(flags)
    command.__annotations__ = {each.name: each.annotation for each in flags}


class _Command(TyperCommand):
    """A command whose `--help` shows main flags and few examples."""

    declared: dict[str, Parameter]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; an error is one line that names the remedy."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            unused = _unused_words(self.make_parser(ctx), given)
            raise ConfigError(
                _explain(error, ctx.command_path, self.declared, unused)
            ) from error

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print help with the flags and examples to show."""
        self.add_texts()
        for option in self._options():
            parameter = self.declared.get(option.name or "")
            is_shown = (
                parameter is None or parameter.option.main or parameter.is_required
            )
            option.hidden = not (is_shown or ctx.meta.get("all"))
        every = self.epilog or ""
        if not ctx.meta.get("all"):
            self.epilog = "\n\n".join(every.split("\n\n")[: 1 + _MAX_EXAMPLES])
        super().format_help(ctx, formatter)
        self.epilog = every

    def add_texts(self) -> None:
        """Add the texts of flags with defaults; those of settings take a moment to import."""
        for option in self._options():
            if parameter := self.declared.get(option.name or ""):
                option.help = parameter.help

    def _options(self) -> list[Any]:
        return [*self.params]


def _unused_words(parser: Any, words: list[str]) -> list[str]:
    """The words of a command line that belong to no option or argument."""
    try:
        return [*parser.parse_args(words)[1]]
    except Exception:  # noqa: BLE001 - typer has copies of click's errors
        return []


def _explain(
    error: Any, command: str, declared: Mapping[str, Parameter], unused: Sequence[str]
) -> str:
    """The message for an error of parsing; `unused` are the words that belong to no option."""
    kind = type(error).__name__
    if kind == "NoSuchOption":
        return _unknown_option(error.option_name, command, declared.values())
    if kind == "BadParameter":
        return f"{declared[error.param.name].flag}: {plain_words(str(error.message))}"
    if kind == "MissingParameter":
        parameter = declared[error.param.name]
        if parameter.option.positional or not unused:
            return f"{parameter.flag} is missing: {parameter.help}"
        value = one_line(unused[0])
        return f"{value}: expected an option before it; give {parameter.flag} {value}"
    if not unused:
        return str(error.message).removeprefix("Option ").rstrip(".")
    value = one_line(unused[-1])
    flags = [
        each.flag
        for each in declared.values()
        if each.option.main and each.kind is str and not each.option.positional
    ]
    example = [*flags, "--help"][0]
    return f"{value}: unexpected argument; give an option before it, such as {example} {value}"


def _unknown_option(option: str, command: str, declared: Collection[Parameter]) -> str:
    option = one_line(option)
    alternatives = [*_alternatives(option.strip("-"), declared)]
    if alternatives:
        return f"no option {option}; did you mean {' or '.join(alternatives)}?"
    remedy = f"`{command} --help-all` lists all"
    positional = [each.flag for each in declared if each.option.positional]
    if positional:
        remedy = f"{positional[0]} has no option before it, and {remedy}"
    return f"no option {option}; {remedy}"


def _alternatives(name: str, declared: Collection[Parameter]) -> Iterator[str]:
    """What an unknown option may have meant: a flag by its name or text, or a setting by its last name."""
    words = re.compile(r"\W+".join(map(re.escape, name.split("-"))), re.IGNORECASE)
    in_text = words.search if "-" in name else words.match
    flags = []
    meant = []
    model = ""
    for parameter in declared:
        if parameter.name == "settings":
            model = parameter.model
        if parameter.option.positional:
            continue
        flag = parameter.flag.strip("-")
        flags.append(flag)
        if words.match(flag) or name.startswith(flag) or in_text(parameter.text):
            meant.append(flag)

    for flag in meant or get_close_matches(name, flags, 1, _MIN_SIMILARITY):
        yield f"--{flag}"
    if model and not meant:
        for key in keys_ending(settings_model(model), name.replace("-", "_")):
            yield f"--set {key}=…"


def _show_all(context: Any, requested: bool) -> None:
    if requested:
        context.meta["all"] = True
        context.get_help()
        raise Exit


def _flag(parameter: Parameter) -> inspect.Parameter:
    """The declaration of a parameter for typer."""
    option = parameter.option
    details: dict[str, Any] = {"metavar": parameter.metavar, "show_default": False}
    if option.positional:
        declared = typer.Argument(**details)
    else:
        declared = typer.Option(
            *_flag_names(parameter), rich_help_panel=option.panel, **details
        )
    kind: Any = list[str] if option.repeat else parameter.kind
    default = as_words(parameter.default)
    if parameter.is_required:
        default = inspect.Parameter.empty
    elif default is None:
        kind |= None
    return _keyword(parameter.name, Annotated[kind, declared], default=default)


def _flag_names(parameter: Parameter) -> Iterator[str]:
    is_switch = parameter.kind is bool and parameter.default is not False
    if is_switch and not parameter.option.long:
        yield f"{parameter.flag}/--no-{parameter.name.replace('_', '-')}"
    else:
        yield parameter.flag
    if parameter.option.short:
        yield parameter.option.short


def _keyword(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


@contextmanager
def _only_errors_logged(quiet: bool) -> Iterator[None]:
    logger = logging.getLogger("pairkit")
    level = logger.level
    if quiet:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _flags_in_errors(parameters: Iterable[Parameter]) -> Iterator[None]:
    """Name options in messages as flags."""
    try:
        yield
    except PairkitError as error:
        error.args = (_with_flag(str(error.args[0]), parameters), *error.args[1:])
        raise


def _with_flag(message: str, parameters: Iterable[Parameter]) -> str:
    """A message that begins with a keyword or setting, with the flag instead."""
    for each in parameters:
        match = re.match(
            rf"(?:{each.name}|setting '{re.escape(each.option.setting)}') = ", message
        )
        if match and not each.option.positional:
            return f"{each.flag} {message[match.end() :]}"
    return message


@contextmanager
def _files_in(encoding: str | None) -> Iterator[None]:
    """Read text files that aren't UTF-8 in this encoding, if there is one."""
    if not encoding:
        yield
        return
    try:
        b"a".decode(encoding)
    except LookupError as error:
        raise ConfigError(
            f"--encoding {one_line(encoding)}: unknown; expected a name such as cp1250, gb18030 or shift_jis"
        ) from error
    os.environ[ENCODING] = encoding
    try:
        yield
    finally:
        del os.environ[ENCODING]
