"""Options: parameters of public functions with their docstring entries and `Flag` annotations."""

from __future__ import annotations

import builtins
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from importlib import import_module
from types import NoneType
from typing import Any, ParamSpec, TypeVar, get_args

from pairkit.base.errors import ConfigError

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Flag:
    """What only the command line needs for a parameter."""

    short: str = ""  # such as -d
    metavar: str | None = None
    panel: str = "Options"  # the group of flags in help
    main: bool = False  # whether `--help` shows it; `--help-all` shows every flag
    setting: str = ""  # the dotted key of the setting that it sets, which has the default
    read: Callable[[Any], Any] | None = None  # converts the text of the command line
    repeat: bool = False
    positional: bool = False
    required: bool = False  # for the command, but not in Python
    optional: bool = False  # for the command, but not in Python; the default is None
    hidden: bool = False  # only in Python
    long: str = ""  # default: from the parameter's name
    help: str = ""  # if the function's docstring has no entry


PYTHON_ONLY = Flag(hidden=True)
INPUT, OUTPUT, RUN = "Input", "Output", "Run"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function for a command line."""

    name: str
    annotation: Any
    default: Any
    entry: str = ""  # in the docstring

    @cached_property
    def flag(self) -> Flag:
        """The `Flag`, with the first sentence of the entry as help."""
        metadata = getattr(self.annotation, "__metadata__", ())
        found = next((one for one in metadata if isinstance(one, Flag)), Flag())
        return found if found.help else replace(found, help=re.split(r"(?<=[.!?])\s", self.entry)[0])

    @property
    def is_required(self) -> bool:
        """Whether the command requires it."""
        return self.flag.required or self.default is inspect.Parameter.empty

    def read(self, words: Any) -> Any:
        """Convert the text of the command line."""
        return words if self.flag.read is None or words is None else self.flag.read(words)

    @property
    def kind(self) -> Any:
        """The type on the command line: bool, int, float or str."""
        members = _members(self.annotation)
        return next((kind for kind in (float, int, bool) if kind in members and str not in members), str)


def parameters(function: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a function, without those only for Python."""
    names = _Names(vars(sys.modules[function.__module__]))
    found = []
    for name, one in inspect.signature(function).parameters.items():
        annotation = one.annotation
        if isinstance(annotation, str):
            annotation = eval(annotation, {}, names)  # noqa: S307 - our own source
        parameter = Parameter(name, annotation, one.default, _entry(function, name))
        if parameter.flag.optional:
            parameter = replace(parameter, default=None)
        if name != "progress" and not parameter.flag.hidden:
            found.append(parameter)
    return found


class _Names(dict[str, Any]):
    """Names of a module; those imported only for type checkers are `_Unknown`."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, _Unknown)


class _Unknown:
    def __class_getitem__(cls, _: Any) -> type[_Unknown]:
        return cls


def _members(annotation: Any) -> set[Any]:
    if hasattr(annotation, "__metadata__"):
        return _members(annotation.__origin__)
    inner = (
        get_args(annotation)
        if type(annotation).__name__ in ("UnionType", "_UnionGenericAlias", "Union")
        else ()
    )
    return set().union(*map(_members, inner)) if inner else {annotation} - {NoneType}


def _entry(function: Callable[..., Any], name: str) -> str:
    """The docstring entry of a parameter; references to other functions are followed."""
    text = inspect.getdoc(function) or ""
    found = re.search(rf"^    {name}: (.+?)(?=^    \*{{0,2}}\w+: |^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    entry = " ".join(found[1].split()) if found else ""
    reference = re.match(r"(?:See|As for) `(\w+)`", entry) if entry else re.search(r"as for `(\w+)`", text)
    if reference is None:
        return entry
    places = (function.__module__, function.__module__.partition(".")[0])
    found_in = next(place for place in map(import_module, places) if hasattr(place, reference[1]))
    return _entry(getattr(found_in, reference[1]), name)


def setting_keys(function: Callable[..., Any]) -> dict[str, str]:
    """The parameters of a function that are settings, with their dotted keys."""
    return {one.name: one.flag.setting for one in parameters(function) if one.flag.setting}


def same_arguments(function: Callable[P, Any]) -> Callable[[Callable[[dict[str, Any]], R]], Callable[P, R]]:
    """Decorate a function of one mapping so that it takes the arguments of another function."""

    def taking(other: Callable[[dict[str, Any]], R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(other)
        def call(*words: P.args, **given: P.kwargs) -> R:
            bound = signature.bind(*words, **given)
            bound.apply_defaults()
            return other(bound.arguments)

        returned = inspect.signature(other).return_annotation
        vars(call)["__signature__"] = signature.replace(return_annotation=returned)
        return call

    return taking


_BY_NUMBER = {1: ("text",), 2: ("anchor", "positive"), 3: ("text1", "text2", "label")}


def columns_given(text: str | None, flag: str = "--columns") -> dict[str, str] | None:
    """Columns from a flag: by role, or by numbers such as `1,2,3` for files without a header."""
    numbers = [part.strip() for part in (text or "").split(",")]
    if not all(part.isdecimal() for part in numbers):
        return mapping(flag, text)
    if len(numbers) not in _BY_NUMBER:
        raise ConfigError(
            f"{flag} {text}: expected the numbers of two texts and the label, as in 1,2,3, of an"
            " anchor and its positive, as in 1,2, or of single texts, as in 1"
        )
    return dict(zip(_BY_NUMBER[len(numbers)], numbers, strict=True))


def mapping(flag: str, text: str | None) -> dict[str, str] | None:
    """A mapping from `name=value,name=value`; None if empty."""
    pairs = [part.partition("=") for part in (text or "").split(",") if part]
    if any(not (key.strip() and equals and value.strip()) for key, equals, value in pairs):
        raise ConfigError(f"{flag} {text}: expected name=value,name=value")
    return {key.strip(): value.strip() for key, _, value in pairs} or None
