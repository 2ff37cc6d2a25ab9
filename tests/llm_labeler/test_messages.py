"""What a function says when it fails is read in notebooks, too: no flag without its keyword argument."""

from __future__ import annotations

import re
from pathlib import Path

import llm_labeler
from tests.messages import texts_of

ROOT = Path(llm_labeler.__file__).parent
_FLAG = re.compile(r"--([a-z][a-z-]*)")
_KEYWORDS = {"llm": "llms", "set": "settings"}  # whose flag has another name


def without_keyword(text: str) -> list[str]:
    """The flags in a text whose keyword argument is not there."""
    names = {flag: _KEYWORDS.get(flag, flag.replace("-", "_")) for flag in _FLAG.findall(text)}
    return [flag for flag, name in names.items() if not re.search(rf"(?<![-\w]){name}\b", text)]


def test_no_flag_stands_alone() -> None:
    paths = [path for path in sorted(ROOT.rglob("*.py")) if path.name not in ("api.py", "cli.py")]
    assert [
        f"{path}:{line}: {flags}"
        for path in paths
        for line, text in texts_of(path.read_text(encoding="utf-8"))
        if not _FLAG.fullmatch(text)  # else a word of a command
        if (flags := without_keyword(text))
    ] == []


def test_a_flag_alone_is_found() -> None:
    assert without_keyword("raise --max-cost or give --work") == ["max-cost", "work"]
    assert without_keyword("raise max_cost (--max-cost), name llms (--llm)") == []
