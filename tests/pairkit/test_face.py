from __future__ import annotations

import subprocess
import sys

import pytest

import pairkit
from pairkit.app.startup import start

PROGRAM = """
import sys
{line}
heavy = {{"typer", "rich", "polars", "pydantic", "numpy", "torch", "openai"}}
print(*sorted(heavy & {{*sys.modules}}))
"""


@pytest.mark.parametrize("package", ["pairkit", "gis_builder", "llm_labeler", "aoe_train"])
def test_importing_a_package_imports_nothing_heavy(package: str) -> None:
    line = f"import {package}; dir({package})"
    found = subprocess.check_output([sys.executable, "-c", PROGRAM.format(line=line)], text=True)
    assert found.strip() == ""


def test_a_name_is_loaded_when_it_is_asked_for() -> None:
    import pairkit
    from pairkit.app.startup import lazy_names
    from pairkit.dataset.made import MadeDataset

    load, names, public = lazy_names("pairkit")
    assert load("MadeDataset") is MadeDataset
    assert vars(pairkit)["MadeDataset"] is MadeDataset  # kept, so that it is not asked for again
    assert names() == public == sorted(public)
    assert load("__version__") == pairkit.__version__
    with pytest.raises(AttributeError, match="module 'pairkit' has no attribute 'nothing'"):
        load("nothing")


def test_on_windows_it_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit) as ended:
        start("gis_builder.cli")
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
