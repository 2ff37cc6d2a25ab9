"""The generated parts of the documents are up to date."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.docs.blocks import ROOT


@pytest.fixture(scope="module")
def reference() -> Iterator[Any]:
    scripts = str(ROOT / "docs" / "scripts")
    sys.path.insert(0, scripts)
    yield import_module("reference")
    sys.path.remove(scripts)


def test_generated_parts_are_up_to_date(reference: Any) -> None:
    texts = reference.pages()
    assert {page.stem for page in texts} >= {"gis", "label-settings", "dataset", "python"}
    for page, text in texts.items():
        assert page.read_text(encoding="utf-8") == text, f"{page.relative_to(ROOT)}: run `make reference`"


def test_every_setting_is_described(reference: Any) -> None:
    rows = [
        line
        for page, text in reference.pages().items()
        if page.stem.endswith("-settings")
        for line in text.splitlines()
        if line.startswith("| `")
    ]
    assert len(rows) > 100
    assert [row for row in rows if not row.rstrip(" |") or row.endswith("|  |")] == []
