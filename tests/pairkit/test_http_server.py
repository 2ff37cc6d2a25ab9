from __future__ import annotations

import asyncio
import http.client
import threading

import pytest

from pairkit import ConfigError
from pairkit.base.system.http_server import LOOPBACK, HttpServer, listening_socket


def get(port: int) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=30)
    connection.request("GET", "/")
    answer = connection.getresponse()
    found = answer.status, answer.read(), dict(answer.getheaders())
    connection.close()
    return found


def test_close_finishes_requests_and_frees_the_port():
    begun, free = threading.Event(), threading.Event()

    async def application(scope, receive, send):
        begun.set()
        while not free.is_set():
            await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    listening = listening_socket(LOOPBACK, 0)
    port = listening.getsockname()[1]
    server = HttpServer(application, listening, name="test", connections=8, stop_s=30)
    with pytest.raises(ConfigError, match=f"port {port} of 127.0.0.1 can't be used"):
        listening_socket(LOOPBACK, port)
    answers: list[tuple[int, bytes, dict[str, str]]] = []
    asking = threading.Thread(target=lambda: answers.append(get(port)))
    asking.start()
    assert begun.wait(30)
    closing = threading.Thread(target=server.close)
    closing.start()
    free.set()
    closing.join(30)
    asking.join(30)
    status, body, headers = answers[0]
    assert (status, body) == (200, b"done")
    assert "server" not in headers
    server.close()
    server.wait()
    listening_socket(LOOPBACK, port).close()


@pytest.mark.parametrize("port", [-1, 65_536, 99_999])
def test_ports_out_of_range_are_refused(port: int):
    with pytest.raises(ConfigError, match=rf"port=.*{port}.*: expected 0 .* to 65535"):
        listening_socket(LOOPBACK, port)
