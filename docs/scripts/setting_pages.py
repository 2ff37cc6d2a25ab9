"""Reference pages of the settings, generated from their pydantic models."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pairkit.base.cli.options import parameters
from pairkit.base.settings import Settings

_MAX_ITEMS = 8
_BOUNDS = {
    annotated_types.Ge: "≥",
    annotated_types.Gt: ">",
    annotated_types.Le: "≤",
    annotated_types.Lt: "<",
}
_TYPES = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
    NoneType: "unset",
    Any: "text",  # or a function, from Python
}


class Setting(NamedTuple):
    """One row of a table of settings."""

    key: str
    type: str
    default: str
    meaning: str
    flag: str


class Section(NamedTuple):
    """The settings of one model, under one dotted prefix."""

    prefix: str
    purpose: str
    settings: list[Setting]


def setting_page(
    script: str, roots: Mapping[str, tuple[type[Settings], Callable[..., Any]]]
) -> str:
    """Returns the page of one console script's settings, in Markdown; a function has their flags."""
    lines = [
        f"# Settings of `{script}`",
        "",
        "Give a setting in a TOML file (`--config FILE`), as `--set section.key=value`, or with its flag.",
        "A flag beats `--set`, `--set` beats the file, and the file beats the default. An unknown key is an",
        "error.",
    ]
    for heading, (model, function) in roots.items():
        flags = {each.option.setting: each.flag for each in parameters(function)}
        lines += ["", f"## {heading}"]
        for section in sections(model, flags):
            title = f"`[{section.prefix}]`" if section.prefix else "Top level"
            lines += [
                "",
                f"### {title}",
                "",
                section.purpose,
                "",
                *setting_table(section),
            ]
    return "\n".join(lines) + "\n"


def setting_table(section: Section) -> Iterator[str]:
    """The table of one section, in Markdown."""
    yield from ("| key | value | default | meaning |", "|---|---|---|---|")
    for setting in section.settings:
        meaning = _cell(
            setting.meaning + (f" Flag: `{setting.flag}`." if setting.flag else "")
        )
        yield f"| `{setting.key}` | {_cell(setting.type)} | {_cell(setting.default)} | {meaning} |"


def sections(
    model: type[Settings],
    flags: Mapping[str, str],
    prefix: str = "",
    defaults: Settings | None = None,
    shown: dict[type[Settings], str] | None = None,
) -> Iterator[Section]:
    """The sections of a model, its own settings first."""
    shown = {} if shown is None else shown
    own: list[Setting] = []
    inner: list[tuple[str, type[Settings], Settings | None]] = []
    for name, field in model.model_fields.items():
        key = f"{prefix}.{name}" if prefix else name
        nested = _nested(field.annotation)
        if nested is not None and nested in shown:
            meaning = f"{field.description or ''} Its keys are those of `[{shown[nested]}]`.".strip()
            own.append(Setting(key, "table", "none", meaning, flags.get(key, "")))
            continue
        if nested is not None:
            whole = field.get_default(call_default_factory=True)
            inner.append(
                (
                    _section_key(key, field.annotation),
                    nested,
                    whole if isinstance(whole, Settings) else None,
                )
            )
            continue
        default = (
            _default(field) if defaults is None else _shown(getattr(defaults, name))
        )
        meaning = (field.description or "").replace("{default}", _plain(field.default))
        own.append(Setting(key, _type(field), default, meaning, flags.get(key, "")))
    if own:
        yield Section(prefix, inspect.getdoc(model) or "", own)
    for key, nested, whole in inner:
        shown[nested] = key
        yield from sections(nested, flags, key, whole, shown)


def _section_key(key: str, annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is dict:
        return f"{key}.NAME"
    return f"[{key}]" if origin in (tuple, list) else key


def _nested(annotation: Any) -> type[Settings] | None:
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        return annotation
    models = [_nested(inner) for inner in get_args(annotation)]
    return next((model for model in models if model is not None), None)


def _is_optional(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType)


def _type(field: FieldInfo) -> str:
    text = _type_of(field.annotation)
    for bound in field.metadata:
        for kind, sign in _BOUNDS.items():
            if isinstance(bound, kind):
                value = getattr(bound, kind.__name__.lower())
                text += (
                    f", {sign} {value:g}"
                    if isinstance(value, float)
                    else f", {sign} {value}"
                )
    return text


def _type_of(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_of(inner[0])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inner)
    if _is_optional(annotation):
        return " or ".join(_type_of(part) for part in inner if part is not NoneType)
    if origin in (tuple, list, frozenset):
        return f"list of {_type_of(inner[0])}"
    if origin is dict or annotation is dict:
        return "table"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{member.value}`" for member in annotation)
    return _TYPES.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    return "*required*" if value is PydanticUndefined else _shown(value)


def _shown(value: Any) -> str:
    if value is None or value in ((), {}):
        return "unset" if value is None else "none"
    if value == "":
        return "empty"
    if isinstance(value, (tuple, list)):
        if len(value) > _MAX_ITEMS:
            return f"{len(value)} of them"
        return ", ".join(f"`{_plain(item)}`" for item in value)
    return f"`{_plain(value)}`"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value.value if isinstance(value, Enum) else value)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;")
