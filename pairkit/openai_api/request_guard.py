"""The HTTP client beneath a channel: bodies are bounded and masked, failures have names."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import httpx2

from pairkit.app.printable import one_line
from pairkit.openai_api.credentials import Masking
from pairkit.openai_api.refusals import NoAnswer, Refusal, RefusedCall
from pairkit.system.address import Address

# Many servers drop a connection idle for 5 s: ours goes before, or a call might meet it closing.
_IDLE_S = 4.0
# With these the request never left.
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


class RequestGuard:
    """Sends each request once, without cookies or redirects, and returns the body of a 200."""

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
        self._client = httpx2.AsyncClient(
            limits=httpx2.Limits(
                max_connections=concurrency, max_keepalive_connections=concurrency, keepalive_expiry=_IDLE_S
            ),
            timeout=httpx2.Timeout(None, connect=connect_s),
            verify=verify,
            trust_env=not address.is_loopback,  # proxies
            follow_redirects=False,
        )
        self._headers = {"Accept": "*/*", "Accept-Encoding": "identity", **headers}
        self._masking = masking

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def exchange(self, method: str, url: str, most_bytes: int, **content: Any) -> bytes:
        """Send a request; `content` is what `httpx2.Request` takes, such as `json`."""
        failure = None
        try:
            request = httpx2.Request(method, url, headers=self._headers, **content)
            response = await self._client.send(request, stream=True, auth=None)
            try:
                body = self._masking.body(await _read(response, most_bytes))
            finally:
                await response.aclose()
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            failure = self._failure(error)
        if failure:  # raised here, as the error's own text is not masked
            raise failure
        if response.status_code != 200:
            headers = {name.lower(): self._masking.text(text) for name, text in response.headers.items()}
            raise RefusedCall(Refusal.of(response.status_code, body), headers)
        return body

    def _failure(self, error: Exception) -> NoAnswer:
        was_sent = not isinstance(error, _NOT_SENT)
        if isinstance(error, httpx2.TimeoutException):
            return NoAnswer("timeout", "no connection in time", was_sent=was_sent)
        detail = one_line(self._masking.text(f"{type(error).__name__}: {error}".rstrip(": ")))
        if isinstance(error.__cause__, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY" in detail:
            detail += "; name the file with its authority's certificate as ca_file or in SSL_CERT_FILE"
        return NoAnswer("connection", detail, was_sent=was_sent)


async def _read(response: httpx2.Response, most_bytes: int) -> bytes:
    """The body, unpacked piece by piece."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > most_bytes:
            much = f"the answer has more than {most_bytes >> 20:,} MiB"
            raise NoAnswer("broken_reply", much, was_sent=True)
    return bytes(body)
