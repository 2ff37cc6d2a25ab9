from __future__ import annotations

import subprocess
import sys

import pytest

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


def test_a_name_is_loaded_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import pairkit
    from pairkit.face import lazy_names

    load, names = lazy_names("pairkit", {"keyed_hash": "pairkit.keyed", "keyed": "pairkit.keyed"})
    monkeypatch.setattr(pairkit, "keyed_hash", None, raising=False)
    from pairkit import keyed

    assert load("keyed_hash") is keyed.keyed_hash
    assert load("keyed") is keyed
    assert pairkit.keyed_hash is keyed.keyed_hash  # kept, so that it is not asked for again
    assert names() == ["keyed", "keyed_hash"]
    with pytest.raises(AttributeError, match="module 'pairkit' has no attribute 'nothing'"):
        load("nothing")
