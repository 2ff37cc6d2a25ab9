"""One REST request and its answer; see `transport`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from gis_builder._decoding import Malformed, decode
from gis_builder._github.answers import Answer, AnswerKind, bad_reply, classify
from gis_builder._github.exchange import Exchange, Raw
from gis_builder._github.tokens import Token
from gis_builder._github.transport import Query
from pairkit.address import Address

T = TypeVar("T")

REDIRECTS = frozenset({301, 302, 307, 308})
_ACCEPT = "application/vnd.github+json"
_NEXT = re.compile(r'<([^<>]*)>[^<>]*\brel="?next\b')
# These say something about what was asked for; to ask again would bring the same.
_TELLING = REDIRECTS | {404, 410, 422, 451}


@dataclass(frozen=True, slots=True)
class RestReply(Generic[T]):
    """A reply that says something about what was asked for.

    Addresses are paths below the server's root. A link's host is left out on purpose: nothing is ever asked
    of another one, and a stored cursor stays good when the server moves.
    """

    status: int
    value: T | None = None  # of a 200 or 201
    next: str | None = None  # the next page of a list
    location: str | None = None  # of a redirect; None where it leads elsewhere
    message: str = ""  # of a refusal; of a redirect, where else it leads


class RestTransport:
    """Asks one server's REST API with one token."""

    def __init__(self, address: Address, token: Token, timeout_s: float) -> None:
        self._address = address
        self._exchange = Exchange(address, token, timeout_s)

    def ask(self, query: Query[Any]) -> Answer:
        """See `Transport`; the query is a path below the root, the data of an answer a `RestReply`."""
        raw = (
            self._exchange.get(query.text, _ACCEPT)
            if query.method == "GET"
            else self._exchange.write(query.method, query.text, query.body, _ACCEPT)
        )
        answer = raw if isinstance(raw, Answer) else self._judge(raw, query)
        # A page of a list can't be asked for in halves without losing its place.
        return replace(answer, kind=AnswerKind.TRANSIENT) if answer.kind is AnswerKind.TOO_HEAVY else answer

    def close(self) -> None:
        """Close the connection."""
        self._exchange.close()

    def _judge(self, raw: Raw, query: Query[Any]) -> Answer:
        answer = classify(raw.status, raw.headers, raw.body, graphql=False)
        if answer.kind is not AnswerKind.OK and raw.status not in _TELLING:
            return answer
        reply: RestReply[Any] = RestReply(raw.status, message=answer.message)
        if raw.status in (200, 201):
            try:
                reply = replace(reply, value=decode(raw.body, query.answer))
            except Malformed as error:
                return bad_reply(f"the reply does not have what was asked for ({error})")
        if raw.status in REDIRECTS:
            location = raw.headers.get("location", "")
            path = self._address.path_of(location)
            reply = replace(reply, location=path, message="" if path else _elsewhere(location))
        elif found := _NEXT.search(raw.headers.get("link", "")):
            following = self._address.path_of(found[1], any_host=True)
            if following is None:
                return bad_reply("a next page that is nowhere on it")
            reply = replace(reply, next=following)
        return Answer(AnswerKind.OK, data=reply, rate_limit=answer.rate_limit, status=raw.status)


def _elsewhere(location: str) -> str:
    """Where a redirect leads that is not followed."""
    if "//" in location:
        return "to another host; give that one as api_url"
    return f"to {location[:60]!r}, which is no URL and no path from the root; run the same command again"
