"""The command lines as people run them: in this process, or alone where the process is the point."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from pairkit.base.cli.terminal import run
from tests.conftest import command_line
from tests.support.github import serve

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data" / "sample"
SAMPLE_REPOS = ",".join(
    f"{path.parent.parent.name}/{path.parent.name}"
    for path in sorted(SAMPLE.glob("*/*/repo.json"))
)


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def result(self):
        return json.loads(self.out.strip().splitlines()[-1])

    @property
    def error(self):
        """The one line of the error; anything more on stderr than stages is a failure."""
        (line,) = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert "Traceback" not in self.err
        return line


Gis = Callable[..., Done]


def environment(**more):
    """This process's environment without anybody's tokens and keys, and with more."""
    private = ("GITHUB_", "GH_", "OPENAI_")
    return {
        **{
            name: value
            for name, value in os.environ.items()
            if not name.startswith(private) and not name.endswith("_API_KEY")
        },
        "PYTHONPATH": str(ROOT),
        **more,
    }


def run_here(package, *arguments, environ=None, cwd=None):
    """Run a package's command line in this process."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2)]
    code = 0
    with (
        patch.dict(os.environ, environ or environment(), clear=True),
        patch.object(sys, "argv", [package, *map(str, arguments)]),
        chdir(cwd or Path.cwd()),
        redirect_stdout(streams[0]),
        redirect_stderr(streams[1]),
    ):
        try:
            run(command_line(package))
        except SystemExit as ended:
            code = ended.code
    out, err = (
        stream.buffer.getvalue().decode("utf-8", "replace") for stream in streams
    )
    return Done(int(code or 0), out, err)


def run_alone(package, *arguments, environ, cwd=None):
    """Run a package in a process that begins alone, slowly, as people's do."""
    done = subprocess.run(
        [sys.executable, "-m", package, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        env=environ,
        cwd=cwd,
        timeout=300,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def killed_when(ready, package, *arguments, environ, cwd=None):
    """Kill a package that began alone, once it is ready for that; whether it was still at work."""
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-m", package, *arguments]
    process = subprocess.Popen(
        command, env=environ, cwd=cwd, stdout=quiet, stderr=quiet
    )
    while process.poll() is None and not ready():
        time.sleep(0.01)
    process.kill()
    return process.wait() == -signal.SIGKILL


def run_pairs(*arguments):
    return run_here("pairkit", *arguments)


def run_gis(*arguments, token="any", cwd=None):
    given = {} if token is None else {"GITHUB_TOKEN": token}
    return run_here("gis_builder", *arguments, cwd=cwd, environ=environment(**given))


@pytest.fixture(scope="session")
def gis():
    return run_gis


@pytest.fixture(scope="session")
def sample_url():
    with serve(SAMPLE) as server:
        yield server.url


@pytest.fixture(scope="session")
def sample_build(sample_url, tmp_path_factory):
    """A dataset of the sample, built once by a process of its own."""
    out = tmp_path_factory.mktemp("sample") / "gis"
    flags = (
        "--repos",
        SAMPLE_REPOS,
        "--api-url",
        sample_url,
        "--out",
        str(out),
        "--json",
    )
    done = run_alone(
        "gis_builder", "build", *flags, environ=environment(GITHUB_TOKEN="any")
    )
    assert done.code == 0, done.err
    return out, done


@pytest.fixture
def out(tmp_path):
    """Where a test writes its dataset."""
    return tmp_path / "out"
