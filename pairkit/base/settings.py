"""Settings: defaults < TOML file < `--set key=value` < flags, merged into a frozen pydantic model."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)

from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_MAX_ERRORS = 5  # in a message
# How messages of pydantic begin, and the plain words instead.
_PLAIN_WORDS = (
    (r"field required$", "needs a value"),
    (r"input is not a valid path.*", "expected a path"),
    (r"input should be", "expected"),
    (r"expected a valid integer.*", "expected a whole number"),
    (r"expected a valid number.*", "expected a number"),
    (r"expected a valid boolean.*", "expected true or false"),
    (r"expected a valid string", "expected text"),
    (r"expected a valid (dictionary|mapping).*", "expected names with values"),
    (r"expected a valid (list|tuple|set)\b.*", "expected a list"),
    (r"expected greater than or equal to", "expected at least"),
    (r"expected less than or equal to", "expected at most"),
    (r"expected greater than", "expected more than"),
)
_MAY_BE_SECRET = re.compile(
    r"(?<![a-z])(?:api|key|token|secret|password|credentials?|authorization)(?![a-z])",
    re.IGNORECASE,
)

PathText = Annotated[
    str, BeforeValidator(lambda value: str(value) if isinstance(value, Path) else value)
]
"""A path, or another text such as a name."""


class Settings(BaseModel):
    """Base of all settings models: frozen, unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def setting(default: object, text: str, **constraints: Any) -> Any:
    """A field with its text, which help and documents show; `...` as default requires a value."""
    return Field(default, description=text, **constraints)


S = TypeVar("S", bound=Settings)


def split_at_commas(value: object) -> object:
    """Split text at commas, as a `BeforeValidator` of sequences."""
    return between_commas(value) if isinstance(value, str) else value


def plain_words(message: str) -> str:
    """An error of pydantic in plain words, to follow the name of a setting."""
    message = message.removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    for pattern, words in _PLAIN_WORDS:
        message = re.sub(f"^{pattern}", words, message)
    return message


def between_commas(value: str | Sequence[str] | None) -> list[str]:
    """A list of names from a list, from text with commas, or from None."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return list(value or ())


def load_settings(
    model: type[S],
    flags: Mapping[str, object] | None = None,
    *,
    below: Mapping[str, object] | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, object] | Iterable[str] | None = None,
) -> S:
    """Merge and validate defaults < `below` < `config` < `settings` < `flags`, which have dotted keys."""
    tree = copy.deepcopy(dict(below or {}))
    file = argument("config", config, Path | None)
    if file is not None:
        _overlay(tree, read_toml(file))
    for layer in (_by_key(settings), flags or {}):
        for key, value in layer.items():
            if value is not None:
                _put(tree, key, value)
    try:
        return model.model_validate(tree)
    except ValidationError as error:
        errors = [_explain(model, each) for each in error.errors()[:_MAX_ERRORS]]
        if error.error_count() > _MAX_ERRORS:
            errors.append(f"and {error.error_count() - _MAX_ERRORS} more")
        raise ConfigError("; ".join(errors)) from error
    except UnicodeEncodeError as error:
        raise ConfigError(
            "a setting has a lone surrogate; expected valid Unicode"
        ) from error


def argument(name: str, value: object, kind: Any) -> Any:
    """Validate an argument that is not a setting."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        # If a table is refused, only the part in question is shown.
        first = error.errors()[0]
        part = value if first["type"] == "missing" else first["input"]
        shown = str(part) if isinstance(part, Path) else repr(part)
        raise ConfigError(
            f"{name} = {one_line(shown, 100)}: {plain_words(first['msg'])}"
        ) from error


def _by_key(settings: Mapping[str, object] | Iterable[str] | None) -> dict[str, object]:
    """Settings from a mapping, or from texts such as `key=value`."""
    if isinstance(settings, Mapping):
        return dict(argument("settings", settings, dict[str, Any]))
    if isinstance(settings, str):
        settings = [settings]
    values = {}
    for assignment in argument("settings", settings or [], list[str]):
        key, equals, value = assignment.partition("=")
        if not equals:
            name = re.split(r"[^\w.-]", assignment, maxsplit=1)[0]
            raise ConfigError(f"setting {name!r}: expected key=value, such as {name}=1")
        values[key.strip()] = _toml_value(value.strip())
    return values


def _toml_value(text: str) -> object:
    """The value that TOML reads, or the text itself if it is anything but one value."""
    try:
        tree = tomllib.loads(f"value = {text}")
    # A number of thousands of digits is a ValueError, as are errors of TOML.
    except (ValueError, RecursionError):
        return text
    return tree["value"] if len(tree) == 1 else text


def _overlay(tree: dict[str, Any], above: Mapping[str, object]) -> None:
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            _overlay(tree[key], value)
        else:
            tree[key] = value


def read_toml(file: Path) -> dict[str, object]:
    """Read a TOML file."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise ConfigError(f"{file}: no such configuration file") from error
    # Errors of encoding and of TOML are ValueErrors.
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: not readable as TOML ({error})") from error


def _put(tree: dict[str, Any], dotted: str, value: object) -> None:
    *sections, key = dotted.split(".")
    for section in sections:
        inner = tree.get(section, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{dotted}: {section} is a value, not a section")
        tree[section] = dict(inner)  # it may be the caller's
        tree = tree[section]
    tree[key] = value


def _explain(model: type[Settings], error: ErrorDetails) -> str:
    path = error["loc"]
    key = ".".join(map(str, path))
    if error["type"] == "extra_forbidden":
        return f"unknown setting {key!r}; {_known_keys(model, path)}"
    if not key:  # the message of a check over several settings names them
        return error["msg"].removeprefix("Value error, ")
    message = plain_words(error["msg"])
    # If a table is expected or a field is missing, the input may be a whole table, with a key in it.
    expects_table = error["type"] in ("model_type", "dict_type")
    is_table = isinstance(error["input"], Mapping)
    if expects_table or is_table or _MAY_BE_SECRET.search(key):
        return f"setting {key!r}: {message}"
    return f"setting {key!r} = {one_line(repr(error['input']))}: {message}"


def keys_ending(model: type[BaseModel], name: str) -> list[str]:
    """The dotted keys of settings whose last part is a name; NAME is for any name of a section."""
    sections = dict(_sections(model))
    keys = [name] if name in model.model_fields.keys() - sections else []
    for section, inner in sections.items():
        if get_origin(model.model_fields[section].annotation) is dict:
            section = f"{section}.NAME"
        keys += [f"{section}.{key}" for key in keys_ending(inner, name)]
    return keys


def _known_keys(model: type[BaseModel], path: Iterable[int | str]) -> str:
    """The keys that an unknown one may stand for, or else those of its section."""
    *sections, name = map(str, path)
    meant = keys_ending(model, name)
    if meant:
        return f"did you mean {' or '.join(meant)}?"
    for section in sections:
        # A part that is no section is a name in a dict of sections.
        model = dict(_sections(model)).get(section, model)
    return f"known here: {', '.join(sorted(model.model_fields))}"


def _sections(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """The fields that are models, may be one, or are dicts of them."""
    for name, field in model.model_fields.items():
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield name, kind
