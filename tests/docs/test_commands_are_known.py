"""Each command line in the documents has a known command, flags and settings."""

import re
import shlex
import tomllib
from functools import cache

import pytest
from typer.main import get_command

from tests.conftest import command_line
from tests.docs.blocks import PAGES, ROOT, blocks_of, each_page

SCRIPTS = {
    name: entry.partition(".")[0]
    for name, entry in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "scripts"
    ].items()
}
_DEFAULT = re.compile(r"\. \[default: [^\]]+\]$")  # at the end of a help text
MODULES = {package: script for script, package in SCRIPTS.items()}


@each_page(PAGES)
def test_command_lines_are_valid(page):
    for line, words in command_lines(page):
        script, name, *arguments = words
        assert name in tree(script).commands, (
            f"{page}:{line}: unknown command {script} {name}"
        )
        try:
            tree(script).commands[name].make_context(name, arguments)
        except Exception as error:  # noqa: BLE001 - the class depends on the version of typer
            pytest.fail(f"{page}:{line}: {shlex.join(words)}: {error}")


def test_there_are_command_lines():
    assert sum(1 for page in PAGES for _ in command_lines(page)) > 50


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_ends_with_the_default(script):
    helps = {
        f"{script} {name} {param.name}": param.help
        for name, command in tree(script).commands.items()
        for param in command.params
        if "default" in (getattr(param, "help", None) or "").lower()
    }
    assert {
        name: text for name, text in helps.items() if not _DEFAULT.search(text)
    } == {}


def test_help_lists_the_main_command_first():
    first = {script: next(iter(tree(script).commands)) for script in SCRIPTS}
    assert first == {
        "gis": "build",
        "label": "generate",
        "aoe": "train",
        "pairs": "audit",
    }


def command_lines(page):
    """Yields the words of each line that runs one of our scripts, the script first."""
    for block in blocks_of(page):
        if block.language in {"sh", "bash"}:
            for line in block.text.replace("\\\n", " ").splitlines():
                if words := _own_words(shlex.split(line.rstrip("& "), comments=True)):
                    yield block.line, words


def _own_words(words):
    for index, word in enumerate(words):
        if word == "-m" and words[index + 1] in MODULES:
            return [MODULES[words[index + 1]], *words[index + 2 :]]
    return words if words and words[0] in SCRIPTS else []


@cache
def tree(script):
    """The command line of a script."""
    return get_command(command_line(SCRIPTS[script]))
