"""Sends HTTP requests: all requests of a crawl, each to one server only, with a deadline and a size limit.

The exceptions of `requests` contain the request, whose headers contain the token. They are not re-raised and
never become the cause or context of our errors; only their class names are reported.
"""

from __future__ import annotations

import io
import threading
import time
import zlib
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from http.client import HTTPResponse
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError

from gis_builder.crawling.github.access_tokens import Token
from gis_builder.crawling.github.responses import (
    AnswerKind,
    QueryAnswer,
    classify,
    damaged,
)
from pairkit.base.system.address import Address

# A hundred comments of the maximum length with every character escaped are 40 MB.
_MAX_BYTES = 64 << 20
_CHUNK = 1 << 16
_GZIP = 16 + zlib.MAX_WBITS


class _LimitedReader(io.BufferedReader):
    def read(self, size: int | None = -1, /) -> bytes:
        # A negative length of a chunk would be read without a limit.
        if size is None or size < 0:
            raise OSError("read without a limit")
        return super().read(size)


class _Response(HTTPResponse):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp = _LimitedReader(self.fp.detach())


@cache
def _limited(connection: type) -> type:
    return type(connection.__name__, (connection,), {"response_class": _Response})


class _Adapter(HTTPAdapter):
    def get_connection_with_tls_context(self, *args: Any, **options: Any) -> Any:
        """See `HTTPAdapter`; the pool's connections read with `_LimitedReader`."""
        pool: Any = super().get_connection_with_tls_context(*args, **options)
        pool.ConnectionCls = _limited(type(pool).ConnectionCls)
        return pool


class Exchange:
    """Sends requests to one server with one token, over a persistent connection."""

    def __init__(self, address: Address, token: Token, timeout_s: float) -> None:
        self._address = address
        self._url = address.join("/graphql")
        self._token = token
        self._timeout_s = timeout_s
        self._session = _open_session(address)

    def post(self, body: bytes) -> QueryAnswer:
        """Post a query as JSON; returns the classified response, or the reason why there is none."""
        answer: Future[QueryAnswer] = Future()
        # Timeouts of `requests` hold for each read. A late exchange ends in its own thread, without effect.
        request = (answer, self._session, body)
        threading.Thread(target=self._answer, args=request, daemon=True).start()
        with suppress(TimeoutError):
            return answer.result(self._timeout_s)
        self.close()
        self._session = _open_session(self._address)
        return _LATE

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _answer(
        self,
        answer: Future[QueryAnswer],
        session: requests.Session,
        body: bytes,
    ) -> None:
        try:
            answer.set_result(self._send(session, body))
        except requests.ReadTimeout:
            answer.set_result(_LATE)
        except (requests.RequestException, HTTPError) as error:
            message = f"the connection failed ({type(error).__name__})"
            answer.set_result(
                QueryAnswer(AnswerKind.TRANSIENT, message=message, has_response=False)
            )
        except BaseException as error:  # noqa: BLE001 - raised by `result`
            answer.set_exception(error)

    def _send(self, session: requests.Session, body: bytes) -> QueryAnswer:
        end = time.monotonic() + self._timeout_s
        # A host may have several addresses, so an attempt to connect gets a part of the time.
        connect_timeout_s = self._timeout_s / 4
        with session.post(
            self._url,
            data=body,
            headers={"Accept": "application/json", "Content-Type": "application/json"},
            auth=self._token,
            timeout=(connect_timeout_s, self._timeout_s),
            allow_redirects=False,
            stream=True,
        ) as response:
            received = {
                name.lower(): self._token.mask(value)
                for name, value in response.headers.items()
            }
            encoding = received.get("content-encoding", "")
            content = _decompress(_read_body(response, end), encoding)
            if isinstance(content, QueryAnswer):
                return content
            # The server may have echoed the token.
            body = self._token.mask_bytes(content)
            return classify(response.status_code, received, body)


class _Session(requests.Session):
    def get_redirect_target(self, resp: requests.Response) -> None:
        """Return None; otherwise `requests` prepares the redirected request, although it does not send it."""


def _open_session(address: Address) -> requests.Session:
    """A session without cookies and redirects."""
    session = _Session()
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    session.headers.update({"User-Agent": "aoe-toolkit", "Accept-Encoding": "gzip"})
    for scheme in ("https://", "http://"):
        session.mount(scheme, _Adapter())
    session.trust_env = not address.is_loopback  # no proxy for this machine
    return session


def _read_body(response: requests.Response, end: float) -> bytes:
    """Read the encoded body; stops above the size limit and at the deadline."""
    body = bytearray()
    while len(body) <= _MAX_BYTES and (
        chunk := response.raw.read(_CHUNK, decode_content=False)
    ):
        body += chunk
        # An exception, because a truncated body whose length is unknown would look complete.
        if time.monotonic() > end:
            raise requests.ReadTimeout
    return bytes(body)


def _decompress(body: bytes, encoding: str) -> bytes | QueryAnswer:
    """Decompress a body, at most up to the size limit."""
    encoding = encoding.strip().lower()
    if encoding in ("gzip", "x-gzip"):
        decompressor = zlib.decompressobj(_GZIP)
        try:
            body = decompressor.decompress(body, _MAX_BYTES + 1)
        except zlib.error:
            return damaged("damaged gzip data")
        if len(body) <= _MAX_BYTES and not decompressor.eof:
            return damaged("truncated gzip data")
    elif encoding not in ("", "identity"):
        return damaged("an encoding that was not requested")
    return body if len(body) <= _MAX_BYTES else _TOO_LONG


# A query that timed out may succeed at half its size.
_LATE = QueryAnswer(AnswerKind.TOO_HEAVY, message="no response in time")
_TOO_LONG = QueryAnswer(
    AnswerKind.TOO_HEAVY, message=f"a response of more than {_MAX_BYTES >> 20} MiB"
)
