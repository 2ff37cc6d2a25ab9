"""Messages name both the flag and the keyword argument."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.messages import texts_of

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("pairkit", "gis_builder")
# Definitions of flags, patterns, and words of threads.
SKIPPED = {
    "api.py",
    "cli.py",
    "__main__.py",
    "commands",
    "commands.py",
    "flags.py",
    "secrets",
    "detection",
}
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]+)")
A_COMMAND = re.compile(r"gis import --help")


def flags_alone(source: str) -> list[str]:
    """The flags in a module's messages without their keyword argument."""
    found = []
    for line, text in texts_of(source):
        if not FLAG.fullmatch(text):  # otherwise a definition of a flag
            for flag in FLAG.findall(A_COMMAND.sub("", text)):
                if f"{flag.replace('-', '_')}=" not in text:
                    found.append(f"{line}: --{flag}")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_messages_name_flag_and_keyword(package: str) -> None:
    files = [path for path in (ROOT / package).rglob("*.py") if SKIPPED.isdisjoint(path.parts)]
    assert files
    assert {path.name: flags for path in files if (flags := flags_alone(path.read_text()))} == {}


def test_flags_alone() -> None:
    assert flags_alone('raise E(f"{x}: give " "--cut-negatives")') == ["1: --cut-negatives"]
    assert flags_alone('raise E("give --cut-negatives (cut_negatives=True), see gis import --help")') == []
    assert flags_alone('"""--out"""\noption("--out")') == []
