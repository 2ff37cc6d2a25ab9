"""What a person, or a function of theirs, is told of a crawl."""

from __future__ import annotations

import pytest

from gis_builder.crawling.github import Advanced, Began, Finished, Waiting
from gis_builder.progress.display import SILENT, RunDisplay
from pairkit.app.progress import Progress


def told_of(*events: object) -> list[Progress]:
    told: list[Progress] = []
    with RunDisplay(told.append) as show:
        for event in events:
            show.crawling(event)  # type: ignore[arg-type]
    return told


def test_repositories_and_points_left_are_counted() -> None:
    told = told_of(
        Began("sweep", 2),
        Advanced("a/b", "sweep", 10, 40, 4321),
        Finished("a/b", "sweep"),
        Advanced("a/c", "sweep", 5, 5, 4320),
        Finished("a/c", "sweep"),
    )
    assert told == [
        Progress("repositories: sweeping", 0, 2),
        Progress("a/b: sweeping", 10, 40, "4,321 points left"),
        Progress("a/b: sweeping", ended=True),
        Progress("repositories: sweeping", 1, 2, "4,321 points left"),
        Progress("a/c: sweeping", 5, 5, "4,320 points left"),
        Progress("a/c: sweeping", ended=True),
        Progress("repositories: sweeping", 2, 2, "4,320 points left", ended=True),
    ]


def test_one_repository_is_not_counted() -> None:
    told = told_of(Began("check", 1), Advanced("", "check", 1, 0), Finished("", "check"))
    assert [at.stage for at in told] == ["all: looking up"] * 2


def test_who_waits_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    with RunDisplay() as show:
        show.crawling(Advanced("a/b", "threads", 1, 4))
        show.crawling(Waiting("the limit is spent", 3600.0, 0.0))
        show.crawling(Finished("a/b", "search", "502 again and again"))
    said = capfd.readouterr().err
    assert "waiting 3600 s" in said
    assert "a/b: failed, the others continue (502 again and again)" in said
    (_, waiting, *_) = told_of(Advanced("a/b", "threads", 1, 4), Waiting("the limit is spent", 1.0, 0.0))
    assert (waiting.stage, waiting.done, waiting.total) == ("a/b: reading threads", 1, 4)
    assert waiting.note.endswith("the limit is spent")


def test_what_is_counted_comes_through_and_ends() -> None:
    told: list[Progress] = []
    assert list(RunDisplay(told.append).counted("texts", range(1000), 1000)) == list(range(1000))
    assert len(told) == 201
    assert told[-1] == Progress("texts", 1000, 1000, ended=True)
    assert list(RunDisplay(told.append).counted("none", [], 0)) == []


def test_quiet_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    with SILENT as show:
        show.say("something")
        show.crawling(Waiting("the limit is spent", 3600.0, 0.0))
    assert capfd.readouterr().err == ""
