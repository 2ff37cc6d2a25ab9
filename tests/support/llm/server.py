"""The test server in a thread: uvicorn on loopback."""

import asyncio
import socket
import threading

import uvicorn

from tests.support.llm.service import Faults, Options, Service


class _Uvicorn(uvicorn.Server):
    async def main_loop(self):
        """End within a hundredth of a second; uvicorn's own loop looks ten times a second."""
        await self.on_tick(0)
        while not self.should_exit:
            await asyncio.sleep(0.01)


class Server:
    """A running server. Use it as a context manager, or `close` it."""

    def __init__(self, options, faults, port):
        self._service = Service(options, faults)
        self._socket = socket.create_server(("127.0.0.1", port), backlog=1024)
        quiet = {
            "log_config": None,
            "log_level": "critical",
            "lifespan": "off",
            "ws": "none",
        }
        config = uvicorn.Config(
            self._service.app, interface="asgi3", timeout_graceful_shutdown=0, **quiet
        )
        self._server = _Uvicorn(config)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), daemon=True
        )
        self._thread.start()

    @property
    def base_url(self):
        """The address for clients of OpenAI's protocol."""
        return f"{self.url}/v1"

    @property
    def stats(self):
        """The counts so far."""
        return self._service.stats

    @property
    def requests(self):
        """The first hundred requests, in order."""
        return list(self._service.requests)

    def close(self):
        """Stop, and drop every connection. Closing twice is harmless."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def serve(options=None, faults=None, *, port=0):
    """Start a server; clients can connect when this returns."""
    return Server(options or Options(), faults or Faults(), port)
