"""Help and documents call one thing by one name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from tests.docs.test_commands_are_known import SCRIPTS, tree

PAGES = (
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    ROOT / "benchmarks" / "README.md",
    ROOT / "data" / "README.md",
    ROOT / "papers" / "README.md",
)
# What is not said, and what is said instead.
INSTEAD = {
    r"\b(?:the|a|an|no|face) hub\b(?!`)|\bhub (?:id|name)\b": "the Hugging Face Hub, the Hub, a Hub id",
    r"\b[Dd]irector(?:y|ies)\b": "folder",
    r"(?i)\bgo(?:es)? on\b": "continue",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documents(page: Path) -> None:
    assert [*strays(page.read_text(encoding="utf-8"))] == []


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 700


@pytest.mark.parametrize("script", SCRIPTS)
def test_help(script: str) -> None:
    for name, command in tree(script).commands.items():
        told = [command.help or "", *(getattr(param, "help", None) or "" for param in command.params)]
        assert [*strays("\n".join(told))] == [], f"{script} {name}"


def strays(text: str) -> Iterator[str]:
    """Words that are not said, with what is said instead."""
    for pattern, instead in INSTEAD.items():
        for found in re.finditer(pattern, text):
            yield f"{found[0]!r}: {instead}"
