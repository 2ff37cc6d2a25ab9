"""Error messages name the keyword argument of each flag, as they are also read in notebooks."""

from __future__ import annotations

import re
from pathlib import Path

import llm_labeler
from tests.messages import texts_of

ROOT = Path(llm_labeler.__file__).parent
_FLAG = re.compile(r"--([a-z][a-z-]*)")
_KEYWORDS = {"llm": "llms", "set": "settings"}  # flags with other names


def without_keyword(text: str) -> list[str]:
    """The flags in a text without their keyword argument."""
    names = {flag: _KEYWORDS.get(flag, flag.replace("-", "_")) for flag in _FLAG.findall(text)}
    return [flag for flag, name in names.items() if not re.search(rf"(?<![-\w]){name}\b", text)]


def test_messages_name_the_keyword_of_each_flag() -> None:
    paths = [path for path in sorted(ROOT.rglob("*.py")) if path.name not in ("api.py", "cli.py")]
    assert [
        f"{path}:{line}: {flags}"
        for path in paths
        for line, text in texts_of(path.read_text(encoding="utf-8"))
        if not _FLAG.fullmatch(text)  # part of a command
        if (flags := without_keyword(text))
    ] == []
