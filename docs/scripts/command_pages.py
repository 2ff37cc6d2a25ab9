"""Reference pages of the commands, generated from their command lines."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

ROOT = Path(__file__).resolve().parents[2]
_NO_PANEL = "Options"
_KINDS = {str: "text", int: "number", float: "number", Path: "path"}


def scripts() -> dict[str, str]:
    """Maps each console script to its package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    return {name: entry.partition(".")[0] for name, entry in project["scripts"].items()}


def command_tree(package: str) -> TyperGroup:
    """The command line of a package, with all its commands."""
    tree: Any = get_command(import_module(import_module(f"{package}.__main__").CLI).app)
    if not isinstance(tree, TyperGroup):
        raise TypeError(f"{package}: expected a group of commands")
    return tree


def command_page(script: str, package: str) -> str:
    """The page of one console script, in Markdown."""
    tree = command_tree(package)
    commands = {
        name: command for name, command in tree.commands.items() if not command.hidden
    }
    lines = [
        f"# `{script}`",
        "",
        _text(tree.help),
        "",
        "| command | what it does |",
        "|---|---|",
    ]
    lines += [
        f"| [`{script} {name}`](#{script}-{name}) | {_cell(_first_sentence(command.help))} |"
        for name, command in commands.items()
    ]
    for name, command in commands.items():
        lines += ["", f"## `{script} {name}`", "", *_command(script, name, command)]
    return "\n".join(lines) + "\n"


def _command(script: str, name: str, command: TyperCommand) -> Iterator[str]:
    yield _text(command.help)
    if hasattr(command, "add_texts"):
        command.add_texts()
    positional = [param for param in command.params if isinstance(param, TyperArgument)]
    words = " ".join(
        _name(param) if param.required else f"[{_name(param)}]" for param in positional
    )
    yield from ("", "```text", f"{script} {name} [OPTIONS] {words}".rstrip(), "```", "")
    if examples := _examples(command.epilog):
        yield from ("Examples:", "", "```sh", *examples, "```", "")
    if positional:
        yield from ("| argument | meaning |", "|---|---|")
        for param in positional:
            yield f"| `{_name(param)}` | {_cell(getattr(param, 'help', None) or '')} |"
        yield ""
    for panel, options in _panels(command).items():
        yield from (f"**{panel}**", "", "| flag | value | meaning |", "|---|---|---|")
        for option in options:
            flags = ", ".join(
                f"`{flag}`" for flag in (*option.opts, *option.secondary_opts)
            )
            value = "" if option.is_flag else f"`{_metavar(option)}`"
            yield f"| {flags} | {value} | {_meaning(option)} |"
        yield ""


def _panels(command: TyperCommand) -> dict[str, list[TyperOption]]:
    panels: dict[str, list[TyperOption]] = {}
    for param in command.params:
        if isinstance(param, TyperOption) and not param.hidden:
            panels.setdefault(
                getattr(param, "rich_help_panel", None) or _NO_PANEL, []
            ).append(param)
    return panels


def _meaning(option: TyperOption) -> str:
    text = _cell(option.help or "")
    if option.required:
        return f"{text} *Required.*"
    plain = option.default not in (None, False, (), []) and not callable(option.default)
    if plain and "default" not in text and not option.is_flag:
        return f"{text} [default: {option.default}]"
    return text


def _metavar(option: TyperOption) -> str:
    kind = option.type_descriptor.annotation
    return (
        option.metavar or _KINDS.get(kind, getattr(kind, "__name__", "value"))
    ).strip("<>")


def _name(param: TyperArgument) -> str:
    return (param.metavar or param.name or "").upper()


def _examples(epilog: str | None) -> list[str]:
    return re.findall(r"`([^`]+)`", epilog or "")


def _first_sentence(text: str | None) -> str:
    first = _text(text).partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.;])\s", first)[0].rstrip(";")


def _text(text: str | None) -> str:
    return inspect.cleandoc((text or "").replace("\f", ""))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;")
