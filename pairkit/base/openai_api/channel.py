"""Calls to a server of OpenAI's protocol: bytes in, bytes out, with one deadline for the whole exchange."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pairkit.base.errors import ConfigError
from pairkit.base.extras import __version__
from pairkit.base.openai_api.credentials import Key, Masking, headers_for
from pairkit.base.openai_api.refusals import NoAnswer
from pairkit.base.system.address import Address

if TYPE_CHECKING:
    from pairkit.base.openai_api.sdk import Sdk

MOST_BYTES = 64 << 20  # of a response body
_CONNECT_S = 10.0

T = TypeVar("T")


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

    def __init__(
        self, connection: ServerConnection, environ: Mapping[str, str] = os.environ
    ) -> None:
        """Check that the credentials may be sent to this address."""
        self.address = connection.address
        self.key = connection.key
        self._connection = connection
        self._environ = environ
        self._sdks: dict[int, Sdk] = {}  # by the limit of their responses
        further = headers_for(self.address.host, environ)
        if (self.key or further) and not connection.plain_http:
            self.address.guard("the key", "allow that with plain_http")
        secrets = [*further.values()]
        self._headers = {
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "User-Agent": f"aoe-toolkit/{__version__}",
            **further,
        }
        if self.key:
            secrets.append(self.key.secret)
            self._headers["Authorization"] = f"Bearer {self.key.secret}"
        self._masking = Masking(secrets)

    async def post(
        self, path: str, value: Mapping[str, object], *, most_bytes: int = MOST_BYTES
    ) -> bytes:
        """Post JSON and return the response body."""
        return await self._exchange("post", path, most_bytes=most_bytes, body=value)

    async def get(
        self, path: str, *, timeout_s: float | None = None, most_bytes: int = MOST_BYTES
    ) -> bytes:
        """Return the response body of a GET request."""
        return await self._exchange(
            "get", path, timeout_s=timeout_s, most_bytes=most_bytes
        )

    async def upload(
        self,
        path: str,
        name: str,
        content: bytes,
        *,
        purpose: str,
        timeout_s: float,
    ) -> bytes:
        """Upload a file and return the response body."""
        return await self._exchange(
            "post",
            path,
            timeout_s=timeout_s,
            headers={"Content-Type": "multipart/form-data"},
            body={"purpose": purpose},
            files=[("file", (name, content))],
        )

    async def close(self) -> None:
        """Close the connections, if there are any."""
        for sdk in self._sdks.values():
            await sdk.close()

    def _sdk(self, max_bytes: int) -> Sdk:
        if max_bytes in self._sdks:
            return self._sdks[max_bytes]
        # The SDK takes half a second to import.
        from pairkit.base.openai_api.sdk import GuardedClient, Sdk

        try:
            client = GuardedClient(
                self.address,
                self._headers,
                self._masking,
                max_bytes=max_bytes,
                concurrency=self._connection.concurrency,
                connect_s=min(self._connection.timeout_s, _CONNECT_S),
                verify=trusted(self._connection.ca_file, self._environ),
            )
        except ImportError as error:  # of socksio, which is not a dependency
            raise ConfigError(
                f"{self.address.url}: a SOCKS proxy such as ALL_PROXY needs socksio: pip install"
                " 'httpx2[socks]', give an http:// proxy, or name the host in NO_PROXY"
            ) from error
        return self._sdks.setdefault(max_bytes, Sdk(self.address, client))

    async def _exchange(
        self,
        method: str,
        path: str,
        *,
        timeout_s: float | None = None,
        most_bytes: int = MOST_BYTES,
        **request: Any,
    ) -> bytes:
        """Send a request and return the body of a response with status 200; keys are masked everywhere."""
        url = self.address.join(path)
        sdk = self._sdk(most_bytes)
        timeout_s = timeout_s or self._connection.timeout_s
        try:
            # A timeout for each read would not stop a server that sends a few bytes at a time.
            async with asyncio.timeout(timeout_s):
                return await sdk.exchange(method, url, **request)
        except TimeoutError as error:
            raise NoAnswer(
                "timeout", f"no answer in {timeout_s:g} s", was_sent=True
            ) from error


def trusted(ca_file: Path | None, environ: Mapping[str, str]) -> ssl.SSLContext | bool:
    """The trusted certificates; True for those of the system."""
    named = {
        "ca_file": ca_file,
        "SSL_CERT_FILE": environ.get("SSL_CERT_FILE"),
        "SSL_CERT_DIR": environ.get("SSL_CERT_DIR"),
    }
    for source, path in named.items():
        if path:
            try:
                return _context(path, is_folder=source == "SSL_CERT_DIR")
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(
                    f"{source} names {path}, which has no readable certificates ({error}); fix or unset it"
                ) from error
    return True


@cache
def _context(path: str | Path, *, is_folder: bool) -> ssl.SSLContext:
    """A context that all channels share, because reading a system's certificates takes 20 ms."""
    if is_folder:
        return ssl.create_default_context(capath=path)
    return ssl.create_default_context(cafile=path)


def run_anywhere(main: Coroutine[object, object, T]) -> T:
    """`asyncio.run`, in a new thread if this one has a running loop; Ctrl-C cancels it in both."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main)
    # Needed by the SDK, so that it is installed.
    from anyio.from_thread import start_blocking_portal

    async def wait() -> T:
        return await main

    with start_blocking_portal() as portal:
        return portal.call(wait)
