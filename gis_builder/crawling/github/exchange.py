"""One HTTP request and what came of it: every request of a crawl is made here, and goes to one server only.

The exceptions of `requests` carry the request, whose headers hold the token. They end here: only their class
name goes on, and none of them becomes the cause or context of an error of ours.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy

import requests
from urllib3.exceptions import HTTPError

from gis_builder.crawling.github.answers import Answer, AnswerKind, bad_reply
from gis_builder.crawling.github.deadline import Deadline
from gis_builder.crawling.github.tokens import Token
from pairkit.system.address import Address

# A hundred comments of the longest kind, each letter of them escaped, are 40 MB.
_MOST_BYTES = 64 << 20
_CHUNK = 1 << 16
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer as it came, but for the token, should the server have echoed it."""

    status: int
    headers: Mapping[str, str]  # their names in lower case
    body: bytes


class Exchange:
    """Asks one server with one token, over a connection that is kept open."""

    def __init__(self, address: Address, token: Token, timeout_s: float) -> None:
        self._address, self._token, self._timeout_s = address, token, timeout_s
        self._session, self._deadline = _open_session(address)

    def get(self, path: str, accept: str) -> Raw | Answer:
        """Ask for a path below the root: what came, or why nothing did."""
        return self._send("GET", path, {"Accept": accept}, None)

    def post(self, path: str, body: bytes) -> Raw | Answer:
        """Send JSON to a path below the root; see `get`."""
        return self.write("POST", path, body, "application/json")

    def write(self, method: str, path: str, body: bytes, accept: str) -> Raw | Answer:
        """Ask for a change of what is under a path below the root; see `get`."""
        headers = {"Accept": accept} | ({"Content-Type": "application/json"} if body else {})
        return self._send(method, path, headers, body or None)

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> Raw | Answer:
        with self._deadline.within(self._timeout_s) as watch:
            try:
                came = self._once(method, self._address.join(path), headers, body)
            except requests.ReadTimeout:
                return _LATE
            except (requests.RequestException, HTTPError) as error:
                return _LATE if watch.is_over else _failed(type(error).__name__)
        # Where a body ends with the connection, one that was cut off looks whole.
        return _LATE if watch.is_over else came

    def _once(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> Raw | Answer:
        with self._session.request(
            method,
            url,
            data=body,
            headers=headers,
            auth=self._token,
            timeout=self._timeout_s,
            allow_redirects=False,
            stream=True,
        ) as response:
            came = {name.lower(): self._token.mask(value) for name, value in response.headers.items()}
            content = _unpacked(_body(response), came.get("content-encoding", ""))
            if isinstance(content, Answer):
                return content
            return Raw(response.status_code, came, self._token.mask_bytes(content))


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: what to ask next is for us to decide. Else the next request is prepared, though not sent."""


def _open_session(address: Address) -> tuple[requests.Session, Deadline]:
    """A session without cookies that follows no redirect, and the deadline that its exchanges keep.

    Its requests need an authentication object, lest a `.netrc` file signs them.
    """
    session, deadline = _Session(), Deadline()
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    session.headers.update({"User-Agent": "aoe-toolkit", "Accept-Encoding": "gzip"})
    for scheme in ("https://", "http://"):
        session.mount(scheme, deadline)
    # What is for this machine goes through no proxy.
    session.trust_env = not address.is_loopback
    return session, deadline


def _body(response: requests.Response) -> bytes:
    """The body as it was sent, or a little more than may be taken of it."""
    body = bytearray()
    while len(body) <= _MOST_BYTES and (chunk := response.raw.read(_CHUNK, decode_content=False)):
        body += chunk
    return bytes(body)


def _unpacked(body: bytes, encoding: str) -> bytes | Answer:
    """The body without its encoding, which takes no more memory than a body may."""
    packing = encoding.strip().lower()
    if packing in ("gzip", "x-gzip"):
        unpacker = zlib.decompressobj(_GZIP)
        try:
            body = unpacker.decompress(body, _MOST_BYTES + 1)
        except zlib.error:
            return bad_reply("a gzip that is damaged")
        if len(body) <= _MOST_BYTES and not unpacker.eof:
            return bad_reply("a gzip that is cut off")
    elif packing not in ("", "identity"):
        return bad_reply("an encoding that was not asked for")
    return body if len(body) <= _MOST_BYTES else _TOO_LONG


def _failed(error: str) -> Answer:
    return Answer(AnswerKind.TRANSIENT, message=f"the connection failed ({error})", was_heard=False)


# A server that does not come to an end with a query may do so with half of it.
_LATE = Answer(AnswerKind.TOO_HEAVY, message="no answer in time")
_TOO_LONG = Answer(AnswerKind.TOO_HEAVY, message=f"an answer of more than {_MOST_BYTES >> 20} MiB")
