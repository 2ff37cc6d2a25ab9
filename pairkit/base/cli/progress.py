"""Progress of a run: passed to a function, or shown as bars on a terminal and as lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

from pairkit.base.cli.terminal import err

_FIRST_LINE_S = 10.0  # without a terminal: time until the first line
_LINE_S = 60.0  # between lines


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of one stage of a run.

    Attributes:
        stage: The name of the stage, such as "train" or "rust-lang/rust: threads".
        done: Number of finished steps.
        total: Number of all steps; None if unknown.
        note: Further text, such as the loss or the cost so far.
        ended: Whether the stage is over.
    """

    stage: str
    done: int = 0
    total: int | None = None
    note: str = ""
    ended: bool = False


Listener = Callable[[Progress], None]


@contextmanager
def stage(name: str, show: Listener) -> Iterator[None]:
    """Report a stage without steps, such as loading a model."""
    show(Progress(name))
    yield
    show(Progress(name, ended=True))


class Display:
    """Shows progress while it is open; thread-safe."""

    def __init__(
        self, progress: bool | Listener = True, *, console: Console = err
    ) -> None:
        self._listener = progress if callable(progress) else None
        self._console = console if progress and self._listener is None else None
        self._bars: Bars | None = None
        if self._console is not None and console.is_terminal:
            self._bars = Bars(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[words]}", markup=False),
                console=console,
            )
        self._tasks: dict[str, TaskID] = {}
        self._rates: dict[str, _Rate] = {}
        self._lock = threading.Lock()

    def __call__(self, progress: Progress) -> None:
        """Show the new state of a stage."""
        with self._lock:
            if self._listener is not None:
                self._listener(progress)
            elif self._console is not None:
                self._display(progress, self._console)

    def __enter__(self) -> Self:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars:
            self._bars.stop()

    def _display(self, progress: Progress, console: Console) -> None:
        """Update the bar of a stage; without a terminal, print a line from time to time."""
        if progress.ended:
            self._rates.pop(progress.stage, None)
            if self._bars and progress.stage in self._tasks:
                self._bars.remove_task(self._tasks.pop(progress.stage))
            return
        rate = self._rates.setdefault(progress.stage, _Rate(progress))
        if self._bars:
            if progress.stage not in self._tasks:
                self._tasks[progress.stage] = self._bars.add_task(
                    progress.stage, total=progress.total, words=""
                )
            self._bars.update(
                self._tasks[progress.stage],
                completed=progress.done,
                total=progress.total,
                words=rate.words(progress),
            )
        elif (now := time.monotonic()) - rate.printed >= _LINE_S:
            rate.printed = now
            console.print(f"{progress.stage}: {rate.words(progress)}", markup=False)


class _Rate:
    """The rate of a stage in this run, without steps done by an earlier run."""

    def __init__(self, progress: Progress) -> None:
        self._start = time.monotonic()
        self._first = progress.done
        self.printed = self._start + _FIRST_LINE_S - _LINE_S

    def words(self, progress: Progress) -> str:
        """Steps done, share, rate and time left, if known."""
        seconds = time.monotonic() - self._start
        steps = progress.done - self._first
        parts = []
        if progress.total is not None:
            share = f" ({progress.done / progress.total:.0%})" if progress.total else ""
            parts.append(f"{progress.done:,} of {progress.total:,}{share}")
        elif progress.done:  # 0 for stages without steps
            parts.append(f"{progress.done:,}")
        if steps > 0 and seconds > 0:
            speed = steps / seconds
            parts.append(
                f"{speed:,.1f}/s" if speed >= 1 else f"{duration(1 / speed)} each"
            )
            if progress.total is not None and progress.total > progress.done:
                parts.append(
                    f"{duration((progress.total - progress.done) / speed)} left"
                )
        if progress.note:
            parts.append(progress.note)
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """A duration in words: "8 s", "1 min 05 s", "2 h 10 min", "3 d 4 h"."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, remaining = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {remaining:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"
