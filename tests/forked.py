"""`python -m MODULE` in a process forked from one that has the large libraries: they take seconds to load.

Arguments, streams, signals, exit codes and our own modules are as in a process that begins alone. The
libraries and the seed of hashes are those of the process that it is forked from. So a test of how a command
begins, or of bytes that must not depend on that seed, begins at least one by `python -m`.
"""

from __future__ import annotations

import gc
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

# Not polars, which must not be forked.
LIBRARIES = [
    *("torch", "scipy.stats", "sklearn", "transformers.masking_utils", "peft", "transformers.trainer"),
    *(
        "transformers.models.bert.modeling_bert",
        "safetensors.torch",
        "pydantic.main",
        "typer",
        "rich.markdown",
    ),
]


def context() -> ForkServerContext:
    """Begins processes that have the libraries, but not the threads and locks of this process."""
    found = get_context("forkserver")
    found.set_forkserver_preload(LIBRARIES)
    return found


def begin(
    module: str,
    *arguments: str,
    cwd: Path,
    environ: Mapping[str, str] | None = None,
    out: str = os.devnull,
    err: str = os.devnull,
) -> ForkServerProcess:
    """Begin a module."""
    process = context().Process(
        target=_run, args=(module, arguments, cwd, dict(environ or os.environ), out, err)
    )
    process.start()
    return process


def begin_ranks(
    module: str, *arguments: str, cwd: Path, err: Path, environ: Mapping[str, str] | None = None
) -> list[ForkServerProcess]:
    """Begin two processes of one group, as torchrun would, each to be waited for or killed by itself."""
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    return [
        begin(
            module,
            *arguments,
            cwd=cwd,
            environ={**(environ or os.environ), **group, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            err=str(err / str(rank)),
        )
        for rank in range(2)
    ]


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def run(
    module: str,
    *arguments: str,
    cwd: Path,
    environ: Mapping[str, str] | None = None,
    timeout_s: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a module to its end; see `begin`. What it writes that is no UTF-8 is replaced."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        streams = {"out": str(out), "err": str(err)}
        process = begin(module, *arguments, cwd=cwd, environ=environ, **streams)
        process.join(timeout_s)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"{module} {' '.join(arguments)}: not done in {timeout_s:.0f} s")
        said = [file.read_text(encoding="utf-8", errors="replace") for file in (out, err)]
        return subprocess.CompletedProcess(arguments, process.exitcode, *said)


def _run(
    module: str,
    arguments: tuple[str, ...],
    cwd: Path,
    environ: dict[str, str],
    out: str,
    err: str,
) -> None:
    gc.freeze()  # what came with the fork is no work for this process's garbage collection
    for number, path in ((1, out), (2, err)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(cwd)
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)
