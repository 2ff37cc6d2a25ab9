"""Crawls with randomly changed responses, without sockets.

The seed determines the strategy, which responses are changed, and how. Each crawl must succeed or end with an
error of ours and the right exit code, within a bound on the number of requests.
"""

import copy
import json
import random
from unittest.mock import patch
from urllib.parse import urlsplit

import gis_builder
from gis_builder.crawling.github.exchange import Exchange, classify
from pairkit import PairkitError
from tests.support.github.faults import FaultPlan
from tests.support.github.service import Options, Request, Service
from tests.support.github.trackers import Catalogue

from .working_folder import contents

URL = "http://127.0.0.1:9"  # never contacted
ROCKET = "acme/rocket"
MOST_REQUESTS = 4000
_RIGHT_CODES = {3, 4}  # data errors and remote errors

PLANS = ("search", "sweep", "update")


class Wrong(AssertionError):  # noqa: N818
    """A crawl ended in an unacceptable way."""


class World:
    """The unchanged responses of the test server, cached."""

    def __init__(self, dump):
        options = Options(points=10**9, window_s=10**6)
        self._service = Service(
            Catalogue([dump]),
            URL,
            options=options,
            faults=FaultPlan(),
            clock=lambda: 1_700_000_000.0,
        )
        self._known = {}

    def answer(self, method, url, body):
        """Status, headers and body of a request."""
        key = (method, url, body)
        if key not in self._known:
            parts = urlsplit(url)
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            reply = self._service.handle(
                Request(method, target, {"authorization": "bearer one"}, body)
            )
            headers = {
                name.lower(): str(value) for name, value in reply.headers.items()
            }
            self._known[key] = (reply.status, headers, reply.body())
        return self._known[key]


def settings_of(draw, plan):
    """Settings with small pages and without waits."""
    crawl = {
        "strategy": "search" if "search" in plan else "all",
        "phrases": ("duplicate", "dup of"),
        "thread_batch": draw.choice((2, 4)),
        "issue_batch": 3,
        "comments_inline": 2,
        "attempts": 3,
        **dict.fromkeys(("title_words", "body_phrases"), ()),
        **dict.fromkeys(("events_inline", "labels_inline"), 1),
        **dict.fromkeys(("search_batch", "first_attempts"), 2),
        **dict.fromkeys(
            ("backoff_s", "secondary_wait_s", "max_wait_s", "all_if_small"), 0
        ),
    }
    return {f"crawl.{name}": value for name, value in crawl.items()} | {
        "pool.at_least": 2
    }


def fuzz_answers(world, folder, seed):
    """Run a crawl with changed responses; returns `ok` or the name of the error, and the requests."""
    draw = random.Random(seed)
    plan = draw.choice(PLANS)
    settings = settings_of(draw, plan)
    share, calm = draw.choice((0.02, 0.1, 0.3, 1.0)), draw.randrange(12)
    changer = Changer(draw)
    count = 0

    def respond(method, url, body):
        nonlocal count
        count += 1
        if count > MOST_REQUESTS:
            raise Wrong(f"seed {seed} ({plan}): more than {MOST_REQUESTS} requests")
        response = world.answer(method, url, body)
        return (
            changer.change(*response)
            if count > calm and draw.random() < share
            else response
        )

    with patched_exchange(respond):
        how = _ended(lambda: crawl_into(plan, settings, folder), seed, plan)
    return how, count


def patched_exchange(respond):
    """Let this function respond to every request."""

    def send(exchange, _session, body):
        return classify(*respond("POST", exchange._url, body))

    return patch.object(Exchange, "_send", send)


def _ended(run, seed, plan):
    try:
        run()
    except PairkitError as error:
        # A changed response may say that there are no issues.
        is_right = (
            error.exit_code in _RIGHT_CODES
            or "no repository can be crawled" in str(error)
        )
        if not is_right or "\n" in str(error):
            raise Wrong(
                f"seed {seed} ({plan}): exit code {error.exit_code}: {error}"
            ) from error
        return type(error).__name__
    except Wrong:
        raise
    except BaseException as error:
        raise Wrong(
            f"seed {seed} ({plan}): {type(error).__name__}: {str(error)[:200]}"
        ) from error
    return "ok"


def crawl_into(plan, settings, folder):
    for update in (False, True) if plan == "update" else (False,):
        access = {"api_url": URL, "token": "one"}
        gis_builder.crawl(ROCKET, folder, update=update, settings=settings, **access)
    contents(folder)  # must be readable


