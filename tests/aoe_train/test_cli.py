"""The command line itself: help without torch, and a plain word where torch is absent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COMMANDS = [*("train", "encode", "evaluate", "export", "push")]
WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""
RUN = "from aoe_train.cli import main; main()"
HELP = """
import aoe_train.objectives.kinds, aoe_train.settings.training
from aoe_train.cli import app
for command in sys.argv[1:]:
    app([command, "--help"], standalone_mode=False)
    print("end of help")
"""


def _python(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_help_has_examples_and_needs_no_torch() -> None:
    """All in one process, which takes longer to begin than to help."""
    helped = _python("-c", WITHOUT_TORCH + HELP, *COMMANDS)
    assert helped.returncode == 0, helped.stderr
    *pages, rest = helped.stdout.split("end of help\n")
    assert rest == ""
    for command, page in zip(COMMANDS, pages, strict=True):
        assert "Examples" in page
        assert f"aoe {command}" in page


def test_without_torch_it_says_what_to_install(bert: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a\n")
    arguments = ("encode", str(tmp_path / "t.txt"), "-m", str(bert), "-o", str(tmp_path / "v.npy"))
    found = _python("-c", WITHOUT_TORCH + RUN, *arguments)
    assert found.returncode == 2
    assert "pip install 'aoe-toolkit[train]'" in found.stderr
    assert "Traceback" not in found.stderr
