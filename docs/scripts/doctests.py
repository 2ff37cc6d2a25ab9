"""An extension of griffe: examples in docstrings (`>>>`) become blocks of code, wherever they stand."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)


class Doctests(Extension):
    """Put a fence around each run of lines that begins with `>>>`."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of an object when it is read."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(found: re.Match[str]) -> str:
    indent = found[1]
    return f"{indent}```pycon\n{found[0]}\n{indent}```"
