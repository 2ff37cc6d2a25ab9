"""Files of tasks in an object store, S3, where machines without a common folder work together.

A PUT is whole or absent and is seen at once, so "it exists" means there what it means in a folder. Nothing
else is asked of a store: no locks, no renaming, no writing in place. What needs these stays in a folder of
the machine. Whether thousands of files exist is asked by listing their folder.

A table is read whole where that takes a request or two, since polars takes three or more to read a part of
it. Of a large one polars reads the row groups that are wanted. Both clients get the same settings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from errno import ENOENT
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pairkit.address import read_address
from pairkit.errors import AuthError, ConfigError, DataError, PairkitError, RemoteError
from pairkit.extras import needed_for
from pairkit.files import write_bytes
from pairkit.printable import one_line

if TYPE_CHECKING:
    from obstore.store import S3Config, S3Store

_EXAMPLE = "s3://bucket/gis-2015"
_URL = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<key>.*))?")
# Libraries and stores disagree on how others are written in a URL.
_KEY = re.compile(r"[A-Za-z0-9!_.'()=,+~-]+(?:/[A-Za-z0-9!_.'()=,+~-]+)*")
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_KEYS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_FOOTER = 64 << 10  # bytes that most footers have at most
_FIRST, _PART = 1 << 20, 8 << 20  # bytes that the first request reads, and each further one
SMALL = _FIRST + _PART
_MOST_BYTES = 5 << 30  # that one request writes
_SLOWEST = 256 << 10  # bytes a second
_AT_ONCE = 8
_REFUSED = re.compile("HTTP 40[13]|ExpiredToken|InvalidToken")
_ELSEWHERE = re.compile("HTTP 30[17]|AuthorizationHeaderMalformed|IllegalLocation|HTTP 400$")
_FAILURES = {"error sending request": "no answer", "response body error": "an answer that breaks off"}
_REMEDY = "delete it and run again"
_From = TypeVar("_From")
_To = TypeVar("_To")


class Patience(NamedTuple):
    """How patiently a store is asked; it is over for good within twice `in_all_s`.

    Attributes:
        answer_s: Seconds that one answer may take to its last byte.
        retries: Of one request.
        in_all_s: Seconds after which it is not asked again.
        most_wait_s: Seconds between two tries.
    """

    answer_s: float = 20.0
    retries: int = 8
    in_all_s: float = 60.0
    most_wait_s: float = 5.0


PATIENCE = Patience()


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """An object, or what would be a folder, as far as tasks use a `Path`.

    It holds no credentials: each process takes those of its own environment.

    Attributes:
        bucket: Its name.
        key: Names joined by slashes; empty for the bucket itself.
    """

    bucket: str
    key: str = ""

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self.bucket, f"{self.key}/{name}" if self.key else name)

    @property
    def name(self) -> str:
        """What follows the last slash."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> ObjectPath:
        """What stands before it."""
        return ObjectPath(self.bucket, self.key.rpartition("/")[0])

    def exists(self) -> bool:
        """Whether there is such an object; of many, `existing` tells it sooner."""
        try:
            with _refusals(self):
                self._store().head(self.key)
        except FileNotFoundError:
            return False
        return True

    def names(self) -> set[str]:
        """The names of the objects of this folder."""
        with _refusals(self):
            found = self._store().list_with_delimiter(self.key or None)["objects"]
        return {meta["path"].rpartition("/")[2] for meta in found}

    def read_bytes(self) -> bytes:
        """All that it holds.

        Raises:
            FileNotFoundError: There is none.
            DataError: It is none of ours, as it is empty or too large.
            RemoteError: The store failed.
        """
        data = self.read_up_to(_MOST_BYTES)
        if data is None:
            raise DataError(f"is larger than any of ours; {_REMEDY}", path=str(self))
        return data

    def read_up_to(self, most: int) -> bytes | None:
        """See `read_bytes`; None where it holds more."""
        store = self._store()
        with _refusals(self):
            first = store.get(self.key, options={"range": (0, _FIRST)})
            size, parts = first.meta["size"], [bytes(first.bytes())]
            if size > most:
                return None
            for start in range(_FIRST, size, _PART):
                part = store.get_range(self.key, start=start, end=min(start + _PART, size))
                parts.append(bytes(part))
        return b"".join(parts)

    def read_end(self, count: int) -> bytes:
        """Its last bytes, or all of it where it has fewer; see `read_bytes`."""
        with _refusals(self):
            return bytes(self._store().get(self.key, options={"range": {"suffix": count}}).bytes())

    def write_bytes(self, data: bytes) -> None:
        """Make it hold this, in one step.

        Raises:
            RemoteError: The store failed; nothing was written.
        """
        try:
            with _refusals(self):
                # In several parts what a killed process began would lie there unseen, and cost.
                self._store(len(data)).put(self.key, data, use_multipart=False)
        except FileNotFoundError:
            raise _no_bucket(self) from None

    def unlink(self, *, missing_ok: bool) -> None:
        """Delete it, if it is there."""
        del missing_ok  # a store does not say whether it was
        with _refusals(self):
            self._store().delete(self.key)

    def _store(self, size: int = 0) -> S3Store:
        answer_s = PATIENCE.answer_s
        while size > answer_s * _SLOWEST:
            answer_s *= 2
        return _opened(self.bucket, _endpoint(), _region(), answer_s)


