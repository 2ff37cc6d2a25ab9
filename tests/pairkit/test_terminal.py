import os
import subprocess
import sys
from pathlib import Path

import pytest

from pairkit import (
    AuthError,
    BadReply,
    ConfigError,
    DataError,
    LeakError,
    PairkitError,
    RateLimited,
    RemoteError,
)
from pairkit.base.cli import terminal


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        *((ConfigError("bad [x]"), 2), (DataError("d"), 3), (LeakError("l"), 3), (RemoteError("r"), 4)),
        *((RateLimited("t", 3.0), 4), (AuthError("a"), 4), (BadReply("b"), 4), (PairkitError("p"), 1)),
    ],
)
def test_errors_and_exit_codes(error: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        terminal.run(lambda: _raise(error))
    assert exit_.value.code == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1
    if isinstance(error, ConfigError):
        assert captured.err == "error: bad [x]\n"


COMMAND = """
import sys, typer
from pairkit.base.cli.commands import Commands
from pairkit.base.cli.terminal import out, run
app = typer.Typer(cls=Commands)
@app.callback()
def root(): pass
@app.command()
def go():
    {body}
run(app)
"""


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            "import threading as t; t.Thread(target=t.Event().wait).start(); raise KeyboardInterrupt",
            130,  # without waiting for threads
            "interrupted; run the same command again to continue\n",
        ),
        ("raise BrokenPipeError", 141, ""),
        ("out.print('nobody reads this')", 141, ""),
    ],
)
def test_exit_codes_of_signals(body: str, code: int, message: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", COMMAND.format(body=body), "go"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (code, message)


@pytest.mark.parametrize(("stderr", "code"), [("pipe", 141), ("/dev/full", 2)])
def test_exit_codes_if_the_error_cannot_be_printed(stderr: str, code: int) -> None:
    if stderr == "pipe":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        if not Path(stderr).exists():
            pytest.skip(f"needs {stderr}")
        writer = os.open(stderr, os.O_WRONLY)
    body = "from pairkit.base.errors import DataError; raise DataError('x')"
    command = [sys.executable, "-c", COMMAND.format(body=body), "go"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == code


def test_bugs_show_a_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        terminal.run(lambda: 1 // 0)


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.say("a", quiet=True)
    terminal.say("b")
    assert capsys.readouterr().err == "b\n"


def test_control_codes_are_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.out.print("a\x1b]0;title\x07b\r\u202ed\n", markup=False)
    assert capsys.readouterr().out == "a\ufffd]0;title\ufffdb\ufffd\ufffdd\n\n"


def test_print_json(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_json({"text": "é\n", "value": None})
    assert capsys.readouterr().out == '{"text": "é\\n", "value": null}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        terminal.print_json({"value": float("nan")})
    assert capsys.readouterr().out == ""


def test_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.next_step("audit it", ["pairs", "audit", "my pairs"])
    terminal.next_step("load it", 'datasets.load_dataset("gis")')
    terminal.next_step("nothing", "x", quiet=True)
    assert capsys.readouterr().err.splitlines() == [
        "next: audit it",
        "  pairs audit 'my pairs'",
        "next: load it",
        '  datasets.load_dataset("gis")',
    ]
