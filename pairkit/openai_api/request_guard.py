"""The HTTP client beneath OpenAI's SDK: requests go to the address only, answers are masked."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
from openai import OpenAIError

from pairkit.app.errors import BadReply
from pairkit.app.printable import one_line
from pairkit.openai_api.credentials import Masking
from pairkit.openai_api.refusals import NoAnswer, Refusal, RefusedCall
from pairkit.system.address import Address, origin_of

# A request says in this header how many bytes its answer may have; it is for the guard alone.
MOST_BYTES_HEADER = "X-Most-Bytes"
# What describes the body is taken over from the SDK's request.
_OF_BODY = ("Content-Type", "Content-Length")
# Many servers drop a connection idle for 5 s: ours goes before, or a call might meet it closing.
_IDLE_S = 4.0
# With these the request never left.
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


class ExchangeFailed(OpenAIError):  # noqa: N818 - as `RefusedCall` and `NoAnswer`, which it carries
    """What the guard raises: the SDK lets its own kind of error through as it is."""

    def __init__(self, failure: Exception) -> None:
        self.failure = failure
        super().__init__(str(failure))


class RequestGuard(httpx2.AsyncClient):
    """Sends to one address, and brings back answers with status 200."""

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
        """Nothing is connected to yet."""
        super().__init__(
            limits=httpx2.Limits(
                max_connections=concurrency, max_keepalive_connections=concurrency, keepalive_expiry=_IDLE_S
            ),
            timeout=httpx2.Timeout(None, connect=connect_s),
            verify=verify,
            trust_env=not address.is_loopback,  # proxies
            follow_redirects=False,
        )
        self._address, self._own, self._masking = address, headers, masking

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Exchange a request of the SDK's for an answer that is read wholly."""
        most_bytes = int(request.headers[MOST_BYTES_HEADER])
        outgoing = self._rebuilt(request)
        with self._failures():
            response = await super().send(outgoing, stream=True, auth=None, follow_redirects=False)
            try:
                body = self._masking.body(await _read(response, most_bytes))
            finally:
                await response.aclose()
        if response.status_code != 200:
            headers = {name.lower(): self._masking.text(text) for name, text in response.headers.items()}
            raise ExchangeFailed(RefusedCall(Refusal.of(response.status_code, body), headers))
        return httpx2.Response(200, content=body, request=request)

    def _rebuilt(self, request: httpx2.Request) -> httpx2.Request:
        if origin_of(str(request.url)) != self._address.origin:
            raise ExchangeFailed(
                BadReply(f"{self._address.url}: a request would have gone elsewhere; it was not sent")
            )
        headers = httpx2.Headers({"Host": request.url.netloc.decode("ascii"), "Accept": "*/*"})
        headers["Accept-Encoding"] = "identity"
        headers.update({name: request.headers[name] for name in _OF_BODY if name in request.headers})
        headers.update(self._own)
        return httpx2.Request(request.method, request.url, headers=headers, stream=request.stream)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn errors into `NoAnswer`, without their texts, which are not masked."""
        try:
            yield
        except httpx2.TimeoutException as error:
            missed = NoAnswer("timeout", "no connection in time", was_sent=not isinstance(error, _NOT_SENT))
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            detail = one_line(self._masking.text(f"{type(error).__name__}: {error}".rstrip(": ")))
            if isinstance(error.__cause__, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY" in detail:
                detail += "; name the file with its authority's certificate as ca_file or in SSL_CERT_FILE"
            missed = NoAnswer("connection", detail, was_sent=not isinstance(error, _NOT_SENT))
        else:
            return
        raise ExchangeFailed(missed)


async def _read(response: httpx2.Response, most_bytes: int) -> bytes:
    """The body, unpacked piece by piece."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > most_bytes:
            much = f"the answer has more than {most_bytes >> 20:,} MiB"
            raise ExchangeFailed(NoAnswer("broken_reply", much, was_sent=True))
    return bytes(body)


_NO_KEY = "the-guard-has-the-key"  # the SDK wants one, and would look for it in the environment


class Sdk(openai.AsyncOpenAI):
    """The SDK without what it would take from the environment."""

    def __init__(self, address: Address, guard: RequestGuard) -> None:
        """Nothing is connected to yet."""
        # An empty text keeps it from looking for a variable.
        unset: dict[str, Any] = dict.fromkeys(
            ("admin_api_key", "organization", "project", "webhook_secret"), ""
        )
        super().__init__(api_key=_NO_KEY, base_url=address.url, max_retries=0, http_client=guard, **unset)

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        """None of those that OPENAI_CUSTOM_HEADERS names, which no argument of the SDK turns off."""
        return {"Content-Type": "application/json"}

    async def exchange(
        self, method: str, url: str, most_bytes: int, headers: Mapping[str, str] | None = None, **request: Any
    ) -> bytes:
        """The body of an answer with status 200."""
        options: Any = {"headers": {**(headers or {}), MOST_BYTES_HEADER: str(most_bytes)}}
        ask: Callable[..., Awaitable[httpx2.Response]] = self.get if method == "get" else self.post
        try:
            response = await ask(url, cast_to=httpx2.Response, options=options, **request)
        except ExchangeFailed as stopped:
            failure = stopped.failure
        except openai.APIConnectionError as error:  # what the guard does not know
            failure = NoAnswer("connection", type(error.__cause__ or error).__name__, was_sent=True)
        else:
            return response.content
        raise failure
