"""The server's logic without sockets: a request in, a response out."""

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from email.utils import formatdate
from urllib.parse import parse_qsl, urlsplit

from pairkit.base.settings import Settings
from tests.support.github.faults import (
    FAKES_LIMIT,
    SPOILS_ANSWER,
    Delivery,
    Injector,
    Reply,
    exhausted_reply,
    replacing_reply,
    spoil,
)
from tests.support.github.graphql_api import GraphQLApi, Refused, build_schema
from tests.support.github.limits import RateLimits
from tests.support.github.resolvers import Context
from tests.support.github.search import Search

BAD_TOKEN = "bad"  # the only token that is refused
BLIND_TOKEN = "noaccess"  # a token without access to repositories
STATS_PATH = "/stats"
_GRAPHQL_PATHS = frozenset({"/graphql", "/api/graphql"})


class Options(Settings):
    """Options of the server."""

    points: int = 5000  # per token and window, for GraphQL and for REST
    window_s: float = 3600.0
    without_duplicate_of: bool = (
        False  # hide the fields that GitHub's schema got in May 2025
    )


@dataclass(frozen=True)
class Request:
    """One HTTP request; the names of headers are in lower case."""

    method: str
    target: str  # path and query string
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass
class Stats:
    """Counts since the start."""

    requests: int = 0  # with faulty ones
    points: int = 0  # spent on GraphQL
    faults: Counter[str] = field(default_factory=Counter)  # by kind


class Service:
    """Answers requests; thread-safe."""

    rest = None  # a class that answers other requests; see benchmarks/github_rest.py

    def __init__(self, catalogue, base, *, options, faults, clock=time.time):
        self._catalogue, self._plan, self._clock = catalogue, faults, clock
        self._search = Search(catalogue)
        self._graphql = GraphQLApi(
            build_schema(without_duplicate_of=options.without_duplicate_of)
        )
        self._rest = self.rest and self.rest(catalogue, base)
        self._injector = Injector(faults)
        self._limits = RateLimits(
            options.points, options.window_s, skew_s=faults.clock_skew_s, clock=clock
        )
        self._lock = threading.Lock()
        self.stats = Stats()

    def handle(self, request):
        """Answer one request."""
        url = urlsplit(request.target)
        path = url.path.removeprefix("/api/v3")
        if path == STATS_PATH:
            return Reply(200, asdict(self.stats))
        with self._lock:
            self.stats.requests += 1
        reply = self._answer(request, path, dict(parse_qsl(url.query)))
        reply.headers = {
            "date": formatdate(self._clock() + self._plan.clock_skew_s, usegmt=True),
            "content-type": "application/json; charset=utf-8",
            **reply.headers,
        }
        return reply

    def _answer(self, request, path, parameters):
        token = request.headers.get("authorization", "").partition(" ")[2].strip()
        if token in ("", BAD_TOKEN):
            return Reply(401, {"message": "Bad credentials", "status": "401"})
        if path in _GRAPHQL_PATHS and request.method == "POST":
            return self._answer_graphql(request.body, token)
        quota = self._limits.spend(token, "core", 1)
        if self._rest is None:
            return Reply(404, {"message": "Not Found"}, quota.headers)
        status, payload, headers = self._rest.answer(path, parameters)
        return Reply(status, payload, quota.headers | headers)

    def _answer_graphql(self, body, token):
        try:
            prepared = self._graphql.prepare(body)
        except Refused as refused:
            quota = self._limits.quota(token, "graphql")  # costs nothing
            return Reply(refused.status, {"errors": refused.errors}, quota.headers)
        points = prepared.price.points
        fault = self._injector.next_fault(largest_page=prepared.price.largest_page)
        quota = self._limits.quota(token, "graphql")
        if fault is not None:
            with self._lock:
                self.stats.faults[fault.rule.kind] += 1
            reply = self._faulty(fault, prepared, token, quota)
            points = 0 if fault.rule.kind in FAKES_LIMIT else points
        elif quota.remaining <= 0:
            reply, points = exhausted_reply(quota), 0
        else:
            reply = self._execute(prepared, token, quota)
        with self._lock:
            self.stats.points += points
        reply.headers = {
            **self._limits.spend(token, "graphql", points).headers,
            **reply.headers,
        }
        return reply

    def _execute(self, prepared, token, quota):
        price = prepared.price
        context = Context(
            catalogue=self._catalogue,
            search=self._search,
            sees_repositories=token != BLIND_TOKEN,
            points=price.points,
            nodes=price.nodes,
            quota=replace(quota, used=min(quota.limit, quota.used + price.points)),
        )
        return Reply(200, self._graphql.execute(prepared, context))

    def _faulty(self, fault, prepared, token, quota):
        if fault.rule.kind in SPOILS_ANSWER:
            reply = self._execute(prepared, token, quota)
            spoil(reply, fault)
            return reply
        reply = replacing_reply(
            fault, self._plan, quota, self._clock() + self._plan.clock_skew_s
        )
        if reply.delivery is Delivery.DROPPED_WITHIN:
            reply.payload = self._execute(prepared, token, quota).payload
        return reply
