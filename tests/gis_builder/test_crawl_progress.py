"""The display of a crawl's progress."""

from __future__ import annotations

import pytest

from gis_builder.crawl_progress import Advanced, Finished, RunDisplay, Waiting
from gis_builder.store import RateLimit
from pairkit import Progress


def progress_of(*events: object) -> list[Progress]:
    reported: list[Progress] = []
    with RunDisplay(reported.append) as show:
        for event in events:
            show.crawling(event)  # type: ignore[arg-type]
    return reported


def test_waits_and_failures_are_explained(capfd: pytest.CaptureFixture[str]) -> None:
    with RunDisplay() as show:
        show.crawling(Advanced("a/b", "threads", 1, 4))
        show.crawling(Waiting("the limit is spent", 3600.0, 0.0))
        show.crawling(Finished("a/b", "search", "502 again and again"))
    said = capfd.readouterr().err
    assert "waiting 3600 s" in said
    assert "a/b: failed, the others continue (502 again and again)" in said
    (_, waiting, *_) = progress_of(Advanced("a/b", "threads", 1, 4), Waiting("the limit is spent", 1.0, 0.0))
    assert (waiting.stage, waiting.done, waiting.total) == ("a/b: reading threads", 1, 4)
    assert waiting.note.endswith("the limit is spent")


def test_a_limit_that_was_reset_since() -> None:
    assert "was reset" in RateLimit(5000, 1, 10.0).describe(now=11.0)
