"""Sends HTTP requests: all requests of a crawl, each to one server only, with a deadline and a size limit.

The exceptions of `httpx2` contain the request, whose headers contain the token. They are not re-raised and
never become the cause or context of our errors; only their class names are reported.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from gis_builder.crawling.github.answers import AnswerKind, QueryAnswer, bad_reply
from gis_builder.crawling.github.tokens import Token
from pairkit.system.address import Address

# A hundred comments of the maximum length with every character escaped are 40 MB.
_MAX_BYTES = 64 << 20
_GZIP = 16 + zlib.MAX_WBITS
_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip",
    "Content-Type": "application/json",
    "User-Agent": "aoe-toolkit",
}


@dataclass(frozen=True, slots=True)
class Raw:
    """A response, in which the token is masked if the server echoed it."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Exchange:
    """Sends requests to one server with one token, over a persistent connection."""

    def __init__(self, address: Address, token: Token, timeout_s: float) -> None:
        self._address, self._token, self._timeout_s = address, token, timeout_s
        self._loop = asyncio.new_event_loop()  # asyncio ends a request at any point: DNS, TLS, headers, body
        # No proxy for this machine.
        self._client = httpx2.AsyncClient(timeout=None, trust_env=not address.is_loopback)

    def post(self, path: str, body: bytes) -> Raw | QueryAnswer:
        """Post JSON to a path below the root; returns the response, or the reason why there is none."""
        url = self._address.join(path)
        try:
            return self._loop.run_until_complete(asyncio.wait_for(self._post(url, body), self._timeout_s))
        except TimeoutError:
            return _LATE
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            message = f"the connection failed ({type(error).__name__})"
            return QueryAnswer(AnswerKind.TRANSIENT, message=message, has_response=False)

    def close(self) -> None:
        """Close the connection, unless another thread is still waiting for a response."""
        if not self._loop.is_running() and not self._loop.is_closed():
            self._loop.run_until_complete(self._client.aclose())
            self._loop.close()

    async def _post(self, url: str, body: bytes) -> Raw | QueryAnswer:
        self._client.cookies.clear()
        headers = _HEADERS | self._token.headers(url)
        async with self._client.stream("POST", url, content=body, headers=headers, auth=None) as response:
            received = {name.lower(): self._token.mask(value) for name, value in response.headers.items()}
            content = _decompress(await _read_body(response), received.get("content-encoding", ""))
        if isinstance(content, QueryAnswer):
            return content
        return Raw(response.status_code, received, self._token.mask_bytes(content))


async def _read_body(response: httpx2.Response) -> bytes:
    """Read the encoded body; stops above the size limit."""
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > _MAX_BYTES:
            break
    return bytes(body)


def _decompress(body: bytes, encoding: str) -> bytes | QueryAnswer:
    """Decompress a body, at most up to the size limit."""
    encoding = encoding.strip().lower()
    if encoding in ("gzip", "x-gzip"):
        decompressor = zlib.decompressobj(_GZIP)
        try:
            body = decompressor.decompress(body, _MAX_BYTES + 1)
        except zlib.error:
            return bad_reply("damaged gzip data")
        if len(body) <= _MAX_BYTES and not decompressor.eof:
            return bad_reply("truncated gzip data")
    elif encoding not in ("", "identity"):
        return bad_reply("an encoding that was not requested")
    return body if len(body) <= _MAX_BYTES else _TOO_LONG


# A query that timed out may succeed at half its size.
_LATE = QueryAnswer(AnswerKind.TOO_HEAVY, message="no response in time")
_TOO_LONG = QueryAnswer(AnswerKind.TOO_HEAVY, message=f"a response of more than {_MAX_BYTES >> 20} MiB")
