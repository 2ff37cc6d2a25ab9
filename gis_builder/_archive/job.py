"""What a run over GH Archive is asked for, and what decides what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from gis_builder._archive.hours import span_of
from gis_builder._archive.objects import Location
from gis_builder._archive.plan import Plan, plan
from gis_builder._archive.source import HourFile, Source
from gis_builder._archive.tasks import digest_of
from gis_builder._archive.topup import Opened
from gis_builder._settings import ArchiveSettings


class Topping(NamedTuple):
    """How originals are asked for.

    Attributes:
        server: The root of GitHub's API.
        opened: Makes the client.
    """

    server: str
    opened: Opened


@dataclass(frozen=True, slots=True)
class Job:
    """What a run is asked for.

    Attributes:
        hours: The names of all hours that are asked for, in order.
        source: Has their files.
        work: The folder of what is this machine's own: locks, downloads, texts, what was left out.
        results: Where the files of tasks go; all machines share it.
        settings: What decides the result.
        excluded: The takedown list, see `exclusions`.
        partitions: How many tasks judge; it decides nothing but how much each has in memory.
        topping: Asks GitHub for originals that have no event in the hours; None where it isn't asked.
    """

    hours: Sequence[str]
    source: Source
    work: Path
    results: Location
    settings: ArchiveSettings
    excluded: Sequence[str] = ()
    partitions: int = 64
    topping: Topping | None = None

    def plan(self) -> tuple[list[HourFile], Plan]:
        """The hours that there are, and the tasks."""
        found = self.source.find(self.hours)
        return found, plan(found, self.results, self.settings, self.excluded, self.partitions)

    def record(self, found: Iterable[HourFile]) -> dict[str, Any]:
        """What decides what the dataset holds; who runs it and where files are does not."""
        return {
            **self.settings.model_dump(mode="json"),
            "hours": span_of(self.hours),
            "hours_sha256": digest_of("\n".join(f"{hour.hour} {hour.identity}" for hour in found).encode()),
            **({"top_up": urlsplit(self.topping.server).hostname} if self.topping else {}),
            "excluded_sha256": digest_of("\n".join(self.excluded).encode()),
        }
