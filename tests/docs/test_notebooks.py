"""The notebooks are generated from the tutorials, without outputs."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import pytest

from tests.docs.blocks import ROOT

pytest.importorskip("jupytext")


@pytest.fixture(scope="module")
def notebooks() -> Any:
    scripts = str(ROOT / "docs" / "scripts")
    sys.path.insert(0, scripts)
    try:
        return import_module("notebooks")
    finally:
        sys.path.remove(scripts)


def test_notebooks_are_up_to_date(notebooks: Any) -> None:
    assert len(notebooks.pages()) >= 5
    for page in notebooks.pages():
        committed = page.with_suffix(".ipynb").read_text(encoding="utf-8")
        assert committed == notebooks.notebook(page), f"{page.stem}: run `make notebooks`"
