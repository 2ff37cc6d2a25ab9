"""The emulated server without its sockets: a request goes in, an answer comes out."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pydantic import Field

from gis_builder._emulator.fault_replies import (
    FAKES_LIMIT,
    SPOILS_ANSWER,
    exhausted_reply,
    replacing_reply,
    spoil,
)
from gis_builder._emulator.faults import Fault, FaultPlan, Injector, Kind, Scope
from gis_builder._emulator.graphql_api import GraphQLApi, Prepared, Refused
from gis_builder._emulator.limits import RESOURCES, Allowance, RateLimits, Standing
from gis_builder._emulator.listing import Listing
from gis_builder._emulator.reply import Fate, Reply
from gis_builder._emulator.resolvers import Context
from gis_builder._emulator.rest import RestApi, RestCall
from gis_builder._emulator.schema import build_schema
from gis_builder._emulator.search import Search
from gis_builder._emulator.stats import Recorder
from gis_builder._emulator.tracker import Catalogue
from pairkit.config import Settings

BAD_TOKEN = "bad"  # noqa: S105 - the one token that is refused
BLIND_TOKEN = "noaccess"  # noqa: S105 - a token that may read no repository
READER_TOKEN = "readonly"  # noqa: S105 - a token that may read and not write
STATS_PATH = "/_emulator/stats"
_LOGIN = "emulated-user"
_RESOURCE_OF_SCOPE: dict[Scope, str] = {
    "graphql": "graphql",
    "rest": "core",
    "search": "search",
    "write": "core",
}
_WRITING = frozenset({"POST", "DELETE"})
_GRAPHQL_PATHS = frozenset({"/graphql", "/api/graphql"})
_ENTERPRISE_PREFIX = "/api/v3"
_INSTALLATION = re.compile(r"/app/installations/\d+/access_tokens")
_INSTALLATION_TOKEN_S = 3600


class Options(Settings):
    """How the emulated GitHub behaves."""

    points: int = Field(default=5000, ge=1)  # a token and window, for GraphQL and REST each
    window_s: float = Field(default=3600.0, gt=0)
    search_requests: int = Field(default=30, ge=1)  # REST searches a token and search window
    search_window_s: float = Field(default=60.0, gt=0)
    anonymous_requests: int = Field(default=60, ge=1)  # REST requests without a token, a window
    without_duplicate_of: bool = False  # hide what GitHub's schema got in May 2025
    # GraphQL's answer to the number of a transferred issue: the issue in its new repository, or NOT_FOUND.
    follows_transfers: bool = True


@dataclass(frozen=True)
class Request:
    """One HTTP request; the names of headers are in lower case."""

    method: str
    target: str  # path and query string
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class _Caller:
    token: str | None
    sees_repositories: bool
    may_write: bool


class Service:
    """Everything that is decided about a request. Safe to use from several threads.

    Args:
        base: The server's root address, for the links in answers.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        base: str,
        *,
        options: Options,
        faults: FaultPlan,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._options = options
        self._plan = faults
        self._clock = clock
        self._catalogue = catalogue
        self._search = Search(catalogue)
        self._listing = Listing()
        self._graphql = GraphQLApi(build_schema(without_duplicate_of=options.without_duplicate_of))
        self._rest = RestApi(catalogue, self._search, self._listing, base, clock)
        self._injector = Injector(faults)
        self._rate_limits = RateLimits(
            {
                "core": Allowance(options.points, options.window_s),
                "graphql": Allowance(options.points, options.window_s),
                "search": Allowance(options.search_requests, options.search_window_s),
            },
            Allowance(options.anonymous_requests, options.window_s),
            skew_s=faults.clock_skew_s,
            clock=clock,
        )
        self.recorder = Recorder()

    @property
    def stall_s(self) -> float:
        """How long a stalled answer hangs."""
        return self._plan.stall_s

    def handle(self, request: Request) -> Reply:
        """Answer one request."""
        url = urlsplit(request.target)
        path = url.path.removeprefix(_ENTERPRISE_PREFIX)
        if path == STATS_PATH:
            return self._finish(Reply(200, asdict(self.recorder.stats())), 0)
        number = self.recorder.request(path)
        reply = self._authorised(request, path, dict(parse_qsl(url.query, keep_blank_values=True)))
        return self._finish(reply, number)

    def _finish(self, reply: Reply, number: int) -> Reply:
        defaults = {
            "date": formatdate(self._clock() + self._plan.clock_skew_s, usegmt=True),
            "server": "github.com",
            "content-type": "application/json; charset=utf-8",
            "x-github-request-id": f"E0E0:1F:{number:X}:0:0",
        }
        reply.headers = {**defaults, **reply.headers}
        return reply

    def _authorised(self, request: Request, path: str, parameters: dict[str, str]) -> Reply:
        token = _token(request.headers.get("authorization"))
        is_graphql = path in _GRAPHQL_PATHS
        if token == BAD_TOKEN:
            return Reply(401, {"message": "Bad credentials", "status": "401"})
        if token is None and is_graphql:
            return Reply(401, {"message": "This endpoint requires you to be authenticated.", "status": "401"})
        caller = _Caller(
            token, sees_repositories=token != BLIND_TOKEN, may_write=token not in (BLIND_TOKEN, READER_TOKEN)
        )
        if is_graphql:
            return self._answer_graphql(request, caller)
        if request.method == "POST" and _INSTALLATION.fullmatch(path):
            expiry = datetime.fromtimestamp(self._clock() + _INSTALLATION_TOKEN_S, UTC)
            return Reply(201, {"token": "ghs_emulated", "expires_at": f"{expiry:%Y-%m-%dT%H:%M:%SZ}"})
        if request.method not in {"GET", "HEAD", *_WRITING}:
            return Reply(404, {"message": "Not Found", "status": "404"})
        if path == "/rate_limit":
            return self._answer_rate_limit(caller)
        method = request.method if request.method in _WRITING else "GET"
        call = RestCall(
            path=path,
            parameters=parameters,
            login=None if token is None else _LOGIN,
            sees_repositories=caller.sees_repositories,
            may_write=caller.may_write,
            method=method,
            body=request.body,
        )
        return self._answer_rest(request, call, caller)

    def _answer_graphql(self, request: Request, caller: _Caller) -> Reply:
        if request.method != "POST":
            return Reply(404, {"message": "Not Found", "status": "404"})
        try:
            prepared = self._graphql.prepare(request.body)
        except Refused as refused:
            standing = self._rate_limits.standing(caller.token, "graphql")  # what is not run costs nothing
            return Reply(refused.status, {"errors": refused.errors}, standing.headers)
        points = 0 if prepared.is_dry_run else prepared.price.points
        fault = self._injector.next_fault("graphql", largest_page=prepared.price.largest_page)

        def execute() -> Reply:
            return Reply(200, self._graphql.execute(prepared, self._context(caller, prepared, points)))

        return self._charge("graphql", caller, points, fault, execute)

    def _context(self, caller: _Caller, prepared: Prepared, points: int) -> Context:
        standing = self._rate_limits.standing(caller.token, "graphql")
        return Context(
            catalogue=self._catalogue,
            search=self._search,
            listing=self._listing,
            login=_LOGIN,
            sees_repositories=caller.sees_repositories,
            follows_transfers=self._options.follows_transfers,
            price=prepared.price,
            standing=replace(standing, used=min(standing.limit, standing.used + points)),
        )

    def _answer_rest(self, request: Request, call: RestCall, caller: _Caller) -> Reply:
        scope: Scope = "search" if call.path.startswith("/search/") else "rest"
        if call.method != "GET":
            scope = "write"
        fault = self._injector.next_fault(scope)
        if fault is not None and fault.rule.kind is Kind.PARTIAL:  # REST answers wholly or not at all
            fault = replace(fault, rule=fault.rule.model_copy(update={"kind": Kind.BAD_GATEWAY}))

        def execute() -> Reply:
            reply = self._rest.answer(call)
            if call.method != "GET":
                return reply
            tag = f'W/"{hashlib.sha256(reply.body()).hexdigest()}"'
            reply.headers["etag"] = tag
            is_known = reply.status == 200 and request.headers.get("if-none-match") == tag
            return Reply(304, headers=reply.headers) if is_known else reply

        return self._charge(scope, caller, 1, fault, execute)

    def _charge(
        self, scope: Scope, caller: _Caller, points: int, fault: Fault | None, execute: Callable[[], Reply]
    ) -> Reply:
        """Answer truly, or as the fault has it, or with a refusal where the limit is spent."""
        resource = _RESOURCE_OF_SCOPE[scope]
        standing = self._rate_limits.standing(caller.token, resource)
        is_exhausted = fault is None and points > 0 and standing.remaining <= 0
        if is_exhausted:
            reply = exhausted_reply(scope, standing)
        elif fault is None:
            reply = execute()
        else:
            self.recorder.fault(fault.rule.kind)
            reply = self._faulty(fault, scope, standing, execute)
        if is_exhausted or reply.status == 304 or (fault is not None and fault.rule.kind in FAKES_LIMIT):
            points = 0
        if reply.status == 304:
            self.recorder.not_modified()
        if scope == "graphql":
            self.recorder.points(points)
        reply.headers = {**self._rate_limits.spend(caller.token, resource, points).headers, **reply.headers}
        return reply

    def _faulty(self, fault: Fault, scope: Scope, standing: Standing, execute: Callable[[], Reply]) -> Reply:
        if fault.rule.kind in SPOILS_ANSWER:
            reply = execute()
            spoil(reply, fault)
            return reply
        now = self._clock() + self._plan.clock_skew_s
        reply = replacing_reply(fault, self._plan, scope, standing, now)
        if reply.fate is Fate.DROPPED_WITHIN:
            reply.payload = execute().payload
        elif fault.rule.arrives:
            execute()
        return reply

    def _answer_rate_limit(self, caller: _Caller) -> Reply:
        resources = {
            resource: _as_json(self._rate_limits.standing(caller.token, resource)) for resource in RESOURCES
        }
        standing = self._rate_limits.standing(caller.token, "core")
        return Reply(200, {"resources": resources, "rate": resources["core"]}, standing.headers)


def _as_json(standing: Standing) -> dict[str, Any]:
    return {**asdict(standing), "remaining": standing.remaining}


def _token(authorization: str | None) -> str | None:
    """The token of an Authorization header: bearer, token, or the password of Basic."""
    scheme, _, value = (authorization or "").partition(" ")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value).decode().partition(":")[2] or None
        except (binascii.Error, UnicodeDecodeError):
            return BAD_TOKEN
    return value.strip() or None
