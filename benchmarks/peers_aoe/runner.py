"""A process's side of a benchmark: read the job, time the steps, answer with one line of JSON.

Runs in any of the environments, so it imports nothing but what they all have.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path


def job() -> dict:
    """Read the job from the file named on the command line."""
    return json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))


def answer(**result: object) -> None:
    """Print the result with the peaks of resident and GPU memory, as the last line of stdout."""
    peak_rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    memory = {"peak_rss_mb": round(peak_rss_mb), "gpu_gb": gpu_memory()}
    print(json.dumps({**result, **memory}), flush=True)


def gpu_memory() -> tuple[float, float]:
    """Maximum gigabytes that torch allocated and reserved on the GPU; 0 without one."""
    import torch

    if not torch.cuda.is_available():
        return 0.0, 0.0
    return (
        torch.cuda.max_memory_allocated() / 1e9,
        torch.cuda.max_memory_reserved() / 1e9,
    )


def wait_for_gpu() -> None:
    """Wait until the GPU has finished all work."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def rows(path: str) -> list[dict]:
    """The rows of a JSON-lines file: text1, text2, label."""
    with Path(path).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Stopwatch:
    """Record starts of epochs and ends of steps in every Trainer that is made later.

    All contenders train on transformers' Trainer, and each Trainer has a DefaultFlowCallback: noting the time
    there is one clock for all, even where users can pass no callback (angle-emb's `fit`, a command line).
    `profiled` steps of the last epoch, from its second one, are profiled; that epoch's time is then useless.
    """

    def __init__(self, profiled: int = 0) -> None:
        from torch.profiler import profile
        from transformers.trainer_callback import DefaultFlowCallback

        self.profile: dict[str, float] | None = None
        profiler = profile() if profiled else None
        self.epochs: list[tuple[float, float]] = []  # wall, and CPU time of all threads
        self.steps: list[tuple[float, float]] = []
        end = DefaultFlowCallback.on_step_end

        def on_epoch_begin(_callback, _args, _state, control, **_kwargs):
            wait_for_gpu()
            self.epochs.append((time.perf_counter(), time.process_time()))
            return control

        def on_step_end(callback, args, state, control, **kwargs):
            # An epoch's last.
            if (
                state.global_step % max(1, state.max_steps // state.num_train_epochs)
                == 0
            ):
                wait_for_gpu()
            self.steps.append((time.perf_counter(), time.process_time()))
            before_last = (
                state.max_steps // state.num_train_epochs * (state.num_train_epochs - 1)
            )
            if profiler is not None and state.global_step in (
                before_last + 1,
                before_last + 1 + profiled,
            ):
                wait_for_gpu()
                if state.global_step == before_last + 1:
                    profiler.start()
                else:
                    profiler.stop()
                    self.profile = summary(profiler, profiled)
            return end(callback, args, state, control, **kwargs)

        DefaultFlowCallback.on_epoch_begin = on_epoch_begin
        DefaultFlowCallback.on_step_end = on_step_end

    def last_epoch(self) -> dict[str, float]:
        """Seconds from the start of the last epoch, before its first batch, to the end of its last step."""
        wall, cpu = (
            end - begin
            for begin, end in zip(self.epochs[-1], self.steps[-1], strict=True)
        )
        return {"seconds": wall, "cpu_s": cpu}

    def each_epoch(self) -> list[float]:
        """The seconds of every epoch."""
        length = len(self.steps) // len(self.epochs)
        ends = self.steps[length - 1 :: length]
        return [end[0] - begin[0] for begin, end in zip(self.epochs, ends, strict=True)]


def summary(profiler, steps: int) -> dict[str, float]:
    """Per step: milliseconds in which the GPU worked, and the number of launches and operators."""
    spans, launches, operators = [], 0, 0
    for event in profiler.profiler.kineto_results.events():
        name = event.name()
        if "CUDA" in str(event.device_type()) and not name.startswith(
            ("ProfilerStep", "Optimizer")
        ):
            spans.append((event.start_ns(), event.start_ns() + event.duration_ns()))
        launches += name.startswith(("cudaLaunch", "cuLaunch", "cudaGraphLaunch"))
        operators += name.startswith("aten::")
    busy = end = 0
    for start, stop in sorted(spans):
        busy += max(0, stop - max(start, end))
        end = max(end, stop)
    return {
        "busy_ms": busy / 1e6 / steps,
        "launches": launches / steps,
        "operators": operators / steps,
    }


def time_encoding(encode, work: dict) -> dict:
    """Seconds of `encode(texts, batch size)` for all texts by batch size, after a warm-up.

    They are CPU seconds of all threads where the job's `clock` says "cpu", which other work of the machine
    does not lengthen, and else those of the wall. The vectors of the first
    batch size go to the job's file, normalised, so that contenders can be compared.
    """
    import numpy as np

    texts = json.loads(Path(work["texts"]).read_text(encoding="utf-8"))
    seconds, each = {}, []
    clock = time.process_time if work.get("clock") == "cpu" else time.perf_counter
    for size in work["batch_sizes"]:
        encode(texts[:128], size)
        for _ in range(work.get("times", 1)):
            start = clock()
            vectors = np.asarray(encode(texts, size), dtype=np.float32)
            each.append(clock() - start)
        seconds[str(size)] = min(each[-work.get("times", 1) :])
        if len(seconds) == 1:
            np.save(
                work["vectors"],
                vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
            )
    profile = (
        profiled(lambda: encode(texts, work["batch_sizes"][0]))
        if work.get("profile")
        else None
    )
    return {"seconds": seconds, "each": each, "profile": profile}


def profiled(action) -> dict[str, float]:
    """The `summary` of an action."""
    from torch.profiler import profile

    with profile() as profiler:
        action()
        wait_for_gpu()
    return summary(profiler, 1)
