"""`label` says plainly that it is not in this release."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("module", "name"), [("llm_labeler.cli", "label")])
def test_reserved_names(module: str, name: str) -> None:
    program = f"import sys; from {module} import main; main()"
    refused = subprocess.run(
        [sys.executable, "-c", program, "x"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert f"(`{name}`) is not in release" in refused.stderr
    helped = subprocess.run(
        [sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=False
    )
    assert helped.returncode == 0
    assert f"(`{name}`) is not in release" in helped.stdout
