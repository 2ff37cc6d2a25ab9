"""What the name of a task's file rests on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import gis_builder
from gis_builder._archive.plan import _EXTRACTS, _JUDGES

PACKAGE = Path(gis_builder.__file__).parent
# Settings stand in the name themselves; how a file is read and written decides nothing of what is in it.
ELSEWHERE = {"_settings", "_archive/tasks", "_archive/objects"}


def imported(module: str) -> Iterator[str]:
    """What a module takes from this package, as a path without its ending."""
    for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gis_builder."):
            yield (node.module or "").removeprefix("gis_builder.").replace(".", "/")


@pytest.mark.parametrize("parts", [_EXTRACTS, _JUDGES], ids=["extract", "judge"])
def test_code_that_makes_a_file_is_in_its_name(parts: Sequence[str]) -> None:
    known = {part.removesuffix(".py") for part in parts} | ELSEWHERE
    own = [part for part in parts if part.startswith("_archive/")]
    taken = {name for module in own for name in imported(module) if name != "_archive"}
    assert len(taken) > 3
    assert {
        name for name in taken if not any(name == one or name.startswith(f"{one}/") for one in known)
    } == set()
