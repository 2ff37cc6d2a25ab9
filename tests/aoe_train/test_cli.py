"""The command line itself: help without torch, and a plain word where torch is absent."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

from aoe_train import Encoder
from tests import forked

COMMANDS = [
    *("train", "pretrain", "convert", "encode", "evaluate", "export", "push"),
    *("figures", "reproduce"),
]
CHECKPOINT = Path(__file__).parent / "data" / "ran.ckpt"
WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""
RUN = "from aoe_train._cli import main; main()"
HELP = """
from aoe_train._cli import app
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


def test_help_is_quick() -> None:
    best = min(_timed() for _ in range(3))
    assert best < 3  # CPU seconds; 0.3 of them on an idle core


def _timed() -> float:
    """CPU seconds of the command, a process of its own."""
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert _python("-m", "aoe_train", "--help").returncode == 0
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime - begun.ru_utime + ended.ru_stime - begun.ru_stime


def test_without_torch_it_says_what_to_install(bert: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a\n")
    arguments = ("encode", str(tmp_path / "t.txt"), "-m", str(bert), "-o", str(tmp_path / "v.npy"))
    found = _python("-c", WITHOUT_TORCH + RUN, *arguments)
    assert found.returncode == 2
    assert "pip install 'aoe-toolkit[train]'" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_converted_checkpoint_is_a_model(tmp_path: Path) -> None:
    size = _vocabulary_size()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(chr(97 + n) for n in range(size - 5))]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    arguments = ["aoe_train", "convert", str(CHECKPOINT), "--vocab", "vocab.txt", "--heads", "3", "--json"]
    done = forked.run(*arguments, "--out", "ran", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["layers"] == 2
    encoder = Encoder.load(tmp_path / "ran")
    assert encoder.settings.pooling == "cells"
    assert encoder.encode(["a b", "c"]).shape == (2, encoder.dim)
    again = forked.run(*arguments, "--out", "ran", cwd=tmp_path)
    assert again.returncode == 2
    assert "exists" in again.stderr


def test_a_vocabulary_of_another_checkpoint(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(500))]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    arguments = ("convert", str(CHECKPOINT), "--vocab", "vocab.txt", "--heads", "3", "--out", "ran")
    done = forked.run("aoe_train", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "505 tokens" in done.stderr
    assert not (tmp_path / "ran").exists()


def _vocabulary_size() -> int:
    from aoe_train._backbones.ran.tensor_bundle import read_bundle

    return len(read_bundle(CHECKPOINT)["rannet/token-embedding/embeddings"])
