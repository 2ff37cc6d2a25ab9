"""OpenAI's SDK as the channel uses it: it shapes the requests, and the door beneath it sends them.

The SDK holds no credential, not even ours: the door adds them. Answers come back as bytes, since servers that
are only similar to OpenAI's send much that the SDK's own types would take on trust.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx2
import openai

from pairkit.address import Address
from pairkit.openai_api.door import MOST_BYTES_HEADER, Door, Stopped
from pairkit.openai_api.refusals import NoAnswer

_NO_KEY = "the-door-has-the-key"  # the SDK wants one, and would look for it in the environment


class Sdk(openai.AsyncOpenAI):
    """The SDK without what it would take from the environment."""

    def __init__(self, address: Address, door: Door) -> None:
        """Nothing is connected to yet."""
        # An empty text keeps it from looking for a variable.
        unset: dict[str, Any] = dict.fromkeys(
            ("admin_api_key", "organization", "project", "webhook_secret"), ""
        )
        super().__init__(api_key=_NO_KEY, base_url=address.url, max_retries=0, http_client=door, **unset)

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        """None of those that OPENAI_CUSTOM_HEADERS names, which no argument of the SDK turns off."""
        return {"Content-Type": "application/json"}

    async def exchange(
        self, method: str, url: str, most_bytes: int, headers: Mapping[str, str] | None = None, **request: Any
    ) -> bytes:
        """The body of an answer with status 200.

        Args:
            method: `get` or `post`.
            url: Below the address.
            most_bytes: Of the body.
            headers: That describe the request's body.
            request: The body: `body`, `content` or `files`, as the SDK takes them.

        Raises:
            Refused: another status.
            NoAnswer: no answer.
            BadReply: the URL leads elsewhere.
        """
        options: Any = {"headers": {**(headers or {}), MOST_BYTES_HEADER: str(most_bytes)}}
        ask: Callable[..., Awaitable[httpx2.Response]] = self.get if method == "get" else self.post
        try:
            response = await ask(url, cast_to=httpx2.Response, options=options, **request)
        except Stopped as stopped:
            failure = stopped.failure
        except openai.APIConnectionError as error:  # what the door does not know
            failure = NoAnswer("connection", type(error.__cause__ or error).__name__, was_sent=True)
        else:
            return response.content
        raise failure
