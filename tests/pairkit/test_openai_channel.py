import asyncio
import gzip
import json
import os
import signal
import sys
import traceback
import tracemalloc
import zlib
from contextlib import closing

import pytest

from pairkit import BadReply
from pairkit.base.openai_api.channel import (
    MOST_BYTES,
    Channel,
    ServerConnection,
    run_anywhere,
    trusted,
)
from pairkit.base.openai_api.credentials import Key, Masking
from pairkit.base.openai_api.refusals import NoAnswer, RefusedCall
from pairkit.base.openai_api.sdk import ExchangeFailed, GuardedClient
from pairkit.base.system.address import read_address
from tests.pairkit.exchange_server import serving, whole
from tests.support.shorthand import config_error, parametrize, raises, table

KEY = Key("sk-secret/0123456789", "MINE")


def channel(url, environ=None, **more):
    address = read_address(url, "base_url", "http://localhost:8000/v1")
    return Channel(
        ServerConnection(address, **{"key": KEY, "timeout_s": 5.0, **more}),
        environ or {},
    )


def exchange(
    answer, environ=None, path="/models", method="get", most_bytes=MOST_BYTES, **more
):
    async def main():
        async with serving(answer) as port:
            opened = channel(f"http://127.0.0.1:{port}/v1", environ, **more)
            try:
                if method == "post":
                    return await opened.post(path, {"b": 1})
                return await opened.get(path, most_bytes=most_bytes)
            finally:
                await opened.close()

    return asyncio.run(main())


def noting(heads, answer):
    """The answer, after noting the head of the request."""

    async def note(writer, head):
        heads.append(head)
        await answer(writer, head)

    return note


def sent(environ, **more):
    """The request head in lower case."""
    heads = []
    exchange(noting(heads, whole(b"{}")), environ, **more)
    return heads[0].decode().lower()


ENVIRON = {
    "OPENAI_API_KEY": "sk-of-openai-alone",
    "OPENAI_ADMIN_KEY": "sk-admin-secret",
    "OPENAI_CUSTOM_HEADERS": "X-Custom: custom-secret",
    "OPENAI_ORG_ID": "org-secret",
    "OPENAI_PROJECT_ID": "project-secret",
    "OPENAI_BASE_URL": "http://evil.example/v1",
}


def test_headers_and_keys(monkeypatch):
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    head = sent(ENVIRON)
    assert f"authorization: bearer {KEY.secret}" in head
    assert not [value for value in ENVIRON.values() if value in head]
    assert head.startswith("get /v1/models http/1.1")
    names = {line.partition(":")[0] for line in head.split("\r\n")[1:] if line}
    assert names == {"host", "accept", "accept-encoding", "authorization", "user-agent"}
    assert "authorization" not in sent({}, key=None)
    monkeypatch.setattr("pairkit.base.openai_api.credentials.OPENAI_HOST", "127.0.0.1")
    head = sent(ENVIRON)
    assert all(word in head for word in ("org-secret", "project-secret"))
    assert "sk-admin-secret" not in head
    assert "custom-secret" not in head


ODD = {
    "OPENAI_API_KEY": "sk of Zoë",
    "OPENAI_ADMIN_KEY": "Zoë",
    "OPENAI_ORG_ID": "Zoë",
    "OPENAI_PROJECT_ID": "two\nlines",
    "OPENAI_WEBHOOK_SECRET": "Zoë",
    "OPENAI_BASE_URL": "no URL: [",
    "OPENAI_CUSTOM_HEADERS": "Host: evil.example\nTransfer-Encoding: chunked\nX-Mark: 1\nZoë: é",
}


def test_the_environment_of_the_sdk_is_ignored(monkeypatch):
    for name, value in ODD.items():
        monkeypatch.setenv(name, value)
    head = sent(ODD, method="post")
    assert "content-type: application/json\r\n" in head
    assert "content-length: 7\r\n" in head
    assert "host: 127.0.0.1" in head
    assert not [word for word in ("evil", "chunked", "zo", "x-") if word in head]


@parametrize("status", [429, 503])
def test_no_retries_by_the_client(status):
    heads = []
    refused = whole(b"{}", status, retry_after_ms="1", x_should_retry="true")
    with raises(RefusedCall):
        exchange(noting(heads, refused))
    assert len(heads) == 1


def test_the_client_sends_only_to_its_address():
    async def main():
        heads = []
        async with serving(noting(heads, whole(b"{}"))) as other:
            address = read_address("http://127.0.0.1:9/v1", "base_url", "")
            limits = {"max_bytes": 9, "concurrency": 1, "connect_s": 5}
            client = GuardedClient(address, {}, Masking([]), verify=True, **limits)
            for url in (
                f"http://127.0.0.1:{other}/v1/models",
                f"http://127.0.0.1:9@localhost:{other}/v1",
            ):
                with raises(ExchangeFailed) as caught:
                    await client.get(url, follow_redirects=True)
                assert isinstance(caught.value.failure, BadReply)
        assert not heads

    asyncio.run(main())


