"""The package `papers` imports no private module of the packages that it uses."""

from __future__ import annotations

import ast
from pathlib import Path

HOME = Path(__file__).parents[2] / "papers"


def test_no_private_module_is_imported() -> None:
    found = [
        f"{path.relative_to(HOME)}: {node.module}"
        for path in HOME.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and "._" in node.module
    ]
    assert found == []
