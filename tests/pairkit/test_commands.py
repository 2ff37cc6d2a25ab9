from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from pairkit import ConfigError
from pairkit.base.cli.commands import add_command, application, log_to_stderr, with_input_flags
from pairkit.base.cli.options import INPUT, Option, Options, documentation, same_arguments
from pairkit.base.errors import shell
from pairkit.base.settings import Settings, setting
from pairkit.dataset.shared_options import columns_given

if TYPE_CHECKING:
    from somewhere import Heavy  # type: ignore[import-not-found] # only type checkers load it


class Model(Settings):
    """Settings of the flags."""

    rate: float = setting(0.5, "How fast. Must be positive.")


class Result:
    """The result of the functions."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given

    def notes(self) -> list[str]:
        """On stderr."""
        return ["a note"]

    def tables(self) -> list[str]:
        """On stdout."""
        return [f"{name}={value!r}" for name, value in self.given.items()]

    def to_dict(self) -> dict[str, Any]:
        """With --json."""
        return {name: str(value) for name, value in self.given.items()}

    def next_steps(self) -> list[tuple[str, str]]:
        """Also on stderr."""
        return [("go on", "now")]


options = Options(
    sizes=Option(
        "Sizes of the loaves; some are small. Not shown.",
        read=lambda text: [float(x) for x in text.split(",")],
        main=True,
    )
)


@options(
    f"{__name__}:Model",
    source=Option(metavar="DOUGH", positional=True),
    out=Option(short="-o", required=True),
    rate=Option(panel=INPUT, setting="rate"),
    tops=Option(repeat=True),
    own=Option(hidden=True),
)
def bake(
    source: Heavy | str,
    out: str | Path | None = None,
    *,
    rate: float | None = None,
    sizes: Sequence[float] = (1, 2),
    tops: list[str] | None = None,
    steam: bool | None = None,
    fast: bool = False,
    own: object = None,
    progress: bool = True,
) -> Result:
    """Bake a dough.

    It takes a while.

    Args:
        source: The dough. It has risen.
        out: Where the bread goes.
        tops: Toppings. Default: none at all.
        steam: Use steam.
        fast: Skip the second rise.
        own: For Python.
        progress: Whether it is shown.
    """
    if rate == 0:
        raise ConfigError("rate = 0: expected more than 0")
    if rate == 1:
        raise ConfigError("setting 'rate' = 1.0: expected less than 1")
    return Result(
        {"source": source, "out": out, "rate": rate, "sizes": sizes, "tops": tops, "steam": steam}
        | {"fast": fast, "progress": progress}
    )


@options(butter=Option(optional=True), sizes=Option(options["sizes"].text))
def toast(source: str, *, butter: str, sizes: str = "") -> Result:
    """Toast a bread.

    Args:
        source: The bread.
        butter: What goes on it.
    """
    return Result({"source": source, "butter": butter, "sizes": sizes})


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "120")
    app = application("kitchen", "Bread.")

    @Options()(times=Option("How often."))
    def twice(function: Any, given: Any, *, times: int = 2) -> Any:
        return None if times == 0 else function(**given | {"source": given["source"] * times})

    lines = ("kitchen bake dough", "kitchen bake a", "kitchen bake b", "kitchen bake rarely")
    add_command(app, bake, *lines)
    add_command(app, toast, name="twice", run=twice, json=False)
    return lambda *words: CliRunner().invoke(app, words)


def test_flags_become_arguments(run: Any) -> None:
    words = ("bake", "rye", "-o", "bread", "--rate", "2", "--sizes", "3,4", "--tops", "a", "--tops", "b")
    found = run(*words, "--no-steam", "--fast", "--quiet")
    assert found.stdout.split("\n\n") == [
        *("source='rye'", "out='bread'", "rate=2.0", "sizes=[3.0, 4.0]", "tops=['a', 'b']", "steam=False"),
        *("fast=True", "progress=False\n"),
    ]
    assert found.stderr == ""


def test_defaults(run: Any) -> None:
    found = run("bake", "rye", "--out", "bread", "--json")
    assert json.loads(found.stdout)["sizes"] == str([1.0, 2.0])
    assert {**json.loads(found.stdout), "sizes": "(1, 2)"} == bake("rye", "bread").to_dict()
    assert found.stderr.splitlines()[0] == "a note"


def test_help_and_help_all(run: Any) -> None:
    short, whole = run("bake", "--help").stdout, run("bake", "--help-all").stdout
    assert "Bake a dough." in short
    assert "It takes a while." in short
    assert ("kitchen bake b" in short, "kitchen bake rarely" in short) == (True, False)
    assert "kitchen bake rarely" in whole
    sizes = "Sizes of the loaves; some are small. [default: 1,2]"
    for words in ("DOUGH", "The dough.", "Where the bread goes.", sizes):
        assert words in short
    hidden = ("--rate", "--tops", "--steam", "It has risen", "Not shown", "For Python", "--own", "--progress")
    assert not [words for words in hidden if words in short]
    for words in ("How fast. [default: 0.5]", "Toppings. [default: none at all]", "--no-steam", "--verbose"):
        assert words in whole
    assert "--own" not in whole


def test_shared_texts_are_expanded(run: Any) -> None:
    assert "Sizes of the loaves; some are small." in run("twice", "--help-all").stdout
    text = documentation(bake)
    assert text.startswith(
        "Bake a dough.\n\nIt takes a while.\n\nArgs:\n    source: The dough. It has risen.\n"
    )
    assert "    rate: How fast. Must be positive. Default: 0.5.\n    sizes: Sizes of the loaves;" in text
    assert "    own: For Python.\n" in text


def test_a_function_with_the_arguments_of_another() -> None:
    @same_arguments(bake)
    def weigh(arguments: dict[str, Any]) -> Result:
        """Weigh a dough.

        Raises:
            ConfigError: It is too heavy.
        """
        return Result(arguments)

    assert weigh("rye", rate=2).given["rate"] == 2
    assert weigh("rye").given["sizes"] == (1, 2)
    with pytest.raises(TypeError, match="colour"):
        weigh("rye", colour="red")  # type: ignore[call-arg]
    assert documentation(weigh).split("\n\n")[::2] == [
        "Weigh a dough.",
        "Raises:\n    ConfigError: It is too heavy.\n",
    ]


def test_run_function(run: Any) -> None:
    assert run("twice", "--source", "ab", "--times", "3").stdout.startswith("source='ababab'")
    assert run("twice", "--source", "ab", "--times", "0").stdout == ""
    assert "butter=None" in run("twice", "--source", "ab").stdout  # required in Python
    assert run("twice", "--source", "ab", "--json").exit_code == 2


@pytest.mark.parametrize(
    ("rate", "message"), [("0", "--rate 0: expected more than 0"), ("1", "--rate 1.0: expected less than 1")]
)
def test_errors_name_the_flag(run: Any, rate: str, message: str) -> None:
    found = run("bake", "rye", "-o", "bread", "--rate", rate)
    with shell():
        assert str(found.exception) == message


def test_version_and_completion(run: Any) -> None:
    assert run("--version").stdout.startswith("kitchen (aoe-toolkit ")
    shown = run("--help").stdout
    assert "--install-completion" in shown
    assert "\x1b" not in shown  # a pipe has no colours


def test_verbose_log(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("pairkit")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "level", logging.NOTSET)
    log_to_stderr("pairkit")
    log_to_stderr("pairkit")
    logging.getLogger("pairkit.dataset.reading.reader").info("a\x1b[31m line")
    logging.getLogger("somebody.elses").info("their own")
    assert capsys.readouterr().err == "a\ufffd[31m line\n"
    logger.setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (
            "pairs report d.csv",
            "pairs report d.csv --columns text1=1,text2=2 --labels a=skip --bad-rows skip",
        ),
        (
            "aoe evaluate --data d.csv",
            "aoe evaluate --data d.csv --columns text1=1,text2=2 --labels a=skip --bad-rows skip",
        ),
        ("aoe sample-pairs --data d.csv", "aoe sample-pairs --data d.csv --columns text1=1,text2=2"),
        ("pairs report other", "pairs report other"),
    ],
)
def test_next_step_keeps_input_flags(step: str, words: str) -> None:
    columns = {"text1": "1", "text2": "2"}
    given = {"columns": columns, "labels": "a=skip", "label_range": None, "bad_rows": "skip"}
    for source in ({"source": "d.csv"}, {"data": {"name": "d.csv"}}, {"data": "d.csv"}):
        assert " ".join(with_input_flags(step.split(), source | given)) == words
    assert with_input_flags(step.split(), {"source": "d.csv", "bad_rows": "error"}) == step.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("text1=a, text2 = b=c,", {"text1": "a", "text2": "b=c"}),
        ("1, 2,4", {"text1": "1", "text2": "2", "label": "4"}),
        ("2,1", {"anchor": "2", "positive": "1"}),
        ("2", {"text": "2"}),
        ("1,2,3,4", "expected the numbers"),
        *((wrong, "expected name=value") for wrong in ("text1", "=a", "text1=", " =a")),
    ],
)
def test_columns_by_name_or_number(text: str | None, expected: Any) -> None:
    if not isinstance(expected, str):
        assert columns_given(text) == expected
        return
    with shell(), pytest.raises(ConfigError, match=f"^--columns {text}: {expected}"):
        columns_given(text)
