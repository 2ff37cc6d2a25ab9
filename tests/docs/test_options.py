"""An option has the same name, text and default in Python, in help and on the pages."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from aoe_train.data.defaults import BATCH_SIZE
from aoe_train.model.collection import WEIGHTS
from pairkit.base.cli.options import Parameter, documentation, parameters
from tests.conftest import command_line

PACKAGES = {
    "pairs": "pairkit",
    "gis": "gis_builder",
    "label": "llm_labeler",
    "aoe": "aoe_train",
}
SENTENCE = re.compile(r"(?:[A-Z`]|[a-z-]+[,:/ ]).*[.…]$|.*\.$", re.DOTALL)


def functions(package: str) -> Iterator[Callable[..., Any]]:
    module = importlib.import_module(package)
    for name in module.__all__:
        function = getattr(module, name)
        if inspect.isfunction(function) and hasattr(function, "declared"):
            yield function


OPTIONS = [
    pytest.param(
        function, parameter, id=f"{package}.{function.__name__}.{parameter.name}"
    )
    for package in PACKAGES.values()
    for function in functions(package)
    for parameter in parameters(function, of_command=False)
]


def another(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    return (
        value + 17
        if isinstance(value, int | float)
        else ("zebra",)
        if isinstance(value, tuple)
        else "zebra"
    )


def renewed(function: Callable[..., Any], name: str) -> Parameter:
    return next(
        each for each in parameters(function, of_command=False) if each.name == name
    )


@pytest.mark.parametrize(("function", "parameter"), OPTIONS)
def test_a_new_default_is_in_help_and_documentation(
    function: Callable[..., Any], parameter: Parameter, monkeypatch: pytest.MonkeyPatch
) -> None:
    if parameter.field is not None:
        value = another(parameter.field.default)
        monkeypatch.setattr(parameter.field, "default", value)
    elif parameter.default not in (None, inspect.Parameter.empty, ()):
        value = another(parameter.default)
        declared = inspect.signature(function)
        changed = declared.parameters[parameter.name].replace(default=value)
        every = [
            changed if each.name == parameter.name else each
            for each in declared.parameters.values()
        ]
        monkeypatch.setattr(
            function, "__signature__", declared.replace(parameters=every), raising=False
        )
    else:
        return
    shown = {True: "on", False: ""}.get(
        value,
        "zebra"
        if value == ("zebra",)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value),
    )
    new = renewed(function, parameter.name)
    assert shown in new.default_text
    assert shown in new.help
    if parameter.field is not None:
        assert shown in documentation(function)


@pytest.mark.parametrize(("function", "parameter"), OPTIONS)
def test_each_text_is_a_sentence_of_its_own(
    function: Callable[..., Any], parameter: Parameter
) -> None:
    assert SENTENCE.match(parameter.text), parameter.text
    assert not re.search(r"\bSee `|\bAs for `", parameter.text), parameter.text
    lines = " ".join(documentation(function).split())
    assert f"{parameter.name}: {' '.join(parameter.entry.split())}" in lines


@pytest.mark.parametrize("package", PACKAGES.values())
def test_python_shows_the_whole_text(package: str) -> None:
    for function in functions(package):
        assert function.__doc__ == documentation(function)
        assert not re.search(r"Annotated|Option\(", str(inspect.signature(function)))


@pytest.mark.parametrize("package", PACKAGES.values())
def test_an_option_has_the_same_name_in_python_and_in_the_shell(package: str) -> None:
    for command in command_line(package).registered_commands:
        for name, parameter in command.cls.declared.items():
            expected = "--set" if name == "settings" else f"--{name.replace('_', '-')}"
            assert parameter.option.long in ("", expected)


@pytest.mark.parametrize(("script", "package"), PACKAGES.items())
def test_help_shows_every_option(
    script: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    for command in command_line(package).registered_commands:
        name = command.name or command.callback.__name__.replace("_", "-")
        shown = " ".join(
            CliRunner()
            .invoke(command_line(package), [name, "--help-all"])
            .output.split()
        )
        for parameter in command.cls.declared.values():
            assert " ".join(parameter.help.replace("`", "").split()) in shown.replace(
                "`", ""
            )


def test_defaults_in_words_are_those_of_the_code() -> None:
    import aoe_train

    assert f"Default: {BATCH_SIZE}; " in renewed(aoe_train.train, "batch_size").text
    assert (
        f"; {WEIGHTS['bm25']} without one." in renewed(aoe_train.search, "weight").text
    )


def test_a_page_shows_a_new_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "path", [*sys.path, str(Path(__file__).parents[2] / "docs" / "scripts")]
    )
    reference = importlib.import_module("reference")
    before = reference.pages()
    for function in functions("aoe_train"):
        for parameter in parameters(function):
            if parameter.field is not None and parameter.model.endswith(
                "TrainSettings"
            ):
                value = another(parameter.field.default)
                if value == "zebra" and parameter.field.default is None:
                    continue
                with monkeypatch.context() as context:
                    context.setattr(parameter.field, "default", value)
                    after = reference.pages()
                changed = {
                    page.stem for page, text in after.items() if before[page] != text
                }
                assert {"aoe", "aoe-settings"} <= changed, parameter.name
        break
