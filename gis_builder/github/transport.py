"""One request and its answer. Whatever goes wrong on the wire becomes an `Answer`, never an exception.

The exceptions of `requests` carry the request, whose headers hold the token. They end here: only their class
name goes on, and none of them becomes the cause or context of an error of ours.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass

import requests

from gis_builder.github.answers import Answer, AnswerKind, classify
from gis_builder.github.tokens import Token

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class _Raw:
    status: int
    headers: Mapping[str, str]
    body: bytes


# A server that does not come to an end with a query may do so with half of it.
_LATE = Answer(AnswerKind.TOO_HEAVY, message="no answer in time")


def no_answer(error: Exception) -> Answer:
    """What to make of a failed exchange. The exception may hold the token: only its class goes on."""
    return Answer(
        AnswerKind.TRANSIENT, message=f"the connection failed ({type(error).__name__})", was_heard=False
    )


class Transport:
    """Posts GraphQL queries to one server with one token, over a connection that is kept open."""

    def __init__(self, url: str, token: Token, timeout_s: float) -> None:
        self._url, self._token, self._timeout_s = url, token, timeout_s
        self._session = requests.Session()
        self._session.headers["User-Agent"] = "aoe-toolkit"

    def ask(self, query: str) -> Answer:
        """Ask once.

        Raises:
            AuthError: a GitHub App's installation gives no token to sign with.
        """
        body = json.dumps({"query": query}).encode()
        raw = self._exchange(body)
        if isinstance(raw, Answer):
            return raw
        return classify(raw.status, raw.headers, raw.body).rephrased(self._token.mask)

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def _exchange(self, body: bytes) -> _Raw | Answer:
        try:
            with self._session.post(
                self._url,
                data=body,
                headers={"Content-Type": "application/json", "Accept": "application/json"},
                auth=self._token,
                timeout=self._timeout_s,
                allow_redirects=False,  # a redirected POST would lose its body or tell another host
                stream=True,
            ) as response:
                return self._read(response)
        except requests.ReadTimeout:
            return _LATE
        except requests.RequestException as error:
            return no_answer(error)

    def _read(self, response: requests.Response) -> _Raw | Answer:
        """Read the body under one deadline: the library's own timeout is for the gap between two bytes."""
        deadline = time.monotonic() + self._timeout_s
        body = bytearray()
        for chunk in response.iter_content(_CHUNK):
            body += chunk
            if time.monotonic() > deadline:
                return _LATE
        return _Raw(response.status_code, response.headers, bytes(body))
