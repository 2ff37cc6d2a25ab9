"""Usage errors of the command line: one line that names the remedy."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import typer

from pairkit.base.cli.options import Parameter, settings_model
from pairkit.base.printable import one_line
from pairkit.base.settings import keys_ending, plain_words

# The base class of usage errors, which typer doesn't export.
UsageError: type[Any] = typer.BadParameter.__mro__[1]
_MIN_SIMILARITY = 0.7  # of a misspelt option to the option that is proposed


def explain(
    error: Any, command: str, declared: Collection[Parameter], unused: Sequence[str]
) -> str:
    """The message for an error of parsing; `unused` are the words that belong to no option."""
    kind = type(error).__name__
    if kind == "NoSuchOption":
        return _unknown_option(error.option_name, command, declared)

    by_name = {parameter.name: parameter for parameter in declared}
    if kind == "MissingParameter":
        parameter = by_name[error.param.name]
        flag = flag_of(parameter)
        if parameter.option.positional or not unused:
            return f"{flag} is missing: {parameter.help}"
        value = one_line(unused[0])
        return f"{value}: expected an option before it; give {flag} {value}"

    if kind == "BadParameter":
        message = plain_words(str(error.message))
        if error.param is None or error.param.name not in by_name:
            return f"{command}: {message}"
        return f"{flag_of(by_name[error.param.name])}: {message}"

    if not unused:
        return str(error.message).removeprefix("Option ").rstrip(".")
    value = one_line(unused[-1])
    example = "--help"
    for parameter in declared:
        option = parameter.option
        if option.main and parameter.kind is str and not option.positional:
            example = flag_of(parameter)
            break
    return f"{value}: unexpected argument; give an option before it, such as {example} {value}"


def flag_of(parameter: Parameter) -> str:
    """A parameter as the command line has it."""
    if parameter.option.positional:
        return parameter.metavar or parameter.name.upper()
    return parameter.option.long or "--" + parameter.name.replace("_", "-")


def _unknown_option(option: str, command: str, declared: Collection[Parameter]) -> str:
    option = one_line(option)
    alternatives = [*_alternatives(option.strip("-"), declared)]
    if alternatives:
        return f"no option {option}; did you mean {' or '.join(alternatives)}?"
    remedy = f"`{command} --help-all` lists all"
    for parameter in declared:
        if parameter.option.positional:
            name = flag_of(parameter)
            return f"no option {option}; {name} has no option before it, and {remedy}"
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
        flag = flag_of(parameter).strip("-")
        flags.append(flag)
        if words.match(flag) or in_text(parameter.text):
            meant.append(flag)

    for flag in meant or get_close_matches(name, flags, 1, _MIN_SIMILARITY):
        yield f"--{flag}"
    if model and not meant:
        for key in keys_ending(settings_model(model), name.replace("-", "_")):
            yield f"--set {key}=…"
