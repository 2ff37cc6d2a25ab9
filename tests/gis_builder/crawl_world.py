"""A tracker of many pages, and settings with small pages and short waits."""

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import gis_builder

from .conftest import comment, event, issue

STATION = "acme/station"
LAST = 90


def moment(number, minutes=0):
    """A time in 2020, later for higher numbers."""
    return f"2020-{1 + number // 28:02}-{1 + number % 28:02}T{minutes // 60:02}:{minutes % 60:02}:00Z"


def is_pull(number):
    return number % 4 == 3


def is_duplicate(number):
    return number % 5 == 0 and not is_pull(number)


def comment_count(number):
    return 45 if number % 30 == 0 else number % 8


def station_rows():
    """Every fourth number is a pull request, every fifth a duplicate; some threads are long."""
    # Every 17th was deleted.
    numbers = [number for number in range(1, LAST + 1) if number % 17]
    return {
        "issues": [_issue(number) for number in numbers],
        "comments": [
            _comment(number, place)
            for number in numbers
            for place in range(comment_count(number))
        ],
        "events": [
            event
            for number in numbers
            if not is_pull(number)
            for event in _events(number)
        ],
    }


# Small pages and short waits.
QUICK = {
    "all_if_small": False,
    "thread_batch": 7,
    "issue_batch": 9,
    "comments_inline": 3,
    "events_inline": 2,
    "labels_inline": 2,
    "phrases": ("duplicate", "in favor of"),
    "title_words": ("duplicate",),
    "body_phrases": (),
    "search_batch": 2,
    "search_limit": 9,
    "backoff_s": 0.001,
    "secondary_wait_s": 0.002,
    "timeout_s": 5.0,
    "attempts": 12,
}


def crawled(
    server,
    work,
    repos=STATION,
    *,
    token="one",
    update=False,
    at_least=15,
    progress=False,
    **changes,
):
    """Crawl with settings for small pages, and a sample of at least 15 issues for negatives."""
    settings = {f"crawl.{name}": value for name, value in (QUICK | changes).items()}
    access = {"api_url": server.url, "token": token, "seed": 1, "progress": progress}
    settings["pool.at_least"] = at_least
    return gis_builder.crawl(repos, work, update=update, settings=settings, **access)


@contextmanager
def serving(respond):
    """Serve status, headers and body by path and headers; yields the root URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            status, headers, body = respond(self.path, self.headers)
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(body))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    ).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def _issue(number):
    closed = is_duplicate(number) or number % 2 == 0
    user = None if number % 11 == 0 else {"login": f"user{number % 9}", "type": "User"}
    row = issue(STATION, 1, title=f"Trouble {number}", user=user)
    row |= {
        "number": number,
        "body": None if number % 13 == 0 else f"Body of {number} \N{ROCKET}\r\n",
        "labels": [{"name": f"label {place}"} for place in range(number % 6)],
        "created_at": moment(number),
        "updated_at": moment(number, 500),
    }
    closing = {
        "state": "closed",
        "state_reason": "completed",
        "closed_by": {"login": "max"},
    }
    row |= closing | {"closed_at": moment(number, 500)} if closed else {}
    return row | ({"pull_request": {}} if is_pull(number) else {})


def _comment(number, place):
    says = (
        "Duplicate of #1" if is_duplicate(number) and place == 0 else f"remark {place}"
    )
    id_ = 3_000_000_000 + number * 1000 + place  # more than 32 bits, like new comments
    times = dict.fromkeys(("created_at", "updated_at"), moment(number, place))
    return comment(STATION, number, id_, says) | times


def _events(number):
    closings = 4 if number % 10 == 0 else int(number % 2 == 0 or is_duplicate(number))
    kinds = [kind for _ in range(closings) for kind in ("closed", "reopened")][
        : max(0, 2 * closings - 1)
    ]
    # Some in the same minute.
    times = (moment(number, 400 + place // 3) for place, _ in enumerate(kinds))
    return [
        event(
            STATION,
            number,
            kind,
            1,
            created_at=at,
            state_reason="completed" if kind == "closed" else None,
        )
        for kind, at in zip(kinds, times, strict=True)
    ]
