"""Files, settings and commands that documents and the Makefile name exist."""

import re

import pytest

from tests.docs.blocks import each_page
from tests.docs.test_commands_are_known import SCRIPTS, tree
from tests.docs.test_links import COMMITTED, ROOT
from tests.docs.test_words import PAGES

pytestmark = pytest.mark.skipif(not COMMITTED, reason="not a checkout of git")
_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_SETTING = re.compile(r"(?:--set )?(([a-z_]+)\.[a-z_.]+)(?:=\S+)?")
_FILE = re.compile(r"[\w./-]+\.py|(?:[\w-]+/)+(?:[\w-]+(?:\.\w+)?)?")
FILES = [path.relative_to(ROOT).as_posix() for path in COMMITTED]
TOP = {name.partition("/")[0] for name in FILES}


def spans(page):
    """Yields the code spans of a page."""
    yield from re.findall(r"`([^`\n]+)`", _BLOCK.sub("", page.read_text()))


def exists(name):
    """Whether the end of a committed file's path, or of one of its folders, has this name."""
    return any(f"/{path}/".find(f"/{name.strip('/')}/") >= 0 for path in FILES)


@each_page(PAGES)
def test_files_exist(page):
    named = [span for span in spans(page) if _FILE.fullmatch(span)]
    ours = [
        name for name in named if name.endswith(".py") or name.partition("/")[0] in TOP
    ]
    assert [name for name in ours if not exists(name)] == []


@each_page(PAGES)
def test_settings_exist(page):
    reference = [*(ROOT / "docs" / "reference").glob("*-settings.md")]
    keys = {span.strip("[]") for settings in reference for span in spans(settings)}
    # Names of one's own.
    sections = {key.partition(".")[0] for key in keys if "." in key} - {"datasets"}
    named = [found for span in spans(page) if (found := _SETTING.fullmatch(span))]
    ours = [
        found
        for found in named
        if found[2] in sections and not found[1].endswith(".json")
    ]
    assert [found[0] for found in ours if found[1] not in keys] == []


def test_the_sample_data_is_described():
    described = {*spans(ROOT / "data" / "README.md")}
    samples = {
        path.name + "/" * path.is_dir() for path in (ROOT / "data").iterdir()
    } - {"README.md"}
    assert samples - described == set()


def test_the_makefile_runs_known_commands():
    lines = re.findall(
        rf"\$\(BIN\)/({'|'.join(SCRIPTS)}) ([\w-]+)(.*)",
        (ROOT / "Makefile").read_text(),
    )
    assert len(lines) >= 8
    for script, name, rest in lines:
        assert name in tree(script).commands
        flags = {
            flag for param in tree(script).commands[name].params for flag in param.opts
        }
        assert {*re.findall(r"(?<!\S)--[\w-]+", rest)} <= flags, f"{script} {name}"