def test_unsafe_addresses_are_refused():
    with config_error(r"over plain http, .* the key; use https"):
        channel("http://llm.example/v1")
    channel("http://llm.example/v1", plain_http=True)
    channel("http://llm.example/v1", key=None)
    with raises(BadReply, match="is not a path on this server"):
        exchange(whole(b"{}"), path="//evil.example/x")


def test_no_proxy_for_loopback(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert exchange(whole(b"{}")) == b"{}"


def test_a_socks_proxy_needs_a_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    message = r"^https://llm\.example: a SOCKS proxy .* pip install 'httpx2\[socks\]', give an http:// proxy"
    with config_error(message):
        asyncio.run(channel("https://llm.example").get("/models"))


@table("""
    coding, status
    gzip | 200
    deflate | 200
    gzip, gzip | 200
    gzip | 500
""")
def test_decompression_limit(coding, status):
    blank = b" " * (1 << 27)
    packed = zlib.compress(blank, 1) if coding == "deflate" else gzip.compress(blank, 1)
    if coding == "gzip, gzip":
        packed = gzip.compress(packed, 1)

    tracemalloc.start()
    try:
        with raises(NoAnswer, match="more than 4 MiB"):
            exchange(
                whole(packed, status, content_encoding=coding),
                timeout_s=60,
                most_bytes=4 << 20,
            )
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


@parametrize("status", [200, 400])
def test_echoed_key_is_masked(status):
    async def echo(writer, head):
        text = json.dumps({"error": {"message": head.decode()}}).replace("/", "\\/")
        headers = {"x_echo": f"Bearer {KEY.secret}", "retry_after": KEY.secret}
        await whole(text.encode(), status, **headers)(writer, head)

    if status == 200:
        assert b"0123456789" not in exchange(echo)
        return
    with raises(RefusedCall) as caught:
        exchange(echo)
    output = f"{caught.value} {caught.value.refusal!r} {caught.value.headers}"
    assert "0123456789" not in output
    assert "[key]" in output


def test_traceback_has_no_key():
    with raises(NoAnswer) as caught:
        exchange(sends(b"HTTP/1.1 ", KEY.secret.encode(), b"\r\n\r\n"))
    assert "0123456789" not in "".join(traceback.format_exception(caught.value))
    assert "[key]" in caught.value.detail


def sends(*pieces, repeat=b""):
    """Bytes as they are, the last again and again."""

    async def send(writer, _):
        writer.write(b"".join(pieces))
        for _ in range(1000 if repeat else 0):
            writer.write(repeat)
            await writer.drain()
            await asyncio.sleep(0.02)

    return send


OK = b"HTTP/1.1 200 OK\r\n"


@parametrize(
    "answer, reason",
    [
        *(
            (sends(head), "connection")
            for head in (b"", b"nonsense\r\n\r\n", b"HTTP/1.1 999999 OK\r\n\r\n")
        ),
        (sends(OK, b"content-length: -1\r\n\r\n"), "connection"),
        (sends(OK, b"content-encoding: gzip\r\n\r\nno gzip"), "connection"),
        (sends(OK, b"content-length: 10\r\n\r\nabc"), "connection"),
        (sends(OK, b"transfer-encoding: chunked\r\n\r\nzz\r\n"), "connection"),
        (sends(OK, b"x: ", b"x" * 200_000, b"\r\n\r\n"), "connection"),
        (sends(repeat=b"H"), "timeout"),
        (sends(OK, b"content-length: 1000\r\n\r\n", repeat=b" "), "timeout"),
    ],
)
def test_invalid_or_slow_answers(answer, reason):
    with raises(NoAnswer) as caught:
        exchange(answer, timeout_s=0.3 if reason == "timeout" else 5.0)
    assert (caught.value.reason, caught.value.was_sent) == (reason, True)


async def doubled(number):
    await asyncio.sleep(0)
    return 2 * number


def within_a_loop(main):
    """Run within a loop that ignores SIGINT, as in a notebook."""

    async def cell():
        return run_anywhere(main)

    with closing(asyncio.new_event_loop()) as loop:
        return loop.run_until_complete(cell())


def test_run_anywhere():
    assert run_anywhere(doubled(2)) == 4
    assert within_a_loop(doubled(3)) == 6


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_cancels_the_thread():
    ended = []

    async def long():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with raises(KeyboardInterrupt):
        within_a_loop(long())
    assert ended == ["cancelled"]


def test_unreadable_certificates(tmp_path):
    assert trusted(None, {}) is True
    (tmp_path / "empty.pem").touch()
    with config_error("^ca_file names .*which has no readable certificates"):
        trusted(tmp_path / "none.pem", {})
    with config_error("^SSL_CERT_FILE names .*which has no readable certificates"):
        trusted(None, {"SSL_CERT_FILE": str(tmp_path / "empty.pem")})
