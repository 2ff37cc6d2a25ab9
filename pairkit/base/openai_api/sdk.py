"""OpenAI's SDK over an HTTP client that sends only to one address and masks keys in responses."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
from openai import OpenAIError

from pairkit.base.errors import BadReply
from pairkit.base.openai_api.credentials import Masking
from pairkit.base.openai_api.refusals import NoAnswer, Refusal, RefusedCall
from pairkit.base.printable import one_line
from pairkit.base.system.address import Address, origin_of

_BODY_HEADERS = ("Content-Type", "Content-Length")
_ANSWERED = (200, 201)  # 201: gateways that create an answer for a POST
# Many servers drop connections after 5 s; closing earlier avoids sending on a closing one.
_IDLE_S = 4.0
_NOT_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
)


class ExchangeFailed(OpenAIError):  # noqa: N818 - as `RefusedCall` and `NoAnswer`, which it carries
    """Carries a failure through the SDK, which passes on errors of its own kind unchanged."""

    def __init__(self, failure: Exception) -> None:
        self.failure = failure
        super().__init__(str(failure))


class GuardedClient(httpx2.AsyncClient):
    """Sends requests to one address, with our headers only; returns bounded responses with status 200."""

    def __init__(
        self,
        address: Address,
        headers: Mapping[str, str],
        masking: Masking,
        *,
        max_bytes: int,
        concurrency: int,
        connect_s: float,
        verify: ssl.SSLContext | bool,
    ) -> None:
        super().__init__(
            limits=httpx2.Limits(
                max_connections=concurrency,
                max_keepalive_connections=concurrency,
                keepalive_expiry=_IDLE_S,
            ),
            timeout=httpx2.Timeout(None, connect=connect_s),
            verify=verify,
            trust_env=not address.is_loopback,  # proxies
            follow_redirects=False,
        )
        self._address = address
        self._sent_headers = headers
        self._masking = masking
        self._max_bytes = max_bytes

    async def send(self, request: httpx2.Request, **_: object) -> httpx2.Response:
        """Send the SDK's request and read the whole response."""
        outgoing = self._rebuilt(request)
        with self._failures():
            response = await super().send(
                outgoing, stream=True, auth=None, follow_redirects=False
            )
            try:
                body = self._masking.body(await _read(response, self._max_bytes))
            finally:
                await response.aclose()
        if response.status_code not in _ANSWERED:
            headers = {
                name.lower(): self._masking.text(text)
                for name, text in response.headers.items()
            }
            refusal = Refusal.of(response.status_code, body)
            raise ExchangeFailed(RefusedCall(refusal, headers))
        return httpx2.Response(200, content=body, request=request)

    def _rebuilt(self, request: httpx2.Request) -> httpx2.Request:
        """The request without headers that the SDK takes from the environment."""
        if origin_of(str(request.url)) != self._address.origin:
            message = f"{self._address.url}: a request to another server was not sent"
            raise ExchangeFailed(BadReply(message))
        headers = httpx2.Headers({"Host": request.url.netloc.decode("ascii")})
        for name in _BODY_HEADERS:
            if name in request.headers:
                headers[name] = request.headers[name]
        headers.update(self._sent_headers)
        return httpx2.Request(
            request.method, request.url, headers=headers, stream=request.stream
        )

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn errors into `NoAnswer` without their unmasked texts."""
        try:
            yield
        except httpx2.TimeoutException as error:
            was_sent = not isinstance(error, _NOT_SENT)
            failure = NoAnswer("timeout", "no connection in time", was_sent=was_sent)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            text = f"{type(error).__name__}: {error}".rstrip(": ")
            detail = one_line(self._masking.text(text))
            cause = error.__cause__
            is_unverified = isinstance(cause, ssl.SSLCertVerificationError)
            if is_unverified or "CERTIFICATE_VERIFY" in detail:
                detail += (
                    "; set ca_file or SSL_CERT_FILE to the certificate of its authority"
                )
            was_sent = not isinstance(error, _NOT_SENT)
            failure = NoAnswer("connection", detail, was_sent=was_sent)
        else:
            return
        # Not in the `except` block, as the traceback would then show the unmasked error.
        raise ExchangeFailed(failure)


async def _read(response: httpx2.Response, max_bytes: int) -> bytes:
    """The decompressed body, up to the limit."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > max_bytes:
            detail = f"the answer has more than {max_bytes >> 20:,} MiB"
            raise ExchangeFailed(NoAnswer("broken_reply", detail, was_sent=True))
    return bytes(body)


class Sdk(openai.AsyncOpenAI):
    """The SDK without keys and headers from the environment, and without retries of its own."""

    def __init__(self, address: Address, client: GuardedClient) -> None:
        # Without a value, the SDK reads a variable of the environment.
        unset: dict[str, Any] = dict.fromkeys(
            ("api_key", "admin_api_key", "organization", "project", "webhook_secret"),
            "",
        )
        super().__init__(
            base_url=address.url, max_retries=0, http_client=client, **unset
        )

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        """Without those of OPENAI_CUSTOM_HEADERS, which no argument of the SDK turns off."""
        return {"Content-Type": "application/json"}

    async def exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        **request: object,
    ) -> bytes:
        """The body of a response with status 200."""
        # The credentials are in the headers of `GuardedClient`.
        options = {"headers": {"Authorization": openai.Omit(), **(headers or {})}}
        call: Callable[..., Awaitable[httpx2.Response]] = getattr(self, method)
        try:
            response = await call(
                url, cast_to=httpx2.Response, options=options, **request
            )
        except ExchangeFailed as error:
            failure = error.failure
        except openai.APIConnectionError as error:  # raised by the SDK itself
            reason = type(error.__cause__ or error).__name__
            failure = NoAnswer("connection", reason, was_sent=True)
        else:
            return response.content
        raise failure
