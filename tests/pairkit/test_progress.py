from __future__ import annotations

import io

import pytest
from rich.console import Console

from pairkit import Progress
from pairkit.base.cli import progress as module
from pairkit.base.cli.progress import Display, duration, stage


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120, soft_wrap=True)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_stage_without_steps() -> None:
    received: list[Progress] = []
    with Display(received.append) as show, stage("load minilm", show):
        assert received == [Progress("load minilm")]
    assert received == [Progress("load minilm"), Progress("load minilm", ended=True)]


def test_lines_without_terminal(clock: Clock) -> None:
    log = console(terminal=False)
    with Display(console=log) as show:
        for second in range(200):
            clock.now = 1000.0 + second
            show(Progress("train", second, 400, "loss 0.50"))
    lines = written(log).splitlines()
    assert lines[0] == "train: 10 of 400 (2%), 1.0/s, 6 min 30 s left, loss 0.50"
    assert len(lines) == 4  # at 10, 70, 130 and 190 seconds


def test_unknown_length_and_restarted_stage(clock: Clock) -> None:
    log = console(terminal=False)
    with Display(console=log) as show:
        show(Progress("reading", 0))
        clock.now += 20
        show(Progress("reading", 40))
        show(Progress("reading", 40, ended=True))
        clock.now += 100
        show(Progress("reading", 41))
    assert written(log) == "reading: 40, 2.0/s\n"


def test_bar_on_terminal(clock: Clock) -> None:
    screen = console(terminal=True)
    with Display(console=screen) as show:
        show(Progress("[b]training[/b]", 0, 10))
        clock.now += 45
        show(Progress("[b]training[/b]", 1, 10, "loss 0.5"))
    assert "[b]training[/b]" in written(screen)
    assert "1 of 10 (10%), 45 s each, 6 min 45 s left, loss 0.5" in written(screen)


def test_progress_off(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    with Display(progress=False) as show:
        clock.now += 100
        show(Progress("train", 1, 3))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0421, "42 ms"),
        (8.4, "8 s"),
        (65, "1 min 05 s"),
        (7_800, "2 h 10 min"),
        (3 * 86_400 + 4 * 3_600, "3 d 4 h"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
