"""Failures in a row, and how long to wait between them."""

from __future__ import annotations

import logging
import random
import time
from typing import NamedTuple

from gis_builder._archive.mirror.wire import Dropped, Reply
from gis_builder._github.answers import requested_wait_s
from pairkit.errors import RemoteError

_LOG = logging.getLogger(__name__)
_PASSING = frozenset({408, 425, 429, *range(500, 600)})


class Patience(NamedTuple):
    """How patiently a server is asked.

    Attributes:
        failures: In a row, until it is given up.
        backoff_s: Seconds to wait after the first; doubles.
        most_wait_s: Seconds that one wait may take.
        answer_s: Seconds that one answer may take; a download goes on with the next.
    """

    failures: int = 8
    backoff_s: float = 1.0
    most_wait_s: float = 600.0
    answer_s: float = 120.0


PATIENCE = Patience()


class Tries:
    """Counts the failures in a row of what is asked of a server, and waits after each.

    Args:
        what: The URL, for messages.
    """

    def __init__(self, what: str) -> None:
        self._what, self._failures = what, 0
        self._random = random.Random(what)  # noqa: S311 - jitter, so that workers do not move in step

    def succeeded(self) -> None:
        """Begin to count anew."""
        self._failures = 0

    def failed(self, failure: Dropped) -> None:
        """Wait, as long as the server says where it says so.

        Raises:
            RemoteError: It failed too often, or says to wait for too long.
        """
        self._failures += 1
        if self._failures >= PATIENCE.failures:
            raise RemoteError(
                f"{self._what}: failed {self._failures} times in a row, last with: {failure}; run the same"
                " command again to continue"
            )
        asked_s = failure.wait_s or 0.0
        if asked_s > PATIENCE.most_wait_s:
            raise RemoteError(
                f"{self._what}: the server asks to be left alone for {asked_s:.0f} s ({failure}); run the"
                " same command again then"
            )
        grown = PATIENCE.backoff_s * 2.0 ** (self._failures - 1) * self._random.uniform(0.5, 1.0)
        seconds = min(max(asked_s, grown), PATIENCE.most_wait_s)
        _LOG.info("%s: waiting %.2f s: %s", self._what, seconds, failure)
        time.sleep(seconds)


def refusal_of(url: str, reply: Reply) -> Dropped | RemoteError:
    """What a status that brings no file means: `Dropped` where it passes."""
    if reply.status in _PASSING:
        return Dropped(f"HTTP {reply.status}", requested_wait_s(reply.headers))
    return RemoteError(f"{url}: HTTP {reply.status}, where a file was expected; check --source (source=…)")
