"""Help and documents use the same terms."""

import re

import pytest

from tests.docs.blocks import ROOT, each_page
from tests.docs.test_commands_are_known import SCRIPTS, tree

PAGES = (
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    ROOT / "benchmarks" / "README.md",
    ROOT / "data" / "README.md",
    *(ROOT / "papers").glob("*.md"),
)
# Patterns to avoid, with the terms to use.
INSTEAD = {
    r"\b(?:the|a|an|no|face) hub\b(?!`)|\bhub (?:id|name)\b": "the Hugging Face Hub, the Hub, a Hub id",
    r"\b[Dd]irector(?:y|ies)\b": "folder",
    r"(?i)\bgo(?:es)? on\b": "continue",
}


@each_page(PAGES)
def test_documents(page):
    assert [*avoided_terms(page.read_text())] == []


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= 700


@pytest.mark.parametrize("script", SCRIPTS)
def test_help(script):
    for name, command in tree(script).commands.items():
        helps = [
            command.help or "",
            *(getattr(param, "help", None) or "" for param in command.params),
        ]
        assert [*avoided_terms("\n".join(helps))] == [], f"{script} {name}"


def avoided_terms(text):
    """Yields the terms to avoid in a text, with those to use."""
    for pattern, instead in INSTEAD.items():
        for term in re.finditer(pattern, text):
            yield f"{term[0]!r}: {instead}"
