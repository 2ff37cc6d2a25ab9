"""One HTTP request and what came of it: every request of a crawl is made here, and goes to one server only.

The exceptions of `requests` carry the request, whose headers hold the token. They end here: only their class
name goes on, and none of them becomes the cause or context of an error of ours.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy

import requests

from gis_builder.github.tokens import Token
from pairkit.address import Address

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer as it came, but for the token, should the server have echoed it."""

    status: int
    headers: Mapping[str, str]  # their names in lower case
    body: bytes


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why there is none."""

    words: str
    was_heard: bool  # whether the server began to answer


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: what to ask next is for us to decide. Else the next request is prepared, though not sent."""


class Exchange:
    """Asks one server with one token, over a connection that is kept open.

    Args:
        address: The server's root, for which the token was given.
        token: What to sign with.
        timeout_s: How long an answer may take.
    """

    def __init__(self, address: Address, token: Token, timeout_s: float) -> None:
        self._address, self._token, self._timeout_s = address, token, timeout_s
        self._session = _Session()
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        self._session.headers["User-Agent"] = "aoe-toolkit"
        # What is for this machine goes through no proxy. (A .netrc takes no part, as the token signs.)
        self._session.trust_env = not address.is_loopback

    def get(self, path: str, accept: str) -> Raw | NoAnswer:
        """Ask for a path below the root.

        Raises:
            AuthError: a GitHub App's installation gives no token to sign with.
            BadReply: it is no path on this server.
        """
        return self._send("GET", path, {"Accept": accept}, None)

    def post(self, path: str, body: bytes) -> Raw | NoAnswer:
        """Send JSON to a path below the root; see `get`."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        return self._send("POST", path, headers, body)

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> Raw | NoAnswer:
        try:
            with self._session.request(
                method,
                self._address.join(path),
                data=body,
                headers=headers,
                auth=self._token,
                timeout=self._timeout_s,
                allow_redirects=False,
                stream=True,
            ) as response:
                return self._read(response)
        except requests.ReadTimeout:
            return _LATE
        except requests.RequestException as error:
            return NoAnswer(f"the connection failed ({type(error).__name__})", was_heard=False)

    def _read(self, response: requests.Response) -> Raw | NoAnswer:
        """Read the body under one deadline: the library's own timeout is for the gap between two bytes."""
        deadline = time.monotonic() + self._timeout_s
        body = bytearray()
        for chunk in response.iter_content(_CHUNK):
            body += chunk
            if time.monotonic() > deadline:
                return _LATE
        headers = {name.lower(): self._token.mask(value) for name, value in response.headers.items()}
        return Raw(response.status_code, headers, self._token.mask_bytes(bytes(body)))


_LATE = NoAnswer("no answer in time", was_heard=True)
