"""One request to a server and its answer, read as it comes; nothing is sent but the name of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from types import TracebackType
from typing import Self
from urllib.parse import urljoin

import requests
from requests.auth import AuthBase
from urllib3.exceptions import HTTPError

from gis_builder._github.deadline import Watch
from gis_builder._github.session import open_session
from pairkit import __version__
from pairkit.address import Address, is_path, origin_of
from pairkit.errors import RemoteError
from pairkit.printable import one_line

USER_AGENT = f"aoe-toolkit/{__version__} (gis archive)"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 3
_BLOCK = 1 << 16


class Dropped(Exception):  # noqa: N818 - what became of an answer
    """No answer, only a part of it, or one that says to ask later.

    Attributes:
        wait_s: Seconds to wait, where the server says it.
    """

    def __init__(self, why: str, wait_s: float | None = None) -> None:
        super().__init__(why)
        self.wait_s = wait_s


class Reply:
    """An answer whose body is still to be read.

    Attributes:
        status: Of HTTP.
        headers: Their names in lower case.
    """

    def __init__(self, response: requests.Response, watch: Watch) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.items()}
        self._response, self._watch = response, watch

    def blocks(self) -> Iterator[bytes]:
        """The body as it was sent.

        Raises:
            Dropped: It ends early, or the time is up.
        """
        while block := self._response.raw.read(_BLOCK, decode_content=False):
            yield block
        if self._watch.is_over:  # where a body ends with the connection, one that was cut off looks whole
            raise Dropped("no end in time")

    def pass_over(self) -> None:
        """Read a short body, so that the connection serves the next request."""
        for _ in islice(self.blocks(), 2):
            pass


class Wire:
    """A connection, kept open from one request to the next; a context manager.

    Args:
        root: The server's root.
        answer_s: Seconds that an answer may take to its last byte.
    """

    def __init__(self, root: Address, answer_s: float) -> None:
        self._root, self._answer_s = root, answer_s
        self._session, self._deadline = open_session(root, USER_AGENT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._session.close()

    @contextmanager
    def get(self, path: str, headers: Mapping[str, str]) -> Iterator[Reply]:
        """Ask for a path below the root.

        Raises:
            Dropped: Nothing, or not all, came. Also while the body is read.
            RemoteError: The answer leads where it is not followed.
        """
        with self._deadline.within(self._answer_s) as watch:
            try:
                with self._followed(self._root.join(path), headers) as response:
                    yield Reply(response, watch)
            except (requests.RequestException, HTTPError, OSError) as error:
                why = "no answer in time" if watch.is_over else f"the connection failed ({_name(error)})"
                raise Dropped(why) from error

    def _followed(self, url: str, headers: Mapping[str, str]) -> requests.Response:
        for _ in range(1 + _MOST_REDIRECTS):
            response = self._session.get(
                *(url,),
                headers=dict(headers),
                auth=_Unsigned(),
                timeout=self._answer_s,
                allow_redirects=False,
                stream=True,
            )
            if response.status_code not in _REDIRECTS:
                return response
            response.close()
            url = _redirected(url, response.headers.get("location", ""))
        raise RemoteError(f"{self._root.url}: redirects again and again; give --source as it ends (source=…)")


class _Unsigned(AuthBase):
    """Without it a `.netrc` file would sign."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


def _redirected(url: str, location: str) -> str:
    """Where a redirect leads: on the same server, or from https to https.

    Raises:
        RemoteError: It leads elsewhere.
    """
    try:
        target = urljoin(url, location)
    except ValueError:  # brackets that hold no address
        target = location
    here, there = origin_of(url), origin_of(target)
    if here is not None and there is not None:
        is_safe = here == there or here.scheme == there.scheme == "https"
        if is_safe and is_path("/" + target.partition("://")[2].partition("/")[2]):
            return target
    raise RemoteError(
        f"{url}: is redirected to {one_line(target, 100)}, which is not followed; only https leads to https:"
        " give the right --source (source=…)"
    )


def _name(error: Exception) -> str:
    reason = getattr(error, "reason", None)  # of urllib3, which says more than what wraps it
    return type(reason if isinstance(reason, Exception) else error).__name__
