"""Rate limits: points per window for each token and API."""

import math
import threading
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Quota:
    """A token's points in the current window."""

    resource: str
    limit: int
    used: int
    reset: int  # Unix time of the end of the window, by the server's clock

    @property
    def remaining(self):
        """Points left; never negative."""
        return max(0, self.limit - self.used)

    @property
    def headers(self):
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

    def __init__(self, points, window_s, *, skew_s=0.0, clock=time.time):
        self._points, self._window_s = points, window_s
        self._skew_s = skew_s
        self._clock = clock
        self._spent = {}  # points, end of the window
        self._lock = threading.Lock()

    def quota(self, token, resource):
        """The quota of `token`, without spending."""
        return self.spend(token, resource, 0)

    def spend(self, token, resource, points):
        """Spend `points` and return the quota. The last points of a window may be overspent, as on GitHub."""
        with self._lock:
            used, end = self._spent.get((token, resource), (0, 0))
            if self._clock() >= end:
                # The end is a whole second, because the header has whole seconds.
                used, end = 0, math.ceil(self._clock() + self._window_s)
            used = min(self._points, used + points)
            self._spent[token, resource] = used, end
        return Quota(resource, self._points, used, end + round(self._skew_s))
