"""Options: parameters of public functions, as flags of a command and as documentation.

The signature has a parameter's name, type and default, the docstring its text. `Options` adds what the
command line needs, and texts that several functions share. If an option is a setting, its model has the
default and the text. A function with many parameters takes a `Request`, whose fields declare all of this.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cached_property, wraps
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    ParamSpec,
    TypeVar,
    cast,
    dataclass_transform,
)

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

P = ParamSpec("P")
Q = TypeVar("Q")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

INPUT = "Input"
OUTPUT = "Output"
RUN = "Run"
ENCODING = "AOE_ENCODING"
"""A variable of the environment with the value of --encoding, which processes inherit."""

_REQUIRED = inspect.Parameter.empty
_STATED = re.compile(r"\s*\bDefault: (.+?)\.(?=\s|$)")
_SECTION = re.compile(r"^(Args|Returns|Raises|Example):\n", re.MULTILINE)
_ENTRY = re.compile(r"^    (\w+): (.+(?:\n(?:        .*)?)*)", re.MULTILINE)


@dataclass(frozen=True)
class Option:
    """What the command line needs for a parameter, and its text if the docstring has none."""

    text: str = ""
    short: str = ""  # such as -d
    metavar: str = ""  # default: N or X for numbers
    panel: str = "Options"  # the group of flags in help
    main: bool = False  # whether `--help` shows it; `--help-all` shows every flag
    setting: str = ""  # the dotted key of the setting that it sets
    read: Callable[[Any], Any] | None = None  # converts the text of the command line
    repeat: bool = False
    positional: bool = False
    required: bool = False  # for the command, but not in Python
    optional: bool = False  # for the command, but not in Python; the default is None
    hidden: bool = False  # only in Python
    long: str = ""  # default: from the parameter's name


@dataclass(frozen=True)
class Parameter:
    """A parameter of a public function."""

    name: str
    annotation: str
    default: Any
    option: Option
    own_text: str = ""  # the docstring's
    model: str = ""  # of the settings, as `module:Class`

    @property
    def is_required(self) -> bool:
        """Whether the command requires it."""
        return self.option.required or self.default is _REQUIRED

    @property
    def kind(self) -> type:
        """The type on the command line: bool, int, float or str."""
        members = {part.strip() for part in self.annotation.split("|")}
        for kind in (str, float, int, bool):
            if kind.__name__ in members:
                return kind
        return str

    @cached_property
    def field(self) -> FieldInfo | None:
        """The setting that it sets."""
        if self.option.setting and self.model:
            return field_of(self.model, self.option.setting)
        return None

    @cached_property
    def text(self) -> str:
        """The text; it states a default only in words, or with `{default}` in words around the value."""
        text = self.own_text or self.option.text
        if not text and self.field is not None:
            text = self.field.description or ""
        value = self.default_value
        if value and "{default}" not in text:  # a stated default may be outdated
            return _STATED.sub("", text)
        return text.replace("{default}", value)

    @property
    def default_value(self) -> str:
        """The default in the syntax of the command line; empty if there is none."""
        value = self.default
        if self.field is not None:
            value = self.field.get_default(call_default_factory=True)
            if self.field.is_required():
                value = _REQUIRED
        if value is None or value is False or value is _REQUIRED:
            return ""
        if value is True:
            return "on"
        if isinstance(value, float):
            return f"{value:g}"
        return str(as_words(value) or "")

    @property
    def default_text(self) -> str:
        """The default as stated in the text, else its value."""
        stated = _STATED.search(self.text)
        return stated[1] if stated else self.default_value

    @property
    def entry(self) -> str:
        """The text with the setting's default."""
        if self.field is None or "Default: " in self.text or not self.default_value:
            return self.text
        return f"{self.text} Default: {self.default_value}."

    @property
    def help(self) -> str:
        """The first sentence of the text, and the default."""
        first_sentence = re.split(r"(?<=[.!?])\s", self.text)[0]
        if not self.default_text:
            return first_sentence
        return f"{first_sentence} [default: {self.default_text}]"

    @property
    def metavar(self) -> str | None:
        """The name of the value in help; empty for a switch."""
        by_kind = {bool: "", int: "N", float: "X", str: None}
        return self.option.metavar or by_kind[self.kind]

    @property
    def flag(self) -> str:
        """The parameter as the command line has it."""
        if self.option.positional:
            return self.metavar or self.name.upper()
        return self.option.long or "--" + self.name.replace("_", "-")

    def read(self, value: Any) -> Any:
        """Convert the text of the command line."""
        if self.option.read is None or value is None:
            return value
        return self.option.read(value)


def as_words(value: Any) -> Any:
    """A default value in the syntax of the command line; None if empty."""
    if isinstance(value, tuple | list):
        return ",".join(str(item) for item in value) or None
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)


class Options(dict[str, Option]):
    """Options by parameter name; as a decorator with further ones, it declares those of a function."""

    def extended(self, **further: Option) -> Options:
        """These options and further ones."""
        return Options(self | further)

    def __call__(self, settings: str = "", **further: Option) -> Callable[[F], F]:
        """Declare a public function's options; `settings` is the model, as `module:Class`."""

        def declare(function: F) -> F:
            text = inspect.getdoc(function) or ""
            vars(function)["declared"] = Declared(
                self.extended(**further), settings, text
            )
            return function

        return declare


