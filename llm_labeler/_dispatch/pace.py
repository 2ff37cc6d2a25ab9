"""So many a minute, evenly: a leaky bucket that lets no 60 seconds see more than the limit."""

from __future__ import annotations

# Sleeping is not exact: a start may come so much after its time without delaying those that follow.
_SLACK_S = 0.05


class Pace:
    """Spaces starts so that what starts within any 60 s stays within a limit.

    Each start pushes the next one back by its share of a minute. The share is a little larger than it need
    be, by what the slack would otherwise let slip through and as much again for clocks that differ.
    """

    def __init__(self, per_minute: int | None) -> None:
        """Begin unhindered; None: no limit."""
        self._share_s = 0.0 if per_minute is None else (60.0 + 2 * _SLACK_S) / per_minute
        self._due = float("-inf")

    def wait_s(self, now: float) -> float:
        """Seconds until something may start; 0 or less: now."""
        return self._due - now

    def start(self, now: float, amount: float = 1.0) -> None:
        """Something of this amount starts."""
        if self._share_s:
            self._due = max(self._due, now - _SLACK_S) + amount * self._share_s

    def correct(self, amount: float) -> None:
        """What started turned out to be larger (or, below zero, smaller) by so much."""
        self._due += amount * self._share_s
