"""A griffe extension: docstrings with the texts of all options, and their `>>>` examples as code blocks."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from inspect import signature
from typing import Any

from griffe import (
    Expr,
    Extension,
    Function,
    Module,
    Object,
    Parameter,
    ParameterKind,
    Parameters,
    safe_get_annotation,
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
        func.parameters = Parameters(
            *(
                Parameter(
                    name,
                    annotation=_annotation(each.annotation, func.module),
                    kind=ParameterKind[each.kind.name.lower()],
                    default=None if each.default is each.empty else repr(each.default),
                )
                for name, each in signature(function).parameters.items()
            )
        )


def _annotation(text: str, module: Module) -> Expr | str | None:
    """An annotation whose names are links."""
    return safe_get_annotation(ast.parse(text, mode="eval").body, parent=module)


def _fenced(example: re.Match[str]) -> str:
    indent = example[1]
    return f"{indent}```pycon\n{example[0]}\n{indent}```"
