"""The server of a review: one process at 127.0.0.1; a judgement is on disk before it is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError

from pairkit._review.desk import Desk, NotAskedError, Said, Undone
from pairkit._review.door import Door, who_asks
from pairkit._review.page import page
from pairkit.errors import PairkitError
from pairkit.extras import needed_for
from pairkit.http_door import LOOPBACK, bound
from pairkit.http_server import HttpServer
from pairkit.judgements import AnsweredError, Person, Store

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

_CONNECTIONS, _STOP_S = 256, 2


class ReviewServer:
    """A running server, in a thread of its own. Use it as a context manager, or `close` it.

    Attributes:
        url: Where it is.
        links: Each person's own link, by name.
    """

    def __init__(self, store: Store, people: Sequence[Person], port: int) -> None:
        """Start it.

        Raises:
            ConfigError: The port is taken, or starlette or uvicorn is missing.
        """
        with needed_for("`pairs review`", "review"):
            import starlette  # noqa: F401
            import uvicorn  # noqa: F401
        listening = bound(LOOPBACK, port)
        port = listening.getsockname()[1]
        self.url = f"http://{LOOPBACK}:{port}"
        # Behind `#`, so that it is never sent, kept in a log, or handed to another page.
        self.links = {person.name: f"{self.url}/#{person.token}" for person in people}
        self._store = store
        door = Door(application(store), port)
        self._server = HttpServer(door, listening, name="review", connections=_CONNECTIONS, stop_s=_STOP_S)

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


def application(store: Store) -> ASGIApp:
    """The application behind the door. It runs in one thread, so that the store has one user."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.responses import Response as Plain
    from starlette.routing import Route

    html, policy = page()
    desks: dict[Person, Desk] = {}

    def told(content: dict[str, Any], status: int = 200) -> Response:
        return JSONResponse(content, status)

    async def home(_: Request) -> Response:
        return Plain(html, media_type="text/html; charset=utf-8", headers={"content-security-policy": policy})

    def answering(act: Callable[[Desk, Any], None]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            person = who_asks(request.headers.get("authorization", ""), store.people())
            if person is None:
                return told({"error": "this link is not valid; ask for yours again"}, 401)
            desk = desks.setdefault(person, Desk(store, person))
            status, error = 200, None
            try:
                if request.method == "POST":
                    act(desk, await request.body())
            except AnsweredError as again:
                status, error = 409, str(again)
            return told({**desk.state(), "error": error}, status)

        return answer

    async def wrong(_: Request, error: Exception) -> Response:
        first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        return told({"error": first}, 422)

    async def fault(_: Request, error: Exception) -> Response:
        """Such as a full disk: the page keeps the answer and sends it again."""
        return told({"error": str(error)}, 503)

    return Starlette(
        routes=[
            Route("/", home, methods=["GET"]),
            Route("/api/state", answering(lambda *_: None), methods=["GET"]),
            Route(
                "/api/judge",
                answering(lambda desk, body: desk.judge(Said.model_validate_json(body))),
                methods=["POST"],
            ),
            Route("/api/undo", answering(_undo), methods=["POST"]),
            Route("/api/skipped", answering(lambda desk, _: desk.take_up_skipped()), methods=["POST"]),
        ],
        exception_handlers={NotAskedError: wrong, ValidationError: wrong, PairkitError: fault},
    )


def _undo(desk: Desk, body: bytes) -> None:
    desk.undo(Undone.model_validate_json(body).key)