Location = Path | ObjectPath


def location_at(url: str, what: str) -> ObjectPath:
    """Where a URL leads, `s3://bucket/folder`.

    Args:
        url: It.
        what: The flag or setting, for messages.

    Raises:
        ConfigError: It is no such URL, and a password in it is not repeated; or the extra is not installed.
    """
    if "@" in url:
        raise ConfigError(f"{what} holds a user or password; leave them out: keys are taken from {_KEYS}")
    if "?" in url or "#" in url:
        raise ConfigError(f"{what} holds a query or a fragment; leave it out")
    match = _URL.fullmatch(url)
    key = ((match and match["key"]) or "").rstrip("/")
    is_plain = not key or (_KEY.fullmatch(key) and not {".", ".."} & set(key.split("/")))
    if match is None or not is_plain:
        raise ConfigError(
            f"{what} is {one_line(url, 200)}: expected a folder, or a bucket of S3 and names of plain"
            f" letters, digits and dashes, such as {_EXAMPLE}"
        )
    with needed_for(f"{what} = {url}"):
        import obstore  # noqa: F401 - before anything is done
    return ObjectPath(match["bucket"], key)


def existing(places: Iterable[Location]) -> set[Location]:
    """Those of the files that are there."""
    found: set[Location] = set()
    names: dict[ObjectPath, set[str]] = {}
    for place in set(places):
        if isinstance(place, ObjectPath):
            folder = place.parent
            if folder not in names:
                names[folder] = folder.names()
            is_there = place.name in names[folder]
        else:
            is_there = place.exists()
        if is_there:
            found.add(place)
    return found


def write(place: Location, data: bytes) -> None:
    """Write a file in one step; in a folder it is readable by its owner alone."""
    if isinstance(place, ObjectPath):
        place.write_bytes(data)
    else:
        write_bytes(place, data, private=True)


def keep(place: Location, data: bytes) -> None:
    """Write a file whose name says what it holds, unless it is there."""
    if not place.exists():
        write(place, data)


def footer_of(table: ObjectPath) -> bytes:
    """The end of a Parquet file, from which its notes can be read."""
    end = table.read_end(_FOOTER)
    size = int.from_bytes(end[-8:-4], "little") + 8  # its length and the magic number
    return b"PAR1" + (end if size <= len(end) else table.read_end(min(size, _PART)))[-size:]


