"""Run `python -m MODULE` in a fork of a process that has loaded the large libraries, which takes seconds.

Arguments, streams, signals, exit codes and our own modules are as in a new process. The libraries and the
hash seed are inherited. So tests of start-up, or of bytes that must not depend on the hash seed, use `python
-m` at least once.
"""

import gc
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path

from tests.support.shorthand import text_lines

# Without polars, which must not be forked.
LIBRARIES = text_lines("""
    torch
    scipy.stats
    sklearn
    transformers.masking_utils
    peft
    transformers.trainer
    transformers.models.bert.modeling_bert
    safetensors.torch
    pydantic.main
    typer
    rich.markdown
""")


def context():
    """A context for processes with the libraries, but without threads and locks of this process."""
    forkserver = get_context("forkserver")
    forkserver.set_forkserver_preload(LIBRARIES)
    return forkserver


def begin(module, *arguments, cwd, environ=None, out=os.devnull, err=os.devnull):
    """Start a module."""
    process = context().Process(
        target=_run,
        args=(module, arguments, cwd, dict(environ or os.environ), out, err),
    )
    process.start()
    return process


def begin_ranks(module, *arguments, cwd, err, environ=None):
    """Start two processes of one group, as torchrun does, which can be awaited or killed separately."""
    group = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": "2",
    }
    return [
        begin(
            module,
            *arguments,
            cwd=cwd,
            environ={
                **(environ or os.environ),
                **group,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
            },
            err=str(err / str(rank)),
        )
        for rank in range(2)
    ]


def free_port():
    """A free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(module, *arguments, cwd, environ=None, timeout_s=300):
    """Run a module to its end; invalid UTF-8 in its output is replaced."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        streams = {"out": str(out), "err": str(err)}
        process = begin(module, *arguments, cwd=cwd, environ=environ, **streams)
        process.join(timeout_s)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(
                f"{module} {' '.join(arguments)}: not done in {timeout_s:.0f} s"
            )
        output = [
            file.read_text(encoding="utf-8", errors="replace") for file in (out, err)
        ]
        return subprocess.CompletedProcess(arguments, process.exitcode, *output)


def _run(module, arguments, cwd, environ, out, err):
    gc.freeze()  # exclude inherited objects from garbage collection
    for number, path in ((1, out), (2, err)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(cwd)
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)
