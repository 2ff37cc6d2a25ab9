"""A server as a source of hours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from gis_builder._archive.hours import month_of
from gis_builder._archive.mirror.extract import extract_listed
from gis_builder._archive.mirror.listing import list_month, read_listing
from gis_builder._archive.objects import Location
from gis_builder._archive.source import HourFile, at_least_one
from gis_builder._archive.tasks import Task, file_named
from pairkit.address import read_address
from pairkit.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Mirror:
    """See `Source`.

    Attributes:
        root: The server's root, such as `https://data.gharchive.org`.
        work: The working folder of this machine.
        results: Where listings go, which all machines share.
        parallel: Connections at once.
        keep: Leave the hours that were downloaded in the working folder.
    """

    root: str
    work: Path
    results: Location
    parallel: int
    keep: bool

    def tasks(self, hours: Sequence[str], /) -> list[Task]:
        """See `Source`."""
        return [self._task(list(own)) for _, own in groupby(hours, key=month_of)]

    def find(self, hours: Sequence[str], /) -> list[HourFile]:
        """See `Source`."""
        found = (
            HourFile(
                listed.hour,
                listed.identity,
                extract_listed,
                (self.root, listed, self.work / "downloaded", self._slots, self.parallel, self.keep),
            )
            for task in self.tasks(hours)
            for listed in read_listing(task.out)
        )
        return at_least_one(found, hours, self.root)

    def forget(self, hour: str, hours: Sequence[str], /) -> None:
        """See `Source`."""
        month = [other for other in hours if month_of(other) == month_of(hour)]
        self._task(month).out.unlink(missing_ok=True)

    @property
    def _slots(self) -> Path:
        return self.work / "connections"

    def _task(self, hours: Sequence[str]) -> Task:
        out = file_named(self.results / "listed", month_of(hours[0]), "json", self.root, list(hours))
        return Task(out, list_month, (self.root, tuple(hours), self._slots, self.parallel))


def mirror_at(url: str, work: Path, results: Location, parallel: int, *, keep: bool) -> Mirror:
    """The server at a URL.

    Raises:
        ConfigError: It is no root of a server, or others could change what comes from there.
    """
    address = read_address(url, "source", "https://data.gharchive.org")
    if address.origin.scheme == "http" and not address.is_loopback:
        raise ConfigError(f"source = {address.url}: over plain http, others can change what comes; use https")
    at = results.resolve() if isinstance(results, Path) else results
    return Mirror(address.url, work.resolve(), at, parallel, keep)
