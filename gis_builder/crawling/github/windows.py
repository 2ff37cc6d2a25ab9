"""Cutting a search into windows of time, since no search gives out more than its first 1,000 results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

_MOST_PARTS = 16
# Parts are never equally full: aim below the limit, so that few of them have to be cut again.
_FILL = 0.7
# An update looks back a little further than it must: what changed within the same second is not lost.
_OVERLAP_S = 60
_GITHUB_BEGAN = 1199145600  # 2008-01-01; imported issues may be older than their repository


@dataclass(frozen=True, slots=True)
class Window:
    """Creation times from `start` to `end`, epoch seconds, both included; None leaves that side open."""

    start: int | None = None
    end: int | None = None

    @property
    def words(self) -> str:
        """The window as a search qualifier; empty where both sides are open."""
        if self.start is None and self.end is None:
            return ""
        if self.start is None:
            return f"created:<={iso(self.end or 0)}"
        if self.end is None:
            return f"created:>={iso(self.start)}"
        return f"created:{iso(self.start)}..{iso(self.end)}"


def cut(window: Window, count: int, limit: int, first: int, last: int) -> tuple[Window, ...]:
    """Cut a window that holds `count` results into adjoining ones; none where it is one second long.

    Open sides stay open, so whatever `first` and `last` are, every moment is in exactly one part.
    """
    start = window.start if window.start is not None else min(first, _begin_before(window.end, first))
    end = window.end if window.end is not None else max(last, start + 1)
    if end <= start:
        return ()
    parts = min(_MOST_PARTS, end - start + 1, max(2, round(count / (limit * _FILL)) + 1))
    edges = [start + (end - start + 1) * part // parts for part in range(1, parts)]
    starts = [window.start, *edges]
    ends = [*(edge - 1 for edge in edges), window.end]
    return tuple(Window(a, b) for a, b in zip(starts, ends, strict=True))


def _begin_before(end: int | None, first: int) -> int:
    return first if end is None or end > first else min(_GITHUB_BEGAN, end)


def iso(seconds: int) -> str:
    """Epoch seconds as GitHub writes times."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def epoch(text: str) -> int:
    """GitHub's way of writing a time as epoch seconds; GitHub's own beginning where it is empty."""
    return int(datetime.fromisoformat(text).timestamp()) if text else _GITHUB_BEGAN


def look_back(as_of: str) -> str:
    """The time that an update asks from, where the crawl before it was of `as_of`."""
    return iso(epoch(as_of) - _OVERLAP_S)
