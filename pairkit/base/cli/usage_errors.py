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

# Its base, which typer doesn't export.
UsageError: type[Any] = typer.BadParameter.__mro__[1]
_CLOSE = 0.7  # least similarity of a misspelt option


def explain(
    error: Any, command: str, declared: Collection[Parameter], unused: Sequence[str]
) -> str:
    """The message for an error of parsing; `unused` are the words that belong to no option."""
    match type(error).__name__:
        case "NoSuchOption":
            return _unknown_option(error.option_name, command, declared)
        case "MissingParameter":
            return _missing_parameter(error.param.name, declared, unused)
        case "BadParameter":
            name = error.param.name if error.param else ""
            flag = next(
                (flag_of(each) for each in declared if each.name == name), command
            )
            return f"{flag}: {plain_words(str(error.message))}"
    if not unused:
        return str(error.message).removeprefix("Option ").rstrip(".")
    value = one_line(unused[-1])
    flags = [
        flag_of(each) for each in declared if each.option.main and each.kind is str
    ]
    example = next((flag for flag in flags if flag.startswith("--")), "--help")
    return f"{value}: unexpected argument; give an option before it, such as {example} {value}"


def flag_of(parameter: Parameter) -> str:
    """A parameter as the command line has it."""
    if parameter.option.positional:
        return parameter.metavar or parameter.name.upper()
    return parameter.option.long or "--" + parameter.name.replace("_", "-")


def _unknown_option(option: str, command: str, declared: Collection[Parameter]) -> str:
    option = one_line(option)
    offered = list(_alternatives(option.strip("-"), declared))
    if offered:
        return f"no option {option}; did you mean {' or '.join(offered)}?"
    message = f"no option {option}; "
    positional = next(
        (flag_of(each) for each in declared if each.option.positional), None
    )
    if positional is not None:
        message += f"{positional} has no option before it, and "
    return f"{message}`{command} --help-all` lists all"


def _alternatives(name: str, declared: Collection[Parameter]) -> Iterator[str]:
    """What an unknown option may have meant: a flag by its name or text, or a setting by its last name."""
    flags = {
        flag_of(each).strip("-"): each
        for each in declared
        if not each.option.positional
    }
    words = re.compile(r"\W+".join(map(re.escape, name.split("-"))), re.IGNORECASE)
    in_text = words.search if "-" in name else words.match
    meant = [
        flag for flag, each in flags.items() if words.match(flag) or in_text(each.text)
    ]
    for flag in meant or get_close_matches(name, flags, 1, _CLOSE):
        yield f"--{flag}"
    model = next((each.model for each in declared if each.name == "settings"), "")
    if model and not meant:
        for key in keys_ending(settings_model(model), name.replace("-", "_")):
            yield f"--set {key}=…"


def _missing_parameter(
    name: str, declared: Collection[Parameter], unused: Sequence[str]
) -> str:
    parameter = next(each for each in declared if each.name == name)
    flag = flag_of(parameter)
    if unused and not parameter.option.positional:
        value = one_line(unused[0])
        return f"{value}: expected an option before it; give {flag} {value}"
    return f"{flag} is missing: {parameter.help}"
