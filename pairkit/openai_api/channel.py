"""One exchange with a server of OpenAI's protocol: bytes in, bytes out, failures by name.

What holds for every call: it goes to the address and nowhere else, redirects are not followed; what is for
this machine goes through no proxy; one deadline covers all of it, however the server dawdles; a body has a
limit, also once it is unpacked; what the server repeats of the credentials is masked before anybody sees it.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2

from pairkit import __version__
from pairkit.address import Address
from pairkit.errors import ConfigError
from pairkit.openai_api.credentials import Key, headers_for
from pairkit.openai_api.masking import Masking
from pairkit.openai_api.refusals import NoAnswer, Refusal, Refused
from pairkit.printable import one_line

MOST_BYTES = 64 << 20  # of a body
_CONNECT_S = 10.0
# Many servers drop a connection idle for 5 s: ours goes before, or a call might meet it closing.
_IDLE_S = 4.0
# With these the request never left.
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


@dataclass(frozen=True, slots=True)
class Connection:
    """How a server is reached.

    Attributes:
        address: Its root, which usually ends in `/v1`.
        key: The credential; None: none is sent.
        timeout_s: Seconds that a whole exchange may take.
        concurrency: Connections at a time.
        ca_file: Certificates (PEM) that are trusted in place of the system's; None: those of SSL_CERT_FILE or
            SSL_CERT_DIR, else the system's.
        plain_http: Send the key over plain http, too.
    """

    address: Address
    key: Key | None = None
    timeout_s: float = 60.0
    concurrency: int = 16
    ca_file: Path | None = None
    plain_http: bool = False


class Channel:
    """Calls to one server, from one event loop; it connects when it is first used."""

    def __init__(self, connection: Connection, environ: Mapping[str, str] = os.environ) -> None:
        """See that the credentials may go there.

        Args:
            connection: How the server is reached.
            environ: Where OpenAI's further headers and the trusted certificates are looked up.

        Raises:
            ConfigError: a key that everybody on the way could read, or a header that can't be sent.
        """
        self.address, self.key = connection.address, connection.key
        self._connection, self._environ = connection, environ
        further = headers_for(self.address.host, environ)
        if (self.key or further) and not connection.plain_http:
            self.address.guard("the key", "allow that with plain_http")
        bearer = {"Authorization": f"Bearer {self.key.secret}"} if self.key else {}
        self._headers = {**bearer, **further, "User-Agent": f"aoe-toolkit/{__version__}"}
        self._masking = Masking([self.key.secret if self.key else "", *further.values()])

    async def post(self, path: str, value: Mapping[str, Any], *, most_bytes: int = MOST_BYTES) -> bytes:
        """Send JSON and bring back the body.

        Raises:
            Refused: another status than 200.
            NoAnswer: no answer.
        """
        content, kind = json.dumps(value, ensure_ascii=False).encode(), {"Content-Type": "application/json"}
        return await self._exchange("POST", path, most_bytes=most_bytes, content=content, headers=kind)

    async def get(self, path: str, *, timeout_s: float | None = None, most_bytes: int = MOST_BYTES) -> bytes:
        """Bring back a body; see `post`."""
        return await self._exchange("GET", path, timeout_s=timeout_s, most_bytes=most_bytes)

    async def upload(self, path: str, name: str, content: bytes, *, purpose: str, timeout_s: float) -> bytes:
        """Hand in a file; see `post`."""
        form: dict[str, Any] = {"files": {"file": (name, content)}, "data": {"purpose": purpose}}
        return await self._exchange("POST", path, timeout_s=timeout_s, **form)

    async def close(self) -> None:
        """Close the connections, if there are any."""
        if "_client" in self.__dict__:
            await self._client.aclose()

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        most, timeout_s = self._connection.concurrency, self._connection.timeout_s
        return httpx2.AsyncClient(
            headers=self._headers,
            limits=httpx2.Limits(
                max_connections=most, max_keepalive_connections=most, keepalive_expiry=_IDLE_S
            ),
            timeout=httpx2.Timeout(None, connect=min(timeout_s, _CONNECT_S)),
            verify=trusted(self._connection.ca_file, self._environ),
            trust_env=not self.address.is_loopback,  # proxies
            follow_redirects=False,
        )

    async def _exchange(
        self,
        method: str,
        path: str,
        *,
        timeout_s: float | None = None,
        most_bytes: int = MOST_BYTES,
        **request: Any,
    ) -> bytes:
        url, client = self.address.join(path), self._client
        async with self._failures(timeout_s or self._connection.timeout_s):
            async with client.stream(method, url, **request) as response:
                body = self._masking.body(await _read(response, most_bytes))
            if response.status_code == 200:
                return body
            headers = {name.lower(): self._masking.text(text) for name, text in response.headers.items()}
        raise Refused(Refusal.of(response.status_code, body), headers)

    @asynccontextmanager
    async def _failures(self, timeout_s: float) -> AsyncIterator[None]:
        """Turn the client's errors into `NoAnswer`; all of it has `timeout_s` seconds."""
        try:
            # A limit on each read would never be met by a server that trickles.
            async with asyncio.timeout(timeout_s):
                yield
        except (TimeoutError, httpx2.TimeoutException) as error:
            was_sent = not isinstance(error, _NOT_SENT)
            raise NoAnswer("timeout", f"no answer in {timeout_s:g} s", was_sent=was_sent) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            detail = one_line(self._masking.text(f"{type(error).__name__}: {error}".rstrip(": ")))
            if isinstance(error.__cause__, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY" in detail:
                detail += "; name the file with its authority's certificate as ca_file or in SSL_CERT_FILE"
            raise NoAnswer("connection", detail, was_sent=not isinstance(error, _NOT_SENT)) from error


def trusted(ca_file: Path | None, environ: Mapping[str, str] = os.environ) -> ssl.SSLContext | bool:
    """The certificates that are trusted; True: the system's.

    Args:
        ca_file: A file that is named for this server.
        environ: Where SSL_CERT_FILE and SSL_CERT_DIR are looked up.

    Raises:
        ConfigError: a file without certificates.
    """
    named = {
        "ca_file": ca_file,
        "SSL_CERT_FILE": environ.get("SSL_CERT_FILE"),
        "SSL_CERT_DIR": environ.get("SSL_CERT_DIR"),
    }
    source, path = next(((source, path) for source, path in named.items() if path), ("", None))
    if not path:
        return True
    try:
        if source == "SSL_CERT_DIR":
            return ssl.create_default_context(capath=path)
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"{source} names {path}, which holds no certificates that can be read ({error}); mend or unset it"
        ) from error


async def _read(response: httpx2.Response, most_bytes: int) -> bytes:
    """The body, unpacked piece by piece.

    Raises:
        NoAnswer: it has more bytes than anyone asked for.
    """
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > most_bytes:
            raise NoAnswer(
                "broken_reply", f"the answer has more than {most_bytes >> 20:,} MiB", was_sent=True
            )
    return bytes(body)
