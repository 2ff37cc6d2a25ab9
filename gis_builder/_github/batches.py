"""How much to ask for at once: halved when the server finds it too heavy, grown again while it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gis_builder._github.client import Client, Reply, TooHeavy
from gis_builder._github.transport import Query
from pairkit.errors import RemoteError

T = TypeVar("T")


class BatchSize:
    """The present size of a batch, between 1 and `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.now = limit

    def shrink(self) -> None:
        """Ask for half as much."""
        self.now = max(1, self.now // 2)

    def grow(self) -> None:
        """Ask for a quarter more."""
        self.now = min(self._limit, self.now + max(1, self.now // 4))


def ask_sized(
    client: Client, size: BatchSize, build: Callable[[int], Query[T]], attempts: int
) -> tuple[Reply[T], int]:
    """Ask for `size.now` things, or fewer until the server manages.

    Returns the reply and how many things were asked for. A reply that was cut for its weight is returned only
    at size 1, where less can't be asked for.

    Raises:
        RemoteError: even one thing was too heavy `attempts` times in a row; else as `Client.ask`.
    """
    failures = 0
    while True:
        asked = size.now
        try:
            reply = client.ask(build(asked))
        except TooHeavy as error:
            failures += 1
            if failures >= attempts and asked == 1:
                raise RemoteError(
                    f"{error}, even for one at a time; run the same command again to continue"
                ) from error
            client.back_off(failures, str(error))
            size.shrink()
            continue
        if reply.is_cut and asked > 1:
            size.shrink()
            continue
        size.grow()
        return reply, asked
