"""Short names of what most tests use."""

import json
import shlex
import subprocess
import sys

from typer.testing import CliRunner

import aoe_train
from tests.conftest import command_line


def index(rows, model, out, **how):
    return aoe_train.index(rows, model=model, out=out, **how)


def figures(evaluation):
    """The scores of a single model on single data."""
    (found,) = evaluation.to_dict().values()
    return found


def python(code, *arguments, **how):
    """A finished process of Python with this code."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **how)


def stderr(capsys):
    """What was printed to stderr, in one line."""
    return " ".join(capsys.readouterr().err.split())


def aoe(command, *arguments, stdin=None):
    """The stdout of a command line and further arguments; errors are raised."""
    words = [*shlex.split(command), *map(str, arguments)]
    done = CliRunner().invoke(command_line("aoe_train"), words, input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def aoe_json(command, *arguments, **more):
    """The JSON that a command line prints."""
    return json.loads(aoe(command, *arguments, **more))
