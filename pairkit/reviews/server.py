"""The server of a review: one process at 127.0.0.1; a judgement is on disk before it is answered.

Nothing reaches the application but requests of its own page, of moderate size: see `system.http_server`.
Requests for data must carry a person's token in a header, which another page neither knows nor may send. No
cookie is ever set, and no CORS header. The page's policy names its style and script by their digests, lets
the script reach its own server only, and has the browser refuse to make HTML of a text (trusted types).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError

from pairkit.app.errors import PairkitError
from pairkit.app.extras import needed_for
from pairkit.app.result_table import style
from pairkit.dataset.judgements import AnsweredError, Person, ReviewStore
from pairkit.reviews.reviewer_session import NotAskedError, ReviewerSession, SentJudgement, SentUndo
from pairkit.system.http_server import (
    LOOPBACK,
    HttpServer,
    RefusedError,
    body_of,
    bound,
    check_json,
    check_length,
    check_own_page,
    headers_of,
    replayed,
)

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
]
MOST_BYTES = 16 << 10  # of a request's body
_SCHEME = "Bearer "
_CONNECTIONS, _STOP_S = 256, 2


class ReviewServer:
    """A running server, in a thread of its own. Use it as a context manager, or `close` it.

    Attributes:
        url: Where it is.
        links: Each person's own link, by name.
    """

    def __init__(self, store: ReviewStore, people: Sequence[Person], port: int) -> None:
        """Start it."""
        with needed_for("`pairs review`", "review"):
            import starlette  # noqa: F401
            import uvicorn  # noqa: F401
        listening = bound(LOOPBACK, port)
        port = listening.getsockname()[1]
        self.url = f"http://{LOOPBACK}:{port}"
        # Behind `#`, so that it is never sent, kept in a log, or handed to another page.
        self.links = {person.name: f"{self.url}/#{person.token}" for person in people}
        self._store = store
        app = _GuardedApp(application(store), port)
        self._server = HttpServer(app, listening, name="review", connections=_CONNECTIONS, stop_s=_STOP_S)

    def wait(self) -> None:
        """Block until the server is closed from another thread, or by Ctrl-C."""
        self._server.wait()

    def close(self) -> None:
        """Stop serving. Closing twice is harmless."""
        self._server.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def application(store: ReviewStore) -> ASGIApp:
    """The application behind the request checks. It runs in one thread, so that the store has one user."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.responses import Response as Plain
    from starlette.routing import Route

    html, policy = _page()
    sessions: dict[Person, ReviewerSession] = {}

    def reply(content: dict[str, Any], status: int = 200) -> Response:
        return JSONResponse(content, status)

    async def home(_: Request) -> Response:
        return Plain(html, media_type="text/html; charset=utf-8", headers={"content-security-policy": policy})

    def answering(act: Callable[[ReviewerSession, Any], None]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            person = authenticated_person(request.headers.get("authorization", ""), store.people())
            if person is None:
                return reply({"error": "this link is not valid; ask for yours again"}, 401)
            session = sessions.setdefault(person, ReviewerSession(store, person))
            status, error = 200, None
            try:
                if request.method == "POST":
                    act(session, await request.body())
            except AnsweredError as again:
                status, error = 409, str(again)
            return reply({**session.state(), "error": error}, status)

        return answer

    async def wrong(_: Request, error: Exception) -> Response:
        first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        return reply({"error": first}, 422)

    async def fault(_: Request, error: Exception) -> Response:
        """Such as a full disk: the page keeps the answer and sends it again."""
        return reply({"error": str(error)}, 503)

    return Starlette(
        routes=[
            Route("/", home, methods=["GET"]),
            Route("/api/state", answering(lambda *_: None), methods=["GET"]),
            Route(
                "/api/judge",
                answering(lambda session, body: session.judge(SentJudgement.model_validate_json(body))),
                methods=["POST"],
            ),
            Route("/api/undo", answering(_undo), methods=["POST"]),
            Route("/api/skipped", answering(lambda session, _: session.take_up_skipped()), methods=["POST"]),
        ],
        exception_handlers={NotAskedError: wrong, ValidationError: wrong, PairkitError: fault},
    )


def _undo(session: ReviewerSession, body: bytes) -> None:
    session.undo(SentUndo.model_validate_json(body).key)


class _GuardedApp:
    """An ASGI application before another one."""

    def __init__(self, inner: ASGIApp, port: int) -> None:
        self._inner = inner
        self._hosts = {f"127.0.0.1:{port}".encode(), f"localhost:{port}".encode()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it with why not."""
        if scope["type"] != "http":
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
            await send(message)

        try:
            body = await self._read(scope, receive)
        except RefusedError as refused:
            await _refuse(marked, refused.status, str(refused))
            return
        await self._inner(scope, replayed(body, receive), marked)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        """The body of a request that may pass."""
        headers = headers_of(scope["headers"])
        check_own_page(headers, self._hosts)
        if scope["method"] == "POST":
            check_json(headers)
        check_length(headers, MOST_BYTES)
        return await body_of(receive, MOST_BYTES)


async def _refuse(send: Send, status: int, words: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": words.encode()})


def authenticated_person(authorization: str, people: Sequence[Person]) -> Person | None:
    """The person whose token a header holds; all are compared, each in constant time."""
    given = authorization.removeprefix(_SCHEME).encode("utf-8", "replace")
    if not authorization.startswith(_SCHEME):
        return None
    found = [person for person in people if hmac.compare_digest(person.token.encode(), given)]
    return found[0] if found else None


def _page() -> tuple[bytes, str]:
    """The page, and its policy."""
    look, script = style(__package__ or "", "page.css"), _read("page.js")
    html = _read("page.html").replace("@STYLE@", look).replace("@SCRIPT@", script)
    policy = (
        f"default-src 'none'; style-src '{_digest(look)}'; script-src '{_digest(script)}';"
        " connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return html.encode(), policy


def _read(name: str) -> str:
    return files(__package__ or "").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
