"""The first task where a server has the hour: download it, take its rows, let it go."""

from __future__ import annotations

from pathlib import Path

from gis_builder._archive.extract import HourRead, extract_hour, packed, read_hour
from gis_builder._archive.mirror.download import Download, held_file
from gis_builder._archive.mirror.listing import Listed
from gis_builder._archive.mirror.slots import connection
from gis_builder._archive.source import identity_of
from gis_builder._archive.tasks import digest_of
from pairkit.address import read_address


def extract_listed(root: str, listed: Listed, folder: Path, slots: Path, parallel: int, keep: bool) -> bytes:
    """See `extract_hour`, which gives the same bytes for the same file.

    Args:
        root: The server's root.
        listed: The hour as the server listed it.
        folder: Where it is downloaded to.
        slots: Where connections are counted.
        parallel: How many of them there may be.
        keep: Leave it in the folder, under the name that it has on the server.

    Raises:
        ChangedOnServer: The server has another file by now.
        RemoteError: It fails again and again.
    """
    kept = folder / f"{listed.hour}.json.gz"
    if kept.is_file() and identity_of(kept) == listed.identity:
        return extract_hour(kept, listed.hour)
    path = partial_of(root, listed, folder)
    with held_file(path) as file:
        download = Download(read_address(root, "source", "https://data.gharchive.org"), listed, path, file)
        with connection(slots, parallel):
            download.fill()
        read = _read(download, path, listed, slots, parallel)
        if keep:
            path.replace(kept)
        else:
            path.unlink()
    return packed(read)


def partial_of(root: str, listed: Listed, folder: Path) -> Path:
    """Where an hour is until all of it came and was read; other versions of it are elsewhere."""
    version = digest_of(f"{root} {listed.identity} {listed.version}".encode())[:12]
    return folder / f".{listed.hour}.{version}.json.gz"


def _read(download: Download, path: Path, listed: Listed, slots: Path, parallel: int) -> HourRead:
    """The rows of what came. What breaks off does so on the server, too, if it comes twice."""
    read = read_hour(path, listed.hour)
    came = set()
    while read.ledger.broke_off and not listed.md5 and (digest := download.digest()) not in came:
        came.add(digest)
        with connection(slots, parallel):
            download.begin_anew("what came is damaged")
        read = read_hour(path, listed.hour)
    return read
