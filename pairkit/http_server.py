"""A server that runs in a thread of its own until it is closed: that of `pairs review` and of `aoe serve`."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp


class HttpServer:
    """Serves an application over HTTP/1.1 alone, and keeps no log of what is asked."""

    def __init__(
        self,
        application: ASGIApp,
        listening: socket.socket,
        *,
        name: str,
        connections: int,
        stop_s: float,
        protocol: Any = "h11",
    ) -> None:
        """Start it.

        Args:
            application: What answers.
            listening: See `http_door.bound`; closed with the server.
            name: Of the thread.
            connections: At once; further ones get the status 503.
            stop_s: How long requests that are worked on may still take once it is closed.
            protocol: uvicorn's name of one, or a class.

        Raises:
            ImportError: uvicorn is missing.
        """
        import uvicorn

        self._socket = listening
        self._server = uvicorn.Server(
            uvicorn.Config(
                application,
                log_level="error",
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                http=protocol,
                loop="asyncio",
                proxy_headers=False,
                limit_concurrency=connections,
                timeout_graceful_shutdown=max(1, round(stop_s)),
            )
        )
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def wait(self) -> None:
        """Block until the server is closed from another thread, or by Ctrl-C."""
        self._thread.join()

    def close(self) -> None:
        """Finish what is worked on, and stop. Closing twice is harmless."""
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
