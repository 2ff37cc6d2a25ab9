"""A griffe extension: docstrings with the texts of all options, and their `>>>` examples as code blocks."""

from __future__ import annotations

import re
from collections import ChainMap
from importlib import import_module
from inspect import signature
from typing import Any

from griffe import (
    Alias,
    Class,
    Extension,
    Function,
    Module,
    Object,
    Parameter,
    ParameterKind,
    Parameters,
)

from pairkit.base.cli.options import documentation

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)


class Doctests(Extension):
    """Complete the docstrings of public functions, and put a fence around each run of `>>>` lines."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of each object that griffe reads."""
        if (
            isinstance(obj, Function)
            and obj.parent is not None
            and obj.parent.is_module
        ):
            _complete(obj)
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)


def _complete(func: Function) -> None:
    """Add the texts of options, and the arguments of a function that takes a request."""
    function = getattr(import_module(func.module.path), func.name, None)
    if "declared" not in getattr(function, "__dict__", {}) or func.docstring is None:
        return
    func.docstring.value = documentation(function)
    if "request" in [each.name for each in func.parameters]:
        fields = _fields(func.module, str(func.parameters["request"].annotation))
        func.parameters = Parameters(
            *(
                Parameter(
                    name,
                    annotation=fields[name].annotation,
                    kind=ParameterKind[each.kind.name.lower()],
                    default=None if each.default is each.empty else repr(each.default),
                )
                for name, each in signature(function).parameters.items()
            )
        )


def _fields(module: Module, name: str) -> dict[str, Object | Alias]:
    """The fields of a request, with those of its bases in the same module."""
    request = module.members[name]
    if not isinstance(request, Class):  # the imported base of all requests
        return {}
    inherited = [_fields(module, str(base)) for base in request.bases]
    return {**dict(ChainMap(*inherited)), **request.members}


def _fenced(example: re.Match[str]) -> str:
    indent = example[1]
    return f"{indent}```pycon\n{example[0]}\n{indent}```"
