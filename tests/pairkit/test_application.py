import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pairkit.app.application import tell_details
from pairkit.app.errors import ConfigError
from pairkit.app.flag import columns_given, mapping

ROOT = Path(__file__).parents[2]
SCRIPTS = ("pairkit", "gis_builder", "llm_labeler", "aoe_train")
TWO_COMMANDS = """
import logging
from typing import Annotated
from typer import Option
from pairkit.app.application import application
from pairkit.app.terminal import run, say

app = application("tool", "What it is for.")
Quiet = Annotated[bool, Option("--quiet", "-q", help="No notes.", rich_help_panel="Run")]


@app.command()
def go(name: str, *, quiet: Quiet = False, seed: int = 1) -> None:
    logging.getLogger("pairkit.dataset.reader").info("read %s", name)
    logging.getLogger("somebody.elses").info("their own talk")
    say(f"seed {seed}", quiet=quiet)


@app.command()
def stay() -> None:
    pass


run(app)
"""


def asked(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "80", "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-c", TWO_COMMANDS, *words]
    return subprocess.run(program, capture_output=True, text=True, check=False, env=environment)


def test_details_are_told_on_stderr_only_to_who_asks() -> None:
    assert asked("go", "a.tsv").stderr == "seed 1\n"
    for flag in ("-v", "--verbose"):
        done = asked("go", "a.tsv", flag, "--seed", "2")
        assert (done.stdout, done.stderr) == ("", "read a.tsv\nseed 2\n")
    assert asked("go", "a.tsv", "-v", "-q").stderr == "read a.tsv\n"
    assert asked("stay", "-v").returncode == 0


def test_the_flag_stands_beside_quiet_in_help() -> None:
    lines = asked("go", "--help").stdout.splitlines()
    (place,) = (place for place, line in enumerate(lines) if "--quiet" in line)
    assert "--verbose" in lines[place + 1]
    assert "-v" in asked("stay", "--help").stdout


@pytest.mark.parametrize("package", SCRIPTS)
def test_every_command_of_every_package_takes_it(package: str) -> None:
    from importlib import import_module

    from typer.main import get_command

    tree = get_command(import_module(f"{package}.cli").app)
    for name, command in tree.commands.items():  # type: ignore[attr-defined]  # a group's
        flags = [flag for option in command.params for flag in option.opts]
        assert flags.count("--verbose") == flags.count("-v") == 1, name


def test_told_twice_is_said_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("pairkit")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "level", logging.NOTSET)
    tell_details("pairkit")
    tell_details("pairkit")
    logging.getLogger("pairkit.dataset.reader").info("a\x1b[31m line")
    assert capsys.readouterr().err == "a\ufffd[31m line\n"
    logger.setLevel(logging.NOTSET)


def test_columns_are_names_or_numbers_in_order() -> None:
    assert columns_given(None) is None
    assert columns_given("text1=a,text2=b") == {"text1": "a", "text2": "b"}
    assert columns_given("1, 2,4") == {"text1": "1", "text2": "2", "label": "4"}
    assert columns_given("2,1") == {"anchor": "2", "positive": "1"}
    for wrong in ("1", "1,2,3,4"):
        with pytest.raises(ConfigError, match=f"^--columns {wrong}: expected the numbers of two texts"):
            columns_given(wrong)


def test_a_mapping_is_names_and_values_or_an_error_that_names_the_flag() -> None:
    assert mapping("--columns", None) is None
    assert mapping("--columns", "text1=a, text2 = b=c,") == {"text1": "a", "text2": "b=c"}
    for wrong in ("text1", "=a", "text1=", " =a"):
        with pytest.raises(ConfigError, match=f"^--columns {wrong}: expected name=value,name=value$"):
            mapping("--columns", wrong)
