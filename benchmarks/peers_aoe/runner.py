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
    """The work to do, from the file named on the command line."""
    return json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))


def answer(**result: object) -> None:
    """Print the result, with the process's peak of resident memory, as the last line of stdout."""
    peak_rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**result, "peak_rss_mb": round(peak_rss_mb)}), flush=True)


def rows(path: str) -> list[dict]:
    """The rows of a JSON-lines file: text1, text2, label."""
    with Path(path).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Stopwatch:
    """When epochs began and steps ended, in every Trainer that is made after this.

    All contenders train on transformers' Trainer, and each Trainer has a DefaultFlowCallback: noting the time
    there is one clock for all, even where users can pass no callback (angle-emb's `fit`, a command line).
    """

    def __init__(self) -> None:
        from transformers.trainer_callback import DefaultFlowCallback

        self.epochs: list[tuple[float, float]] = []  # wall, and CPU time of all threads
        self.steps: list[tuple[float, float]] = []
        end = DefaultFlowCallback.on_step_end

        def on_epoch_begin(_callback, _args, _state, control, **_kwargs):
            self.epochs.append((time.perf_counter(), time.process_time()))
            return control

        def on_step_end(callback, args, state, control, **kwargs):
            self.steps.append((time.perf_counter(), time.process_time()))
            return end(callback, args, state, control, **kwargs)

        DefaultFlowCallback.on_epoch_begin = on_epoch_begin
        DefaultFlowCallback.on_step_end = on_step_end

    def last_epoch(self) -> dict[str, float]:
        """Seconds from the beginning of the last epoch, before it fetches a batch, to its last step's end."""
        wall, cpu = (end - begin for begin, end in zip(self.epochs[-1], self.steps[-1], strict=True))
        return {"seconds": wall, "cpu_s": cpu}


def time_encoding(encode, work: dict) -> dict:
    """Seconds that `encode(texts, batch size)` takes for all texts, by batch size, after a warm-up.

    The vectors of the first batch size go to the job's file, normalised, so that contenders can be compared.
    """
    import numpy as np

    texts = json.loads(Path(work["texts"]).read_text(encoding="utf-8"))
    seconds = {}
    for size in work["batch_sizes"]:
        encode(texts[:128], size)
        start = time.perf_counter()
        vectors = np.asarray(encode(texts, size), dtype=np.float32)
        seconds[str(size)] = time.perf_counter() - start
        if len(seconds) == 1:
            np.save(work["vectors"], vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    return {"seconds": seconds}
