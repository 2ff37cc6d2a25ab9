"""Compares the public names with a list, so that every change of them is deliberate."""

import ast
import enum
import inspect
import sys
import types
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import torch
from transformers import PreTrainedConfig

from tests.support.shorthand import parametrize

PACKAGES = ("pairkit", "gis_builder", "llm_labeler", "aoe_train")
FILE = Path(__file__).with_name("public_names.txt")
RENEW = "python -m tests.test_public_names"


@parametrize("package", PACKAGES)
def test_public_names_are_those_of_the_list(package):
    lines = FILE.read_text().splitlines()
    expected = [line for line in lines if line.startswith(f"{package}.")]
    assert [*lines_of(package)] == expected, (
        f"the public names changed: if this is intended, run `{RENEW}`"
    )


@parametrize("name", [*PACKAGES, "aoe_train.objectives.losses"])
def test_dir_lists_public_names_only(name):
    module = import_module(name)
    assert dir(module) == sorted(module.__all__)  # used by tab completion
    assert len({*module.__all__}) == len(module.__all__)


def lines_of(package):
    """One line per public name and per public member of a class."""
    module = import_module(package)
    for name in sorted(module.__all__):
        yield from _lines(f"{package}.{name}", getattr(module, name))


def _lines(name, thing):
    if isinstance(thing, types.ModuleType):
        for inner in sorted(thing.__all__):
            yield from _lines(f"{name}.{inner}", getattr(thing, inner))
    elif inspect.isclass(thing):
        of_transformers = (
            issubclass(thing, PreTrainedConfig | torch.nn.Module) and ".ran." in name
        )
        yield f"{name}: {_kind(thing)}{'' if of_transformers else _signature(thing)}"
        yield from () if of_transformers else _members(name, thing)
    elif callable(thing):
        yield f"{name}{_signature(thing)}"
    else:
        yield f"{name}: {type(thing).__name__}"


def _kind(thing):
    bases = [base.__name__ for base in thing.__bases__ if base is not object]
    return f"class of {', '.join(bases)} " if bases else "class "


def _members(name, thing):
    if issubclass(thing, enum.Enum):
        yield from (f"{name}.{member}" for member in thing.__members__)
        return
    # In the signature.
    given = {field.name for field in fields(thing)} if is_dataclass(thing) else {*()}
    for member, value in sorted(vars(thing).items()):
        if member.startswith("_") or member in given:
            continue
        if isinstance(value, property):
            yield f"{name}.{member} -> {inspect.signature(value.fget).return_annotation}"
        elif isinstance(value, (classmethod, staticmethod)):
            yield f"{name}.{member}{_signature(value.__func__)}"
        elif inspect.isfunction(value):
            yield f"{name}.{member}{_signature(value)}"


def _signature(thing):
    try:
        signature = inspect.signature(thing)
        plain = [
            one.replace(annotation=_plain(one.annotation))
            for one in signature.parameters.values()
        ]
        return str(signature.replace(parameters=plain)).replace("'", "")
    except (TypeError, ValueError):  # a class without a constructor signature
        return ""


def _plain(annotation):
    """An annotation without the metadata of `Annotated`."""
    if not isinstance(annotation, str) or "Annotated[" not in annotation:
        return annotation
    expression = ast.parse(annotation, mode="eval").body
    return ast.unparse(expression.slice.elts[0])


def renew():
    """Write the current public names to the list."""
    lines = []
    for package in PACKAGES:
        lines += lines_of(package)
    FILE.write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(renew())