def several(function: Callable[[_From], _To], given: Sequence[_From]) -> list[_To]:
    """What a function that waits for a store gives for each, a few at once."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(function, given))


def _endpoint() -> str:
    """The root of the server; empty for Amazon's.

    Raises:
        ConfigError: Others could read what is sent there; or a variable holds what clients fail at.
    """
    for variable, value in os.environ.items():
        if variable.startswith("AWS_") and _CONTROL.search(value):
            raise ConfigError(f"{variable} holds a line break or another control character; take it out")
    name = next((name for name in _ENDPOINTS if os.environ.get(name)), None)
    if name is None:
        return ""
    address = read_address(os.environ[name], name, "https://minio.example.org:9000")
    address.guard("what is stored", "an address of this machine")
    return address.url


def _region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def polars_options() -> dict[str, Any]:
    """What `_opened` is told, for polars, with which keys it finds in the environment itself, too."""
    endpoint = _endpoint()
    options = {"aws_endpoint": endpoint} if endpoint else {}
    return options | {
        "aws_region": _region(),  # else it is looked for in ~/.aws
        "aws_allow_http": str(endpoint.startswith("http://")).lower(),
        "timeout": f"{PATIENCE.answer_s} seconds",
        "max_retries": PATIENCE.retries,
        "retry_timeout_ms": int(1000 * PATIENCE.in_all_s),
    }


@lru_cache
def _opened(bucket: str, endpoint: str, region: str, answer_s: float) -> S3Store:
    """The client; keys, session and roles of machines it finds in the environment itself."""
    from obstore.store import S3Store

    is_plain = endpoint.startswith("http://")
    config: S3Config = {"region": region}
    if endpoint:
        config["endpoint"] = endpoint
    return S3Store(
        bucket,
        config=config,
        client_options={
            "timeout": timedelta(seconds=answer_s),
            "connect_timeout": timedelta(seconds=min(5.0, answer_s)),
            "allow_http": is_plain,
        },
        retry_config={
            "max_retries": PATIENCE.retries,
            "retry_timeout": timedelta(seconds=PATIENCE.in_all_s),
            "backoff": {"max_backoff": timedelta(seconds=PATIENCE.most_wait_s)},
        },
    )


@contextmanager
def _refusals(place: ObjectPath) -> Iterator[None]:
    """Turn what a store refuses, or fails to do, into errors of ours."""
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(ENOENT, "no such object", str(place)) from error
    except BaseError as error:
        raise failure_of(place, str(error)) from error


def failure_of(place: ObjectPath, words: str) -> PairkitError:
    """What to do about an error of a client.

    Of a refusal only its code is told, as the rest repeats what was signed.

    Args:
        place: What was asked for.
        words: What the client says.
    """
    status = re.search(r"status code: (\d{3})", words)
    code = re.search(r"<Code>(\w{1,60})</Code>", words)
    said = " ".join([f"HTTP {status[1]}" if status else "", code[1] if code else ""]).strip()
    if "NoSuchBucket" in said:
        return _no_bucket(place)
    if "169.254.169.254" in words or re.search("Missing (?:SecretAccessKey|AccessKeyId)", words):
        return AuthError(f"{place}: no credentials; set {_KEYS}")
    if _REFUSED.search(said):
        return AuthError(f"{place}: {said}; check {_KEYS}, and that they may list, read and write there")
    if _ELSEWHERE.search(said) or "configured region" in words:
        return ConfigError(f"{place}: is not served there ({said}); check AWS_REGION and {_ENDPOINTS[1]}")
    if said.startswith("HTTP 416") or "non-partial response" in words:
        return DataError(f"damaged (it is empty); {_REMEDY}", path=str(place))
    if setting := re.search("Config error: (.*)", words):
        return ConfigError(f"{place}: {one_line(setting[1], 200)}; check the variables that begin with AWS_")
    if "invalid path" in words:
        return ConfigError(
            f"{place}: holds an object whose name is no path, such as a/../b or a//b; delete it, or give"
            " another --work (work=…)"
        )
    why = said or next((why for mark, why in _FAILURES.items() if mark in words), one_line(words, 200))
    return RemoteError(f"{place}: the store fails ({why}); run the same command again to continue")


def _no_bucket(place: ObjectPath) -> ConfigError:
    return ConfigError(f"{place}: no such bucket; make it, or give another --work (work=…)")
