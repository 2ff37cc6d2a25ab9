"""The texts in a module's code, for tests of messages."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Texts with their lines, without docstrings; fields of f-strings are blanks."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            docstrings |= {id(part) for part in node.values}
            parts = (part.value if isinstance(part, ast.Constant) else " " for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value
