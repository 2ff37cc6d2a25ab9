"""What a module's code may say to a person: its texts, for tests that hold messages to a rule."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Each text with its line: all but docstrings; a place that an f-string fills in is a blank."""
    tree = ast.parse(source)
    unsaid = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            unsaid |= {id(part) for part in node.values}
            parts = (part.value if isinstance(part, ast.Constant) else " " for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unsaid:
            yield node.lineno, node.value
