"""What a function says when it fails is read in notebooks, too: no flag without its keyword argument."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import llm_labeler

ROOT = Path(llm_labeler.__file__).parent
_FLAG = re.compile(r"--([a-z][a-z-]*)")
_KEYWORDS = {"llm": "llms", "set": "settings"}  # whose flag has another name


def said(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module that may be shown: all but docstrings; a place that is filled in is a blank."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unsaid = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            unsaid |= {id(part) for part in node.values}
            parts = (part.value if isinstance(part, ast.Constant) else " " for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unsaid:
            yield node.lineno, node.value


def without_keyword(text: str) -> list[str]:
    """The flags in a text whose keyword argument is not there."""
    names = {flag: _KEYWORDS.get(flag, flag.replace("-", "_")) for flag in _FLAG.findall(text)}
    return [flag for flag, name in names.items() if not re.search(rf"(?<![-\w]){name}\b", text)]


def test_no_flag_stands_alone() -> None:
    paths = [path for path in sorted(ROOT.rglob("*.py")) if path.parent.name != "_commands"]
    assert [
        f"{path}:{line}: {flags}"
        for path in paths
        for line, text in said(path)
        if (flags := without_keyword(text))
    ] == []


def test_a_flag_alone_is_found() -> None:
    assert without_keyword("raise --max-cost or give --work") == ["max-cost", "work"]
    assert without_keyword("raise max_cost (--max-cost), name llms (--llm)") == []
