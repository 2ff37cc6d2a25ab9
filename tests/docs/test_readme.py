"""README is short, and what the documents at the root link to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

MOST_WORDS = 900
PAGES = (*ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md", ROOT / "data" / "README.md")
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)|(?:src|srcset)=\"([^\"]+)\"")


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= MOST_WORDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = [one or other for one, other in _LINK.findall(page.read_text(encoding="utf-8"))]
    here = [link for link in links if not link.startswith(("http://", "https://"))]
    assert [link for link in here if not (page.parent / link).exists()] == []
