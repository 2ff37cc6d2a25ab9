"""Generated parts of the documents and notebooks are up to date."""

from importlib import import_module

import pytest

from tests.docs.blocks import ROOT


@pytest.fixture
def reference(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "scripts"))
    return import_module("reference")


def test_the_reference(reference):
    texts = reference.pages()
    assert {page.stem for page in texts} >= {
        "gis",
        "label-settings",
        "dataset",
        "python",
    }
    for page, text in texts.items():
        assert page.read_text() == text, (
            f"{page.relative_to(ROOT)}: run `make reference`"
        )


def test_every_setting_is_described(reference):
    pages = [
        text
        for page, text in reference.pages().items()
        if page.stem.endswith("-settings")
    ]
    rows = [
        line for text in pages for line in text.splitlines() if line.startswith("| `")
    ]
    assert len(rows) > 100
    assert [row for row in rows if not row.rstrip(" |") or row.endswith("|  |")] == []


def test_notebooks(monkeypatch):
    """Made of the tutorials, without outputs."""
    pytest.importorskip("jupytext")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "scripts"))
    notebooks = import_module("notebooks")
    assert len(notebooks.pages()) >= 5
    for page in notebooks.pages():
        committed = page.with_suffix(".ipynb").read_text()
        assert committed == notebooks.notebook(page), (
            f"{page.stem}: run `make notebooks`"
        )
