"""Calls to a server of OpenAI's protocol: bytes in, bytes out, with one deadline for the whole exchange."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line
from pairkit.app.version import __version__
from pairkit.openai_api.credentials import Key, Masking, headers_for
from pairkit.openai_api.refusals import NoAnswer, Refusal, RefusedCall
from pairkit.system.address import Address

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 64 << 20  # of a response body
_CONNECT_S = 10.0
_IDLE_S = 4.0  # many servers drop connections after 5 s; closing earlier avoids sending on a closing one
_NOT_SENT = ("ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol")  # errors of httpx2


@dataclass(frozen=True, slots=True)
class ServerConnection:
    """The address of a server and how to connect to it."""

    address: Address
    key: Key | None = None
    timeout_s: float = 60.0
    concurrency: int = 16
    ca_file: Path | None = None
    plain_http: bool = False


class Channel:
    """Calls to one server from one event loop; the first call connects."""

    def __init__(self, connection: ServerConnection, environ: Mapping[str, str] = os.environ) -> None:
        """Check that the credentials may be sent to this address."""
        self.address, self.key = connection.address, connection.key
        self._connection, self._environ = connection, environ
        further = headers_for(self.address.host, environ)
        if (self.key or further) and not connection.plain_http:
            self.address.guard("the key", "allow that with plain_http")
        credential = {"Authorization": f"Bearer {self.key.secret}"} if self.key else {}
        self._headers = {"Accept": "*/*", "Accept-Encoding": "identity", **credential, **further}
        self._headers["User-Agent"] = f"aoe-toolkit/{__version__}"
        self._masking = Masking([self.key.secret if self.key else "", *further.values()])

    async def post(self, path: str, value: Mapping[str, Any], *, most_bytes: int = MOST_BYTES) -> bytes:
        """Post JSON and return the response body."""
        return await self._exchange("POST", path, most_bytes=most_bytes, json=value)

    async def get(self, path: str, *, timeout_s: float | None = None, most_bytes: int = MOST_BYTES) -> bytes:
        """Return the response body of a GET request."""
        return await self._exchange("GET", path, timeout_s=timeout_s, most_bytes=most_bytes)

    async def upload(self, path: str, name: str, content: bytes, *, purpose: str, timeout_s: float) -> bytes:
        """Upload a file and return the response body."""
        form: dict[str, Any] = {"data": {"purpose": purpose}, "files": {"file": (name, content)}}
        return await self._exchange("POST", path, timeout_s=timeout_s, **form)

    async def close(self) -> None:
        """Close the connections, if there are any."""
        if "_client" in self.__dict__:
            await self._client.aclose()

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        import httpx2  # slow to import

        count = self._connection.concurrency
        return httpx2.AsyncClient(
            limits=httpx2.Limits(
                max_connections=count, max_keepalive_connections=count, keepalive_expiry=_IDLE_S
            ),
            timeout=httpx2.Timeout(None, connect=min(self._connection.timeout_s, _CONNECT_S)),
            verify=trusted(self._connection.ca_file, self._environ),
            trust_env=not self.address.is_loopback,  # proxies
        )

    async def _exchange(
        self,
        method: str,
        path: str,
        *,
        timeout_s: float | None = None,
        most_bytes: int = MOST_BYTES,
        **body: Any,
    ) -> bytes:
        """Send a request and return the body of a response with status 200; keys are masked everywhere."""
        url, client = self.address.join(path), self._client
        timeout_s = timeout_s or self._connection.timeout_s
        import httpx2

        # Built without the client, which would add headers of its own.
        request = httpx2.Request(method, url, headers=self._headers, **body)
        try:
            # A timeout for each read would not stop a server that sends a few bytes at a time.
            async with asyncio.timeout(timeout_s):
                response = await client.send(request, stream=True, auth=None, follow_redirects=False)
                try:
                    content = self._masking.body(await _read(response, most_bytes))
                finally:
                    await response.aclose()
        except TimeoutError:
            failure = NoAnswer("timeout", f"no answer in {timeout_s:g} s", was_sent=True)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            failure = self._no_answer(error, was_timeout=isinstance(error, httpx2.TimeoutException))
        else:
            if response.status_code == 200:
                return content
            headers = {name.lower(): self._masking.text(text) for name, text in response.headers.items()}
            raise RefusedCall(Refusal.of(response.status_code, content), headers)
        raise failure  # outside of `except`, as a traceback would show the unmasked error

    def _no_answer(self, error: Exception, *, was_timeout: bool) -> NoAnswer:
        was_sent = type(error).__name__ not in _NOT_SENT
        if was_timeout:
            return NoAnswer("timeout", "no connection in time", was_sent=was_sent)
        detail = one_line(self._masking.text(f"{type(error).__name__}: {error}".rstrip(": ")))
        if isinstance(error.__cause__, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY" in detail:
            detail += "; set ca_file or SSL_CERT_FILE to the certificate of its authority"
        return NoAnswer("connection", detail, was_sent=was_sent)


async def _read(response: httpx2.Response, most_bytes: int) -> bytes:
    """The decompressed body, up to the limit."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > most_bytes:
            raise NoAnswer(
                "broken_reply", f"the answer has more than {most_bytes >> 20:,} MiB", was_sent=True
            )
    return bytes(body)


def trusted(ca_file: Path | None, environ: Mapping[str, str] = os.environ) -> ssl.SSLContext | bool:
    """The trusted certificates; True for those of the system."""
    named = {"ca_file": ca_file} | {name: environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")}
    for source, path in named.items():
        if path:
            where: dict[str, Any] = {"capath" if source == "SSL_CERT_DIR" else "cafile": path}
            try:
                return ssl.create_default_context(**where)
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(
                    f"{source} names {path}, which has no readable certificates ({error}); fix or unset it"
                ) from error
    return True


T = TypeVar("T")


def run_anywhere(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, in a new thread if this one has a running loop; Ctrl-C cancels it in both."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main)
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        return asyncio.run_coroutine_threadsafe(main, loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(_cancel_tasks(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _cancel_tasks() -> None:
    """Cancel the other tasks of the loop, as `asyncio.run` does, and wait for their ends."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
