"""A griffe extension that turns the `>>>` examples of docstrings into code blocks."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)


class Doctests(Extension):
    """Put a fence around each run of lines that begins with `>>>`."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of each object that griffe reads."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(example: re.Match[str]) -> str:
    indent = example[1]
    return f"{indent}```pycon\n{example[0]}\n{indent}```"
