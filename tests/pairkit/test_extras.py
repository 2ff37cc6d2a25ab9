from __future__ import annotations

import pytest

from pairkit.app import terminal
from pairkit.app.errors import ConfigError
from pairkit.app.extras import needed_for


def lacking(name: str) -> None:
    raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    ("module", "extra"), [("matplotlib.figure", "figures"), ("torch", "train"), ("datasets", "hub")]
)
def test_what_is_missing_is_said_with_what_brings_it(module: str, extra: str) -> None:
    with pytest.raises(ConfigError) as told, needed_for("the picture"):
        lacking(module)
    package = module.partition(".")[0]
    assert str(told.value) == (
        f"the picture needs {package}, which is not installed: pip install 'aoe-toolkit[{extra}]'"
    )


def test_a_command_says_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        terminal.run(lambda: lacking("httpx2"))
    assert ended.value.code == 2
    assert "pip install 'aoe-toolkit[label]'" in capsys.readouterr().err
