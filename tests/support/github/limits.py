"""Rate limits: points per window for each token and API."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Quota:
    """A token's points in the current window."""

    resource: str
    limit: int
    used: int
    reset: int  # Unix time of the end of the window, by the server's clock

    @property
    def remaining(self) -> int:
        """Points left; never negative."""
        return max(0, self.limit - self.used)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that every answer carries."""
        return {
            "x-ratelimit-limit": str(self.limit),
            "x-ratelimit-remaining": str(self.remaining),
            "x-ratelimit-reset": str(self.reset),
            "x-ratelimit-used": str(self.used),
            "x-ratelimit-resource": self.resource,
        }


class RateLimits:
    """Counts the points of each token; a window starts with the first request after the last window."""

    def __init__(
        self,
        points: int,
        window_s: float,
        *,
        skew_s: float = 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._points, self._window_s = points, window_s
        self._skew_s = skew_s
        self._clock = clock
        self._spent: dict[tuple[str, str], tuple[int, int]] = {}  # points, end of the window
        self._lock = threading.Lock()

    def quota(self, token: str, resource: str) -> Quota:
        """The quota of `token`, without spending."""
        return self.spend(token, resource, 0)

    def spend(self, token: str, resource: str, points: int) -> Quota:
        """Spend `points` and return the quota. The last points of a window may be overspent, as on GitHub."""
        with self._lock:
            used, end = self._spent.get((token, resource), (0, 0))
            if self._clock() >= end:
                # The end is a whole second, because the header has whole seconds.
                used, end = 0, math.ceil(self._clock() + self._window_s)
            used = min(self._points, used + points)
            self._spent[token, resource] = used, end
        return Quota(resource, self._points, used, end + round(self._skew_s))
