"""A griffe extension: docstrings with the texts of all options, and their `>>>` examples as code blocks."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from griffe import Extension, Function, Object

from pairkit.base.cli.options import documentation

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)


class Doctests(Extension):
    """Complete the docstrings of public functions, and put a fence around each run of `>>>` lines."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of each object that griffe reads."""
        if isinstance(obj, Function) and obj.parent is not None and obj.parent.is_module:
            _complete(obj)
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)


def _complete(func: Function) -> None:
    """Add the texts of options, and with `same_arguments` the other function's parameters."""
    function = getattr(import_module(func.module.path), func.name, None)
    declared = getattr(function, "__dict__", {})
    if "options" in declared and func.docstring is not None:
        func.docstring.value = documentation(function)
    if "same_as" in declared:
        func.parameters = func.parent.members[declared["same_as"].__name__].parameters


def _fenced(example: re.Match[str]) -> str:
    indent = example[1]
    return f"{indent}```pycon\n{example[0]}\n{indent}```"
