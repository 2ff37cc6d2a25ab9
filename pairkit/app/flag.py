"""Options: a parameter of a public function, its docstring entry, and a `Flag` for what a shell needs."""

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

from pairkit.app.errors import ConfigError

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Flag:
    """What a command line needs for a parameter, beyond its name, type, default and docstring."""

    names: str = ""  # such as `--data -d`; by default made from the parameter's
    metavar: str | None = None
    panel: str = "Options"  # the group of flags in help
    main: bool = False  # whether `--help` shows it; `--help-all` shows every flag
    setting: str = ""  # the dotted key that it sets; the default is then that of the settings model
    read: Callable[[Any], Any] | None = None  # makes the argument from the words on the command line
    repeat: bool = False
    positional: bool = False
    required: bool = False  # by the command, although not by Python
    optional: bool = False  # for the command, although not for Python; it is then None
    hidden: bool = False  # for Python only
    help: str = ""  # if it is not documented in the function's docstring


PYTHON_ONLY = Flag(hidden=True)
INPUT, OUTPUT, RUN = "Input", "Output", "Run"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function, as a command line has it."""

    name: str
    annotation: Any
    default: Any
    entry: str = ""  # of the docstring

    @cached_property
    def flag(self) -> Flag:
        """Its `Flag`, with the first sentence of its entry as help."""
        metadata = getattr(self.annotation, "__metadata__", ())
        found = next((one for one in metadata if isinstance(one, Flag)), Flag())
        return found if found.help else replace(found, help=re.split(r"(?<=[.!?])\s", self.entry)[0])

    @property
    def is_required(self) -> bool:
        """Whether the command needs it."""
        return self.flag.required or self.default is inspect.Parameter.empty

    def read(self, words: Any) -> Any:
        """The argument for these words on the command line."""
        return words if self.flag.read is None or words is None else self.flag.read(words)

    @property
    def kind(self) -> Any:
        """Its type on a command line: bool, int, float or str."""
        members = _members(self.annotation)
        return next((kind for kind in (float, int, bool) if kind in members and str not in members), str)


def parameters(function: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a function, without those for Python only."""
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
    """Names of a module; those that it imports for type checkers only are `_Unknown`."""

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
    """The docstring entry of a parameter, here or in the function that it refers to."""
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
    """The keyword arguments of a public function that are settings, with the dotted keys that they set."""
    return {one.name: one.flag.setting for one in parameters(function) if one.flag.setting}


def same_arguments(function: Callable[P, Any]) -> Callable[[Callable[[dict[str, Any]], R]], Callable[P, R]]:
    """Give a function of all arguments in one mapping the signature of another function."""

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


_BY_NUMBER = {2: ("anchor", "positive"), 3: ("text1", "text2", "label")}


def columns_given(text: str | None, flag: str = "--columns") -> dict[str, str] | None:
    """The columns that a flag names: by role, or by numbers such as `1,2,3` without a header line."""
    numbers = [part.strip() for part in (text or "").split(",")]
    if not all(part.isdecimal() for part in numbers):
        return mapping(flag, text)
    if len(numbers) not in _BY_NUMBER:
        raise ConfigError(
            f"{flag} {text}: expected the numbers of two texts and the label, as in 1,2,3, or of an"
            " anchor and its positive, as in 1,2"
        )
    return dict(zip(_BY_NUMBER[len(numbers)], numbers, strict=True))


def mapping(flag: str, text: str | None) -> dict[str, str] | None:
    """`name=value,name=value` as a mapping; None for nothing."""
    pairs = [part.partition("=") for part in (text or "").split(",") if part]
    if any(not (key.strip() and equals and value.strip()) for key, equals, value in pairs):
        raise ConfigError(f"{flag} {text}: expected name=value,name=value")
    return {key.strip(): value.strip() for key, _, value in pairs} or None
