"""What a server has done so far."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Stats:
    """Counts since the server was started."""

    requests: int = 0  # of every kind, faulty ones included
    points: int = 0  # spent on GraphQL
    not_modified: int = 0  # answers of 304, which are free
    faults: dict[str, int] = field(default_factory=dict)  # by kind
    paths: dict[str, int] = field(default_factory=dict)  # requests by path; numbers in paths read N


class Recorder:
    """Counts; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests = self._points = self._not_modified = 0
        self._faults: Counter[str] = Counter()
        self._paths: Counter[str] = Counter()

    def request(self, path: str) -> int:
        """Count a request and return its number, from 1."""
        shape = "/".join("N" if part.isdecimal() else part for part in path.split("/"))
        with self._lock:
            self._requests += 1
            self._paths[shape] += 1
            return self._requests

    def points(self, points: int) -> None:
        """Count GraphQL points."""
        with self._lock:
            self._points += points

    def not_modified(self) -> None:
        """Count an answer of 304."""
        with self._lock:
            self._not_modified += 1

    def fault(self, kind: str) -> None:
        """Count a fault."""
        with self._lock:
            self._faults[kind] += 1

    def stats(self) -> Stats:
        """The counts now."""
        with self._lock:
            return Stats(
                self._requests, self._points, self._not_modified, dict(self._faults), dict(self._paths)
            )
