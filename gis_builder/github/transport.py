"""One request and its answer. Whatever goes wrong on the wire becomes an `Answer`, never an exception."""

from __future__ import annotations

import json
from typing import Protocol

from gis_builder.github.answers import Answer, classify
from gis_builder.github.exchange import Exchange
from gis_builder.github.tokens import Token
from pairkit.address import Address


class Transport(Protocol):
    """Asks a server once, in the language of its API."""

    def ask(self, query: str) -> Answer:
        """Ask once.

        Raises:
            AuthError: a GitHub App's installation gives no token to sign with.
        """

    def close(self) -> None:
        """Close the connection."""


class GraphQLTransport:
    """Posts GraphQL queries to one server with one token."""

    def __init__(self, address: Address, token: Token, timeout_s: float) -> None:
        self._exchange = Exchange(address, token, timeout_s)

    def ask(self, query: str) -> Answer:
        """See `Transport`."""
        raw = self._exchange.post("/graphql", json.dumps({"query": query}).encode())
        return raw if isinstance(raw, Answer) else classify(raw.status, raw.headers, raw.body)

    def close(self) -> None:
        """See `Transport`."""
        self._exchange.close()
