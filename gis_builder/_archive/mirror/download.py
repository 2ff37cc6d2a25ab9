"""An hour's file from a server into the working folder, from where it broke off and until it is whole."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from gis_builder._archive.mirror.listing import Listed, file_of, range_of
from gis_builder._archive.mirror.tries import PATIENCE, Tries, refusal_of
from gis_builder._archive.mirror.wire import Dropped, Reply, Wire
from gis_builder._archive.source import TRAILER
from pairkit.address import Address
from pairkit.errors import RemoteError
from pairkit.files import open_own, write_errors

_GETS_ON = 1 << 20  # bytes that make an answer which broke off no failure
_GONE = frozenset({404, 410})


class ChangedOnServer(RemoteError):  # noqa: N818 - what became of the file
    """The server has another file now than it had when it was listed."""

    def __init__(self, hour: str) -> None:
        super().__init__(hour)
        self.hour = hour

    def __str__(self) -> str:
        return f"{self.hour}.json.gz: changed on the server meanwhile; run the same command again to continue"


class Download:
    """One hour, which is this process's alone meanwhile.

    Args:
        root: The server's root.
        listed: What is expected.
        path: The file.
        file: It, opened; what it holds already is a beginning of what is expected.
    """

    def __init__(self, root: Address, listed: Listed, path: Path, file: IO[bytes]) -> None:
        self._root, self._listed, self._path, self._handle = root, listed, path, file.fileno()
        self._url = root.url + file_of(listed.hour)
        self._tries, self._damages = Tries(self._url), Tries(self._url)
        self._md5 = listed.md5

    def fill(self) -> None:
        """Download what is missing.

        Raises:
            ChangedOnServer: The server has another file, or none, by now.
            RemoteError: It fails again and again.
            ConfigError: The file can't be written.
        """
        with Wire(self._root, PATIENCE.answer_s) as wire:
            while not self._is_whole():
                before, failure = self._have, Dropped("the answer ends early")
                try:
                    self._ask(wire)
                except Dropped as error:
                    failure = error
                if self._have - before >= _GETS_ON:
                    self._tries.succeeded()
                elif self._have < self._listed.size:
                    self._tries.failed(failure)

    def begin_anew(self, why: str) -> None:
        """Forget what came, as it is damaged, and download it again."""
        self._truncate(0)
        self._damages.failed(Dropped(why))
        self.fill()

    def digest(self) -> bytes:
        """What tells what came from other bytes."""
        return self._digest("sha256")

    @property
    def _have(self) -> int:
        return os.fstat(self._handle).st_size

    def _is_whole(self) -> bool:
        """Whether all came, and as it is on the server."""
        if self._have < self._listed.size:
            return False
        if self._md5 and base64.b64encode(self._digest("md5")).decode() != self._md5:
            self._truncate(0)
            self._damages.failed(Dropped("what came has another digest (md5) than the server names"))
            return False
        if os.pread(self._handle, TRAILER, max(0, self._listed.size - TRAILER)).hex() != self._listed.trailer:
            self._truncate(0)
            raise ChangedOnServer(self._listed.hour)
        return True

    def _ask(self, wire: Wire) -> None:
        have = self._have if self._listed.version else 0  # without a version a rest may be another file's
        part = {"Range": f"bytes={have}-", "If-Range": self._listed.version} if have else {}
        with wire.get(file_of(self._listed.hour), part) as reply:
            at = self._begin(reply, have)
            self._truncate(at)
            for block in reply.blocks():
                at = self._write(block[: self._listed.size - at], at)
                if at == self._listed.size:
                    break

    def _begin(self, reply: Reply, have: int) -> int:
        """Where in the file an answer goes."""
        if reply.status in _GONE:
            raise ChangedOnServer(self._listed.hour)
        if reply.status == 206:
            part = range_of(reply)
            if part is not None and part[2] != self._listed.size:
                raise ChangedOnServer(self._listed.hour)
            if part is None or part[0] != have:
                raise Dropped("another part of the file than was asked for")
            return have
        if reply.status == 200:
            if reply.headers.get("content-length", str(self._listed.size)) != str(self._listed.size):
                raise ChangedOnServer(self._listed.hour)
            self._md5 = self._listed.md5 or reply.headers.get("content-md5", "").strip()
            return 0
        if reply.status == 416:
            self._truncate(0)
            raise Dropped("the server has no such part of the file")
        raise refusal_of(self._url, reply)

    def _write(self, block: bytes, at: int) -> int:
        with write_errors(self._path):
            while block:
                count = os.pwrite(self._handle, block, at)
                block, at = block[count:], at + count
        return at

    def _truncate(self, size: int) -> None:
        with write_errors(self._path):
            os.ftruncate(self._handle, size)

    def _digest(self, name: str) -> bytes:
        digest = hashlib.new(name, usedforsecurity=False)
        with self._path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        return digest.digest()


@contextmanager
def held_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that is this process's alone meanwhile, opened; it is made where it is absent.

    Raises:
        ConfigError: It can't be written.
    """
    while True:
        with write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with open_own(path, private=True) as file:
            with write_errors(path):
                fcntl.flock(file, fcntl.LOCK_EX)
            if _is_there(path, file):
                yield file
                return


def _is_there(path: Path, file: IO[bytes]) -> bool:
    """Whether it was not taken away while another process held it."""
    try:
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False
