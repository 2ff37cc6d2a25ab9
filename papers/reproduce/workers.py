"""Does the runs of a recipe in several local processes, each with a GPU of its own if there are any."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from multiprocessing import get_context
from typing import TYPE_CHECKING

import torch

from pairkit.base.errors import PairkitError

if TYPE_CHECKING:
    from papers.reproduce.recipe import Recipe
    from papers.reproduce.reproduce import Options

_DEVICES = "CUDA_VISIBLE_DEVICES"


def work_in_processes(
    recipe: Recipe, options: Options, say: Callable[[str], None]
) -> None:
    """Start the workers and wait for them. If one is killed, the others do its runs."""
    gpus = _gpus()
    context = get_context("spawn")  # a forked process can't use CUDA
    workers = [
        context.Process(
            target=_work, args=(recipe, options, say, gpus[number % len(gpus)])
        )
        for number in range(options.workers)
    ]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
                worker.join()


def _gpus() -> list[str | None]:
    """The GPUs as in CUDA_VISIBLE_DEVICES; None without any."""
    listed = os.environ.get(_DEVICES)
    names = listed.split(",") if listed else map(str, range(torch.cuda.device_count()))
    return [*names] or [None]


def _work(
    recipe: Recipe, options: Options, say: Callable[[str], None], gpu: str | None
) -> None:
    from papers.reproduce.reproduce import SharedRuns

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if gpu is not None:
        os.environ[_DEVICES] = gpu
    try:
        SharedRuns(recipe, options, say).work()
    except KeyboardInterrupt:
        sys.exit(130)
    except PairkitError as error:
        sys.exit(str(error))
