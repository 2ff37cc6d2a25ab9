"""The connection to one server, through the openai client: bodies in, bodies out, failures by name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any

import httpx2
import openai

from llm_labeler.provider import CallFailed
from llm_labeler.providers.address import Address
from llm_labeler.providers.keys import Key, find_key
from llm_labeler.providers.refusals import Refusal, Refused
from llm_labeler.settings import LlmSettings

_CONNECT_S = 10.0
# Many servers drop a connection idle for 5 s: ours goes before, or a call might meet it closing.
_IDLE_S = 4.0
# With these the request never left.
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


class Channel:
    """Calls to one server. It reads its key when it is first used."""

    def __init__(
        self, name: str, settings: LlmSettings, address: Address, environ: Mapping[str, str]
    ) -> None:
        self._name, self._settings, self._address, self._environ = name, settings, address, environ

    @cached_property
    def key(self) -> Key | None:
        """The credential.

        Raises:
            ConfigError: it is needed and not there.
        """
        return find_key(self._name, self._settings, self._environ)

    @cached_property
    def client(self) -> openai.AsyncOpenAI:
        """The client itself; it retries nothing."""
        most = self._settings.concurrency
        timeout_s = self._settings.timeout_s
        http = httpx2.AsyncClient(
            limits=httpx2.Limits(
                max_connections=most, max_keepalive_connections=most, keepalive_expiry=_IDLE_S
            ),
            timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_S)),
            # What is for this machine goes through no proxy and follows no redirect to elsewhere.
            trust_env=not self._address.is_loopback,
            follow_redirects=False,
        )
        client = openai.AsyncOpenAI(
            # The client insists on a key, and would take OPENAI_API_KEY to any server.
            api_key=self.key.secret if self.key else "none",
            base_url=self._address.url,
            max_retries=0,
            http_client=http,
        )
        if self._settings.kind != "openai":
            # The client takes these from the environment; they are OpenAI's business alone.
            client.organization = client.project = client.admin_api_key = None
            client._custom_headers = {}  # OPENAI_CUSTOM_HEADERS; nothing public resets it
        return client

    async def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Send JSON and bring back the body.

        Raises:
            Refused: another status than 200.
            CallFailed: no answer.
            ConfigError: no key.
        """
        async with self.failures(self._settings.timeout_s):
            response = await self.client.post(path, cast_to=httpx2.Response, body=body)
            return response.content

    async def get(self, path: str, *, timeout_s: float | None = None) -> bytes:
        """Bring back a body; see `post`."""
        async with self.failures(timeout_s or self._settings.timeout_s):
            response = await self.client.get(path, cast_to=httpx2.Response)
            return response.content

    async def upload(self, name: str, content: bytes, *, timeout_s: float) -> bytes:
        """Hand in a file for a batch; see `post`."""
        async with self.failures(timeout_s):
            response = await self.client.files.with_raw_response.create(
                file=(name, content), purpose="batch", timeout=timeout_s
            )
            return response.content

    async def close(self) -> None:
        """Close the connections, if there are any."""
        if "client" in self.__dict__:
            await self.client.close()

    @asynccontextmanager
    async def failures(self, timeout_s: float) -> AsyncIterator[None]:
        """Turn the client's errors into `Refused` and `CallFailed`; all of it has `timeout_s` seconds."""
        try:
            # The client's own limit is on each read: a server that trickles would never meet it.
            async with asyncio.timeout(timeout_s):
                yield
        except openai.APIStatusError as error:
            secret = self.key.secret if self.key else ""
            raise Refused(
                Refusal.of(error.status_code, error.response.text, secret), error.response.headers
            ) from error
        except (TimeoutError, openai.APITimeoutError) as error:
            was_sent = not isinstance(error.__cause__, _NOT_SENT)
            detail = f"no answer in {timeout_s:g} s"
            raise CallFailed("timeout", detail, maybe_billed=was_sent) from error
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            cause = error.__cause__ or error
            detail = f"{type(cause).__name__}: {cause}".rstrip(": ")
            raise CallFailed("connection", detail, maybe_billed=not isinstance(cause, _NOT_SENT)) from error
