"""README is short."""

from __future__ import annotations

from tests.docs.blocks import ROOT

MOST_WORDS = 900


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= MOST_WORDS
