"""The notebooks are what the tutorials make, and hold no outputs."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

import pytest

from tests.docs.blocks import ROOT, blocks_of

pytest.importorskip("jupytext")


@pytest.fixture(scope="module")
def notebooks() -> Any:
    scripts = str(ROOT / "docs" / "scripts")
    sys.path.insert(0, scripts)
    try:
        return import_module("notebooks")
    finally:
        sys.path.remove(scripts)


def test_they_are_up_to_date(notebooks: Any) -> None:
    assert len(notebooks.pages()) >= 5
    for page in notebooks.pages():
        written = page.with_suffix(".ipynb").read_text(encoding="utf-8")
        assert written == notebooks.notebook(page), f"{page.stem}: run `make notebooks`"


def test_they_hold_the_python_of_their_page_and_no_outputs(notebooks: Any) -> None:
    for page in notebooks.pages():
        cells = json.loads(page.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        assert [block.text.rstrip() for block in blocks_of(page) if block.language == "python"] == [
            text for text in code[1:] if not text.startswith("%%")
        ]
        assert not any(cell.get("outputs") for cell in cells)
        for text in code:
            if not text.startswith("%%"):
                compile(text, page.name, "exec")
