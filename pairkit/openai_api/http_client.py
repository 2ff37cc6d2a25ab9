"""An HTTP client for one server: limited response size, masked responses, no redirects."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import httpx2

from pairkit.app.printable import one_line
from pairkit.openai_api.credentials import Masking
from pairkit.openai_api.refusals import NoAnswer, Refusal, RefusedCall
from pairkit.system.address import Address

# Many servers drop connections that are idle for 5 s. Closing earlier avoids sending on a closing one.
_IDLE_S = 4.0
# After these errors, the request was certainly not sent.
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


class HttpClient:
    """Sends requests with fixed headers and returns bodies of responses with status 200."""

    def __init__(
        self,
        address: Address,
        headers: Mapping[str, str],
        masking: Masking,
        *,
        concurrency: int,
        connect_s: float,
        verify: ssl.SSLContext | bool,
    ) -> None:
        """Configure the client; it connects on the first request."""
        self._client = httpx2.AsyncClient(
            limits=httpx2.Limits(
                max_connections=concurrency, max_keepalive_connections=concurrency, keepalive_expiry=_IDLE_S
            ),
            timeout=httpx2.Timeout(None, connect=connect_s),
            verify=verify,
            trust_env=not address.is_loopback,  # proxies
        )
        self._headers = {"Accept": "*/*", "Accept-Encoding": "identity", **headers}
        self._masking = masking

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def exchange(self, method: str, url: str, most_bytes: int, **body: Any) -> bytes:
        """Send a request and return the masked body; error messages are masked, too."""
        # Built without the client, which would add headers of its own.
        request = httpx2.Request(method, url, headers=self._headers, **body)
        try:
            response = await self._client.send(request, stream=True, auth=None, follow_redirects=False)
            try:
                content = self._masking.body(await _read(response, most_bytes))
            finally:
                await response.aclose()
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            failure = self._no_answer(error)
        else:
            if response.status_code == 200:
                return content
            headers = {name.lower(): self._masking.text(text) for name, text in response.headers.items()}
            raise RefusedCall(Refusal.of(response.status_code, content), headers)
        raise failure  # outside of `except`, as a traceback would show the unmasked error

    def _no_answer(self, error: Exception) -> NoAnswer:
        was_sent = not isinstance(error, _NOT_SENT)
        if isinstance(error, httpx2.TimeoutException):
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
