"""One exchange with a server of OpenAI's protocol: bytes in, bytes out, failures by name.

What holds for every call: it goes to the address and nowhere else, redirects are not followed; what is for
this machine goes through no proxy; one deadline covers all of it, however the server dawdles; a body has a
limit, also once it is unpacked; what the server repeats of the credentials is masked before anybody sees it.
OpenAI's SDK makes the calls, once each, and `door` sees to these promises beneath it.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.address import Address
from pairkit.errors import ConfigError
from pairkit.openai_api.credentials import Key, headers_for
from pairkit.openai_api.masking import Masking
from pairkit.openai_api.refusals import NoAnswer
from pairkit.version import __version__

if TYPE_CHECKING:
    from pairkit.openai_api.sdk import Sdk

MOST_BYTES = 64 << 20  # of a body
_CONNECT_S = 10.0


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
        key_header: The header that the key goes in; `Authorization` as a bearer's.
        headers: What every request takes along, such as the version of the protocol.
    """

    address: Address
    key: Key | None = None
    timeout_s: float = 60.0
    concurrency: int = 16
    ca_file: Path | None = None
    plain_http: bool = False
    key_header: str = "Authorization"
    headers: Mapping[str, str] = field(default_factory=dict)


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
        own = {**connection.headers, "User-Agent": f"aoe-toolkit/{__version__}"}
        self._headers = {**_credential(self.key, connection.key_header), **further, **own}
        self._masking = Masking([self.key.secret if self.key else "", *further.values()])

    async def post(self, path: str, value: Mapping[str, Any], *, most_bytes: int = MOST_BYTES) -> bytes:
        """Send JSON and bring back the body.

        Raises:
            Refused: another status than 200.
            NoAnswer: no answer.
        """
        return await self._exchange("post", path, most_bytes=most_bytes, body=value)

    async def post_json(self, path: str, content: bytes, *, timeout_s: float) -> bytes:
        """Send JSON that is written already, as one too large to be written twice; see `post`."""
        kind = {"Content-Type": "application/json"}
        return await self._exchange("post", path, timeout_s=timeout_s, headers=kind, content=content)

    async def get(self, path: str, *, timeout_s: float | None = None, most_bytes: int = MOST_BYTES) -> bytes:
        """Bring back a body; see `post`."""
        return await self._exchange("get", path, timeout_s=timeout_s, most_bytes=most_bytes)

    async def upload(self, path: str, name: str, content: bytes, *, purpose: str, timeout_s: float) -> bytes:
        """Hand in a file; see `post`."""
        form: dict[str, Any] = {"body": {"purpose": purpose}, "files": [("file", (name, content))]}
        kind = {"Content-Type": "multipart/form-data"}
        return await self._exchange("post", path, timeout_s=timeout_s, headers=kind, **form)

    async def close(self) -> None:
        """Close the connections, if there are any."""
        if "_sdk" in self.__dict__:
            await self._sdk.close()

    @cached_property
    def _sdk(self) -> Sdk:
        # Whoever asks pays for importing the SDK, half a second, and nobody else.
        from pairkit.openai_api.door import Door
        from pairkit.openai_api.sdk import Sdk

        door = Door(
            self.address,
            self._headers,
            self._masking,
            concurrency=self._connection.concurrency,
            connect_s=min(self._connection.timeout_s, _CONNECT_S),
            verify=trusted(self._connection.ca_file, self._environ),
        )
        return Sdk(self.address, door)

    async def _exchange(
        self,
        method: str,
        path: str,
        *,
        timeout_s: float | None = None,
        most_bytes: int = MOST_BYTES,
        **request: Any,
    ) -> bytes:
        url, sdk = self.address.join(path), self._sdk
        timeout_s = timeout_s or self._connection.timeout_s
        try:
            # A limit on each read would never be met by a server that trickles.
            async with asyncio.timeout(timeout_s):
                return await sdk.exchange(method, url, most_bytes, **request)
        except TimeoutError as error:
            raise NoAnswer("timeout", f"no answer in {timeout_s:g} s", was_sent=True) from error


def _credential(key: Key | None, header: str) -> dict[str, str]:
    if key is None:
        return {}
    return {header: f"Bearer {key.secret}" if header == "Authorization" else key.secret}


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
            f"{source} names {path}, which holds no certificates that can be read ({error}); fix or unset it"
        ) from error
