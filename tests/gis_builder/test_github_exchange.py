"""Hostile servers: slow, endless, compressed and invalid responses end within the deadline and size limit."""

import gzip
import socket
import threading
import time
from contextlib import suppress

import pytest

from gis_builder.crawling.github import exchange
from gis_builder.crawling.github.access_tokens import Token
from gis_builder.crawling.github.exchange import AnswerKind, Exchange, QueryAnswer
from pairkit.base.system.address import read_address
from tests.support.shorthand import parametrize

SECRET = "ghp_0123456789abcdef0123456789abcdef0123"
LONG_S = 30.0  # far longer than a test takes


@pytest.fixture
def wire():
    """A function that starts a server with this behaviour on each connection."""
    stop, listeners = threading.Event(), []

    def start(behave):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def accept():
            with suppress(OSError):
                while not stop.is_set():
                    peer, _ = listener.accept()
                    threading.Thread(target=serve, args=(peer,), daemon=True).start()

        def serve(peer):
            with suppress(OSError), peer:
                while not stop.is_set() and peer.recv(1 << 16):
                    behave(peer)

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    stop.set()
    for listener in listeners:
        listener.close()


def ask(url, timeout_s=0.3):
    asked = Exchange(read_address(url, "--api-url", ""), Token(SECRET, url), timeout_s)
    try:
        return asked.post(b"{}")
    finally:
        asked.close()


def drip(head, byte):
    def behave(peer):
        peer.sendall(head)
        while True:
            peer.sendall(byte)
            time.sleep(0.02)

    return behave


def say(*parts):
    return lambda peer: peer.sendall(b"".join(parts))


def whole(body, *headers, status=b"200 OK"):
    length = b"content-length: %d" % len(body)
    return say(b"\r\n".join((b"HTTP/1.1 " + status, length, *headers, b"", body)))


@parametrize(
    "head, byte",
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n", b" "),
        # Without a length: a truncated body must not look complete.
        (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["body", "endless body", "chunks", "headers", "continue"],
)
def test_slow_responses_end_at_the_deadline(wire, head, byte):
    answer = ask(wire(drip(head, byte)))
    assert isinstance(answer, QueryAnswer)
    assert answer.kind in (AnswerKind.TOO_HEAVY, AnswerKind.TRANSIENT)


def test_large_bodies_are_cut_at_the_limit(wire, monkeypatch):
    monkeypatch.setattr(exchange, "_MAX_BYTES", 1 << 20)
    bomb = gzip.compress(bytes(50 << 20))

    def flood(peer):
        peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            peer.sendall(b" " * 65536)

    for behave in (whole(bomb, b"content-encoding: gzip"), flood):
        assert ask(wire(behave), LONG_S).message.startswith("a response of more")


@parametrize(
    "body, encoding, message",
    [
        (gzip.compress(b"{}" * 999, mtime=0)[:-9], b"gzip", "truncated"),
        (b"{}", b"gzip", "damaged"),
        (gzip.compress(b"{}", mtime=0), b"gzip, gzip", "not requested"),
    ],
)
def test_invalid_content_encodings(wire, body, encoding, message):
    answer = ask(wire(whole(body, b"content-encoding: " + encoding)), LONG_S)
    assert answer.kind is AnswerKind.DAMAGED
    assert message in answer.message


def test_an_echoed_token_is_masked(wire):
    body = f'{{"data": {{"node": {{"body": "you sent Bearer {SECRET}"}}}}}}'.encode()
    headers = b"content-encoding: gzip", b"x-echo: " + SECRET.encode()
    answer = ask(wire(whole(gzip.compress(body), *headers)))
    assert SECRET not in repr(answer)
    assert b"you sent Bearer ****" in bytes(answer.data["node"])


@parametrize(
    "said",
    [
        b"HTTP/1.1 99999999999999999999 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: " + b"9" * 5000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 301 Moved\r\nlocation: http://[\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 500 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n",
    ],
)
def test_invalid_http_does_not_raise(wire, said):
    def behave(peer):
        peer.sendall(said)
        peer.shutdown(socket.SHUT_WR)

    assert isinstance(ask(wire(behave), LONG_S), QueryAnswer)
