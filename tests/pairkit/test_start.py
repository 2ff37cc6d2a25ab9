from __future__ import annotations

import subprocess
import sys

import pytest

import pairkit
from pairkit.start import start


def test_on_windows_it_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit) as ended:
        start("gis_builder._cli")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: needs Linux or macOS; on Windows, use it in WSL\n"


@pytest.mark.parametrize("package", ["pairkit", "gis_builder", "llm_labeler", "aoe_train"])
def test_little_is_imported_before_an_interrupt_is_taken(package: str) -> None:
    program = f"import sys, {package}.__main__; print(*sys.modules)"
    found = subprocess.check_output([sys.executable, "-S", "-c", program], text=True).split()
    assert not {"typer", "rich", "polars", "pydantic", "importlib.metadata"} & {*found}


def test_the_version_is_known() -> None:
    assert pairkit.__version__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pairkit.nothing