@dataclass(frozen=True)
class Declared:
    """What a public function declares for its command and its documentation."""

    options: Options
    settings: str = ""  # their model, as `module:Class`
    docstring: str = ""  # without the texts of options
    # This function has the texts that the docstring lacks.
    same_texts: Callable[..., Any] | None = None

    def option(self, name: str) -> Option:
        """The option of a parameter."""
        return self.options.get(name, Option())


def parameter(
    shared: Option = Option(), *, default: Any = MISSING, **changes: Any
) -> Any:
    """A field of a request; `changes` are those of a shared option."""
    return field(default=default, metadata={"option": replace(shared, **changes)})


@dataclass_transform(frozen_default=True, field_specifiers=(parameter,))
class Request:
    """Base of the typed arguments of a public function with many parameters.

    A field without `parameter` has the shared option of its name.
    """

    declared: ClassVar[Declared]
    # Type checkers know `fields` by it.
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls, *, shared: Options, settings: str = "") -> None:
        dataclass(frozen=True, eq=False, repr=False)(cls)
        own = {
            each.name: each.metadata["option"] for each in fields(cls) if each.metadata
        }
        cls.declared = Declared(shared.extended(**own), settings)

    def flags(self) -> dict[str, Any]:
        """The arguments that are settings, by their dotted keys."""
        arguments = {}
        for each in fields(self):
            if key := self.declared.option(each.name).setting:
                arguments[key] = getattr(self, each.name)
        return arguments


def takes(
    request: Callable[P, Q], *, same_texts: Callable[..., Any] | None = None
) -> Callable[[Callable[[Q], R]], Callable[P, R]]:
    """Decorate a function of one request so that it takes the request's fields as arguments.

    Arguments and errors that its docstring lacks are those of the function `same_texts`.
    """

    def decorate(implementation: Callable[[Q], R]) -> Callable[P, R]:
        @wraps(implementation)
        def call(*arguments: P.args, **keywords: P.kwargs) -> R:
            return implementation(request(*arguments, **keywords))

        returned = inspect.signature(implementation).return_annotation
        signature = inspect.signature(request).replace(return_annotation=returned)
        docstring = inspect.getdoc(implementation) or ""
        declared = replace(
            vars(request)["declared"], docstring=docstring, same_texts=same_texts
        )
        vars(call).update(declared=declared, __signature__=signature)
        if same_texts is None:  # a TypeError names this function
            vars(request)["__init__"].__qualname__ = implementation.__name__
        return call

    return decorate


def parameters(
    function: Callable[..., Any], *, of_command: bool = True
) -> list[Parameter]:
    """The parameters of a function; for a command, without those only for Python."""
    declared = _declared(function)
    entries = _entries(_sections(function).get("Args", ""))
    described = []
    for name, parameter in inspect.signature(function).parameters.items():
        option = declared.option(name)
        if of_command and (option.hidden or name == "progress"):
            continue
        described.append(
            Parameter(
                name=name,
                annotation=str(parameter.annotation),
                default=None if of_command and option.optional else parameter.default,
                option=option,
                own_text=entries.get(name, ""),
                model=declared.settings,
            )
        )
    return described


def purpose(function: Callable[..., Any]) -> str:
    """The docstring without its sections."""
    return _sections(function)[""].strip()


def documentation(function: Callable[..., Any]) -> str:
    """The docstring with the texts of all parameters, and with their defaults."""
    sections = _sections(function)
    arguments = [
        textwrap.fill(
            f"{parameter.name}: {parameter.entry}",
            width=100,
            initial_indent="    ",
            subsequent_indent="        ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for parameter in parameters(function, of_command=False)
    ]
    sections["Args"] = "\n".join(arguments) + "\n"
    order = ("Args", "Returns", "Raises", "Example")
    parts = [
        f"{title}:\n{sections[title].rstrip()}"
        for title in order
        if sections.get(title)
    ]
    return "\n\n".join([purpose(function), *parts]) + "\n"


def _sections(function: Callable[..., Any]) -> dict[str, str]:
    """The sections of a docstring by title, with `Args` and `Raises` of a function of the same texts."""
    declared = _declared(function)
    first, *titles_and_texts = _SECTION.split(declared.docstring)
    sections = dict(zip(titles_and_texts[::2], titles_and_texts[1::2], strict=True))
    sections[""] = first
    if declared.same_texts is not None:
        same = _sections(declared.same_texts)
        for title in ("Args", "Raises"):
            sections.setdefault(title, same.get(title, ""))
    return sections


def _declared(function: Callable[..., Any]) -> Declared:
    if "declared" in vars(function):
        return cast("Declared", vars(function)["declared"])
    return Declared(Options(), docstring=inspect.getdoc(function) or "")


def _entries(section: str) -> dict[str, str]:
    return {name: " ".join(text.split()) for name, text in _ENTRY.findall(section)}


def settings_model(name: str) -> Any:
    """The model of `module:Class`."""
    module, _, name = name.partition(":")
    return getattr(import_module(module), name)


def field_of(model: str, key: str) -> FieldInfo:
    """The pydantic field of a dotted key."""
    settings = settings_model(model)
    *sections, last = key.split(".")
    for section in sections:
        settings = settings.model_fields[section].annotation
    field: FieldInfo = settings.model_fields[last]
    return field