_ODD = (
    None,
    True,
    False,
    0,
    -1,
    2**63,
    2**64,
    10**400,
    -(2**63) - 1,
    "",
    "x",
    "\x00",
    "\ud800",
    "a\udc00b",
    "\u202e\x1b[31m\r\n",
    "x" * 70_000,
    "9" * 400,
    "@evil/x",
    "2020-13-45T99:99:99Z",
    "0000-00-00T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59-23:59",
    "2020-01-01T00:00:00+14:00",
    "http://[",
    "a/b",
    "CLOSED",
    "Issue",
    "PullRequest",
    "../..",
    "NOT_FOUND",
    "RATE_LIMITED",
    [],
    {},
    [None],
    {"nodes": None},
    {"nodes": [None]},
)
_ODD_ERRORS = (
    5,
    {},
    [],
    [5],
    [None],
    [{}],
    [{"path": 5}],
    [{"path": [None]}],
    [{"path": [[]]}],
    [{"message": 5}],
    [{"type": 5}],
    [{"extensions": 5}],
    [{"extensions": {"code": []}}],
    [{"message": "\ud800"}],
    *(
        [{"type": kind, "message": "m", "path": ["r0"]}]
        for kind in ("NOT_FOUND", "FORBIDDEN", "INTERNAL")
    ),
    *([{"type": kind, "message": "m"}] for kind in ("RATE_LIMITED", "TIMEOUT", "X")),
)
_STATUS = (200, 204, 301, 304, 400, 401, 403, 404, 429, 451, 500, 502, 503, 599, 999)


class Changer:
    """Changes responses at random, also by inserting parts of earlier ones."""

    def __init__(self, draw):
        self._draw = draw
        self._seen = []
        self._bodies = []

    def change(self, status, headers, body):
        """Change a response."""
        case = self._draw.randrange(9)
        if case == 0:
            return self._draw.choice(_STATUS), headers, body
        return status, headers, self._bytes(body) if case == 1 else self._json(body)

    def _bytes(self, body):
        draw, place = self._draw, self._draw.randrange(len(body) + 1)
        self._bodies = [*self._bodies[-20:], body]
        start, rest = body[:place], body[place:]
        whole = (b"", b"null", b"[]", b"{}", b'""', b"0", b"\xef\xbb\xbf{}", b"<html>")
        changes = (
            lambda: start,
            lambda: start + b"[" * 200_000 + rest,
            lambda: b'{"data":' + b'{"a":' * 100_000,
            lambda: bytes(draw.randrange(256) for _ in range(20)),
            lambda: body.replace(b"null", b"NaN", 3),
            lambda: start + b"\xff\xfe" + rest,
            lambda: draw.choice(self._bodies),
            lambda: draw.choice(whole),
            lambda: body.replace(b":1", b":1" + b"0" * 5000, 1),
            lambda: start + bytes([draw.randrange(256)]) + rest[1:],
        )
        return draw.choice(changes)()

    def _json(self, body):
        try:
            value = json.loads(body)
        except ValueError:
            return self._bytes(body)
        for _ in range(self._draw.choice((1, 1, 1, 2, 5))):
            value = self._turned(value)
        return json.dumps(value).encode()

    def _turned(self, value):
        draw = self._draw
        found = list(places(value))
        if not found:
            return self._odd(_ODD)
        box, key = draw.choice(found)
        old = box[key]
        if isinstance(old, dict | list):
            self._seen = [*self._seen[-30:], json.loads(json.dumps(old))]
        match draw.randrange(9):
            case 0 | 1 | 2:
                box[key] = self._odd(_ODD)
            case 3:
                del box[key]
            case 4 if self._seen:
                box[key] = self._odd(self._seen)
            case 5 if isinstance(old, list) and old:
                box[key] = draw.choice((old * 2, old[:1], old[::-1], old * 30))
            case 6:
                self._never_ending(value)
            case 7 if isinstance(value, dict):
                value["errors"] = self._odd(_ODD_ERRORS)
            case _:
                box[key] = self._near(old)
        return value

    def _odd(self, values):
        """A copy of a random value, because inserted values may be changed again."""
        return copy.deepcopy(self._draw.choice(values))

    def _never_ending(self, value):
        """Let every list announce another page and a wrong count."""
        announce_pages(
            value, self._draw.choice((None, "", "same", f"c{self._draw.random()}"))
        )
        for box, key in list(places(value)):
            if key in ("totalCount", "issueCount"):
                box[key] = self._draw.choice((2**31 - 1, 10**6, 0, 10**400))

    def _near(self, old):
        """Another value of the same type."""
        if isinstance(old, bool):
            return not old
        if isinstance(old, int):
            return old + self._draw.choice((-1, 1, 10**6))
        if isinstance(old, str):
            return self._draw.choice((old[::-1], old * 2, old.upper(), old + "\ud800"))
        return [old]


def announce_pages(value, cursor):
    """Let every list of a response announce another page."""
    for box, key in list(places(value)):
        if key in ("hasNextPage", "hasPreviousPage"):
            box[key] = True
        elif key in ("endCursor", "startCursor"):
            box[key] = cursor


def places(value):
    """Iterate over every object or list and its keys."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in list(inner):
        yield value, key
        yield from places(item)
