"""What is public, held against a written list, so that a change of it is seen and meant."""

from __future__ import annotations

import ast
import enum
import inspect
import sys
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedConfig

PACKAGES = ("pairkit", "gis_builder", "llm_labeler", "aoe_train")
FILE = Path(__file__).with_name("public_names.txt")
RENEW = "python -m tests.test_public_names"


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_public_is_what_is_written(package: str) -> None:
    written = [line for line in FILE.read_text(encoding="utf-8").splitlines() if _is_of(line, package)]
    assert [*lines_of(package)] == written, f"the public names changed: if they are meant to, run `{RENEW}`"


def test_a_package_says_what_it_has() -> None:
    for package in PACKAGES:
        module = import_module(package)
        assert dir(module) == sorted(module.__all__)  # what a tab completes; nothing else
        assert len({*module.__all__}) == len(module.__all__)


def test_a_module_of_the_surface_says_what_it_has() -> None:
    losses = import_module("aoe_train.objectives.losses")
    assert dir(losses) == sorted(losses.__all__)


def lines_of(package: str) -> Iterator[str]:
    """A line for each public name, and for each public method, property and field of a class."""
    module = import_module(package)
    for name in sorted(module.__all__):
        yield from _lines(f"{package}.{name}", getattr(module, name))


def _is_of(line: str, package: str) -> bool:
    return line.startswith(f"{package}.")


def _lines(name: str, thing: Any) -> Iterator[str]:
    if isinstance(thing, types.ModuleType):
        for inner in sorted(thing.__all__):
            yield from _lines(f"{name}.{inner}", getattr(thing, inner))
    elif inspect.isclass(thing):
        of_transformers = issubclass(thing, PreTrainedConfig | torch.nn.Module) and ".ran." in name
        yield f"{name}: {_kind(thing)}{'' if of_transformers else _signature(thing)}"
        yield from () if of_transformers else _members(name, thing)
    elif callable(thing):
        yield f"{name}{_signature(thing)}"
    else:
        yield f"{name}: {type(thing).__name__}"


def _kind(thing: type) -> str:
    bases = [base.__name__ for base in thing.__bases__ if base is not object]
    return f"class of {', '.join(bases)} " if bases else "class "


def _members(name: str, thing: type) -> Iterator[str]:
    if issubclass(thing, enum.Enum):
        yield from (f"{name}.{member}" for member in thing.__members__)
        return
    given = {field.name for field in fields(thing)} if is_dataclass(thing) else {*()}  # in the signature
    for member, value in sorted(vars(thing).items()):
        if member.startswith("_") or member in given:
            continue
        if isinstance(value, property):
            yield f"{name}.{member} -> {inspect.signature(value.fget).return_annotation}"  # type: ignore[arg-type]
        elif isinstance(value, (classmethod, staticmethod)):
            yield f"{name}.{member}{_signature(value.__func__)}"
        elif inspect.isfunction(value):
            yield f"{name}.{member}{_signature(value)}"


def _signature(thing: Any) -> str:
    try:
        signature = inspect.signature(thing)
        plain = [one.replace(annotation=_plain(one.annotation)) for one in signature.parameters.values()]
        return str(signature.replace(parameters=plain)).replace("'", "")
    except (TypeError, ValueError):  # of a class that is not made by calling it
        return ""


def _plain(annotation: Any) -> Any:
    """An annotation without what `Annotated` adds for commands."""
    if not isinstance(annotation, str) or "Annotated[" not in annotation:
        return annotation
    found: Any = ast.parse(annotation, mode="eval").body
    return ast.unparse(found.slice.elts[0])


def renew() -> None:
    """Write down what is public now; a package that can't be imported here keeps its lines."""
    lines: list[str] = []
    for package in PACKAGES:
        lines += lines_of(package)
    FILE.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(renew())
