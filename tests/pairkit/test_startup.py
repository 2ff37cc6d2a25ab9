from __future__ import annotations

import subprocess
import sys

import pytest

import pairkit
import pairkit.api.making
from pairkit.base.cli.startup import lazy_names, start

PACKAGES = ("pairkit", "gis_builder", "llm_labeler", "aoe_train")
HEAVY = {"typer", "rich", "polars", "pydantic", "numpy", "torch", "openai"}


def modules_after(line: str, *flags: str) -> set[str]:
    program = f"import sys; {line}; print(*sys.modules)"
    return {*subprocess.check_output([sys.executable, *flags, "-c", program], text=True).split()}


def test_light_imports() -> None:
    names = ", ".join(PACKAGES)
    assert not HEAVY & modules_after(f"import {names}; [dir(package) for package in ({names})]")


def test_ctrl_c_during_imports() -> None:
    names = ", ".join(f"{package}.__main__" for package in PACKAGES)
    assert not {"typer", "rich", "polars", "pydantic", "importlib.metadata"} & modules_after(
        f"import {names}", "-S"
    )


def test_lazy_names(monkeypatch: pytest.MonkeyPatch) -> None:
    load, names, every = lazy_names("pairkit", {"pairkit.api.making": "write merge"})
    monkeypatch.delattr(pairkit, "merge", raising=False)
    assert names() == every == sorted(every)
    assert load("merge") is pairkit.api.making.merge is vars(pairkit)["merge"]
    assert pairkit.__version__
    for missing in (lambda: load("nothing"), lambda: pairkit.nothing):
        with pytest.raises(AttributeError, match="module 'pairkit' has no attribute 'nothing'"):
            missing()


def test_windows_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit) as ended:
        start(lambda: None)
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: needs Linux or macOS; on Windows, use it in WSL\n"
