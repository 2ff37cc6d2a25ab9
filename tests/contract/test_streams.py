"""How the four command lines take full and closed streams, poor locales, and Ctrl-C at any time."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from tests.conftest import command_line
from tests.contract.conftest import run_here
from tests.support.shorthand import parametrize

POOR = {
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONIOENCODING": "ascii",
}
FULL = Path("/dev/full")


def ran(package, *arguments, env=None, **options):
    command = [sys.executable, "-m", package, *arguments]
    environment = {**os.environ, **(env or {})}
    return subprocess.run(
        command,
        env=environment,
        check=False,
        timeout=120,
        stderr=subprocess.PIPE,
        **options,
    )


@parametrize("package", ["pairkit", "gis_builder", "llm_labeler", "aoe_train"])
def test_every_command_has_help_with_examples(package):
    app = get_command(command_line(package))
    assert run_here(package, "--help").code == 0
    for name in app.commands:
        done = run_here(package, name, "--help")
        assert done.code == 0
        assert f"{app.name} {name}" in done.out.split("Usage")[1].split("\n", 1)[1]


def test_a_closed_standard_input_is_empty():
    done = ran("aoe_train", "search", "index", "-", preexec_fn=lambda: os.close(0))
    assert done.returncode == 3
    assert b"the text is empty" in done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_line():
    with FULL.open("wb") as full:
        done = ran("pairkit", "--help", stdout=full)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        "error: standard output can't be written (No space left on device); free space"
    ]


@parametrize("command", [["audit", "--json"], ["show", "--split", "train"]])
def test_texts_in_a_poor_locale(tmp_path, command):
    pairs = tmp_path / "p\u00e9\U0001f600.jsonl"
    row = {
        "text1": "caf\u00e9 \U0001f600 \u91cd\u8907 {n}",
        "text2": "na\u00efve \u2028 text",
    }
    pairs.write_text("\n".join(json.dumps(row | {"label": n % 2}) for n in range(4)))
    done = ran(
        "pairkit",
        command[0],
        str(pairs),
        *command[1:],
        env=POOR,
        stdout=subprocess.PIPE,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    if "--json" in command:
        json.loads(done.stdout.splitlines()[-1])
    closed = ran("pairkit", command[0], str(pairs), preexec_fn=lambda: os.close(1))
    assert (closed.returncode, b"Traceback" in closed.stderr) == (0, False)


@parametrize("package, command", [("pairkit", "audit"), ("llm_labeler", "plan")])
def test_names_that_are_no_unicode(package, command):
    done = ran(
        package,
        command,
        os.fsdecode(b"no-\xff\x1b[2J-file"),
        env=POOR,
        stdout=subprocess.PIPE,
    )
    assert done.returncode in (2, 3)
    assert b"Traceback" not in done.stderr
    assert b"\x1b[2J" not in done.stderr


@pytest.mark.usefixtures("interruptible")
@parametrize(
    "package, module",
    [
        ("gis_builder", "rich.console"),
        ("llm_labeler", "pairkit.base.errors"),
        ("pairkit", "pairkit.base.errors"),
        ("aoe_train", "pairkit.base.errors"),
    ],
)
def test_an_interrupt_while_it_is_imported_is_one_line(package, module):
    begun = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", package, "--help"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert begun.stderr is not None
    for line in begun.stderr:
        if line.rstrip().endswith(f" {module}"):
            begun.send_signal(signal.SIGINT)
            break
    rest = begun.stderr.read()
    assert "Traceback" not in rest
    assert begun.wait(timeout=60) == 130
    assert rest.count("interrupted; run the same command again to continue") == 1
