"""Each installation alone, in an environment of its own: its commands work or name what is missing."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.shorthand import ROOT

UV = Path(sys.executable).with_name("uv")
DATA = ROOT / "data"
RULES = f"label generate --data {DATA}/sample_sentences.txt --draw 20 --llm wordnet --out pairs"
INDEX = f"aoe index {DATA}/sample_requests.csv --columns text=text --model minilm --out index"
# Extras, and commands with their exit code and words of what they print.
INSTALLATIONS = [
    (
        "",
        [
            ("gis --version", 0, "gis"),
            (f"gis import {DATA}/sample_tickets.csv --work work", 0, "50"),
            (RULES, 2, "[label]"),
            (INDEX, 2, "[train]"),
        ],
    ),
    (
        "label",
        [("label llms", 0, "wordnet"), (RULES, 0, ""), ("pairs audit pairs", 0, "")],
    ),
    (
        "train,minilm",
        [
            (INDEX, 0, ""),
            ("aoe search index refund", 0, "cosine"),
            ("label llms", 2, "[label]"),
        ],
    ),
    (
        "train,minilm,documents",
        [(f"aoe index {ROOT}/docs/about --model minilm --out index", 0, "")],
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "extras, commands", INSTALLATIONS, ids=[name or "none" for name, _ in INSTALLATIONS]
)
def test_an_installation(extras, commands, tmp_path):
    place = tmp_path / "env"
    subprocess.run([UV, "venv", "--quiet", place], check=True)
    package = f"{ROOT}[{extras}]" if extras else str(ROOT)
    install = [
        UV,
        "pip",
        "install",
        "--quiet",
        "--python",
        place,
        "--constraint",
        ROOT / "constraints.txt",
    ]
    subprocess.run([*install, package], check=True)
    for line, code, words in commands:
        name, *arguments = shlex.split(line)
        done = subprocess.run(
            [place / "bin" / name, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        printed = done.stdout + done.stderr
        assert done.returncode == code, printed
        assert "Traceback" not in printed
        assert words in printed
