from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.support.github import serve

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "data" / "sample"
SAMPLE_REPOS = ",".join(
    f"{path.parent.parent.name}/{path.parent.name}" for path in sorted(SAMPLE.glob("*/*/repo.json"))
)


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def result(self) -> dict[str, Any]:
        return json.loads(self.out.strip().splitlines()[-1])

    @property
    def error(self) -> str:
        """The one line of the error; anything more on stderr than stages is a failure."""
        (line,) = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert "Traceback" not in self.err
        return line


Gis = Callable[..., Done]


def run_pairs(*arguments: str, cwd: Path | None = None) -> Done:
    """Run `pairs`."""
    return run_gis(*arguments, token=None, cwd=cwd, package="pairkit")


def environment(token: str | None) -> dict[str, str]:
    """This process's environment with this token instead of anybody's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "GH_"))}
    return kept if token is None else {**kept, "GITHUB_TOKEN": token}


def run_module(package: str, *arguments: str, cwd: Path | None = None, **options: Any) -> Done:
    """Run a package in a forked process; for the options see `forked.run`."""
    done = forked.run(package, *arguments, cwd=cwd or Path.cwd(), **options)
    return Done(done.returncode, done.stdout, done.stderr)


def run_alone(
    package: str,
    *arguments: str,
    environ: Mapping[str, str],
    cwd: Path | None = None,
    timeout_s: float = 300,
) -> Done:
    """Run a package in a process that begins alone, slowly, as people's do."""
    done = subprocess.run(
        [sys.executable, "-m", package, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        env=environ,
        cwd=cwd,
        timeout=timeout_s,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def run_gis(
    *arguments: str, token: str | None = "any", cwd: Path | None = None, package: str = "gis_builder"
) -> Done:
    return run_module(package, *arguments, cwd=cwd, environ=environment(token))


@pytest.fixture(scope="session")
def gis() -> Gis:
    return run_gis


@pytest.fixture(scope="session")
def sample_url() -> Iterator[str]:
    with serve(SAMPLE) as server:
        yield server.url


@pytest.fixture(scope="session")
def sample_build(sample_url: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A dataset of the sample, built once by a process that began alone; forked ones are compared with it."""
    out = tmp_path_factory.mktemp("sample") / "gis"
    flags = ("--repos", SAMPLE_REPOS, "--api-url", sample_url, "--out", str(out), "--json")
    done = run_alone("gis_builder", "build", *flags, environ=environment("any"))
    assert done.code == 0, done.err
    return out, done
