"""What a server has of a month: how large each hour is and how it ends, without their bodies.

A month is asked for once, and what was said is kept: so all shards have the same tasks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import msgspec

from gis_builder._archive.mirror.slots import connection
from gis_builder._archive.mirror.tries import PATIENCE, Tries, refusal_of
from gis_builder._archive.mirror.wire import Dropped, Reply, Wire
from gis_builder._archive.objects import Location
from gis_builder._archive.source import TRAILER, identity
from gis_builder._archive.tasks import damaged
from pairkit.address import read_address
from pairkit.errors import RemoteError

_MOST_BYTES = 512 << 20  # of an hour; the largest have some 150 MB
_MISSING = frozenset({404, 410})
_RANGE = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15})")
_MD5 = re.compile(r"(?:^|[,\s])md5=([A-Za-z0-9+/]{22}==)(?:$|[,\s])")


class Listed(msgspec.Struct, frozen=True):
    """An hour that a server has.

    Attributes:
        hour: Its name.
        size: In bytes.
        trailer: Its last bytes, in hex.
        version: What the server calls this version, for `If-Range`; empty where it says nothing of it.
        md5: The digest that the server names, in base 64; empty where it names none.
    """

    hour: str
    size: int
    trailer: str
    version: str = ""
    md5: str = ""

    @property
    def identity(self) -> str:
        """As a folder has it."""
        return identity(self.size, bytes.fromhex(self.trailer))


def file_of(hour: str) -> str:
    """The path of an hour below a server's root."""
    return f"/{hour}.json.gz"


def list_month(root: str, hours: Sequence[str], slots: Path, parallel: int) -> bytes:
    """Those of a month's hours that a server has, see `read_listing`.

    Args:
        root: The server's root.
        hours: Their names.
        slots: Where connections are counted.
        parallel: How many of them there may be.

    Raises:
        RemoteError: The server fails again and again, or gives no parts of files.
    """
    address = read_address(root, "source", "https://data.gharchive.org")
    with connection(slots, parallel), Wire(address, PATIENCE.answer_s) as wire:
        found = [_listed(wire, hour, root + file_of(hour)) for hour in hours]
    return msgspec.json.encode([listed for listed in found if listed is not None])


def read_listing(path: Location) -> list[Listed]:
    """What `list_month` found.

    Raises:
        DataError: The file is damaged.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Listed])
    except (msgspec.MsgspecError, OSError) as error:
        raise damaged(path, error) from error


def range_of(reply: Reply) -> tuple[int, int, int] | None:
    """The first and the last byte of a part and the size of the whole, as a server says it."""
    match = _RANGE.fullmatch(reply.headers.get("content-range", "").strip())
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))


def _listed(wire: Wire, hour: str, url: str) -> Listed | None:
    tries = Tries(url)
    while True:
        try:
            with wire.get(file_of(hour), {"Range": f"bytes=-{TRAILER}"}) as reply:
                if reply.status in _MISSING:
                    reply.pass_over()
                    return None
                if reply.status in (200, 206, 416):
                    return _read(hour, url, reply)
                raise refusal_of(url, reply)
        except Dropped as failure:
            tries.failed(failure)


def _read(hour: str, url: str, reply: Reply) -> Listed:
    if reply.status == 416 and reply.headers.get("content-range", "").strip() == "bytes */0":
        return Listed(hour, 0, "")
    part = range_of(reply) if reply.status == 206 else _whole(reply)
    if part is None:
        raise RemoteError(
            f"{url}: the server does not say how large it is, or gives no parts of files (HTTP"
            f" {reply.status}), without which a download can't continue; download the hours by other means,"
            " and give the folder as --source (source=…)"
        )
    first, last, size = part
    if size > _MOST_BYTES:
        raise RemoteError(f"{url}: has {size:,} bytes, as no hour has; check --source (source=…)")
    trailer = b"".join(islice(reply.blocks(), 2))  # a first block has all of it, unless the server sends more
    if last != size - 1 or len(trailer) != last - first + 1 or len(trailer) != min(TRAILER, size):
        raise Dropped("another part of the file than was asked for")
    return Listed(hour, size, trailer.hex(), _version(reply), _md5(reply))


def _whole(reply: Reply) -> tuple[int, int, int] | None:
    """Of a file so small that all of it is its end."""
    length = reply.headers.get("content-length", "")
    size = int(length) if re.fullmatch(r"[0-9]{1,2}", length) else TRAILER + 1
    return (0, size - 1, size) if size <= TRAILER else None


def _version(reply: Reply) -> str:
    tag = reply.headers.get("etag", "").strip()
    if re.fullmatch(r'"[!#-~]{1,200}"', tag):  # a weak one is not allowed in If-Range
        return tag
    date = reply.headers.get("last-modified", "").strip()
    return date if re.fullmatch(r"[A-Za-z0-9:, ]{10,40}", date) else ""


def _md5(reply: Reply) -> str:
    """Google's name for it; `Content-MD5` of a part is the part's."""
    match = _MD5.search(reply.headers.get("x-goog-hash", ""))
    return match[1] if match else ""
