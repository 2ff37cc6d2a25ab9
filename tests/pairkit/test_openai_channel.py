"""One exchange: where it goes, what it takes along, how long and how large it may get."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import ssl
import subprocess
import sys
import traceback
import zlib
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pairkit.app.errors import BadReply, ConfigError
from pairkit.openai_api.channel import Channel, ServerConnection, run_anywhere, trusted
from pairkit.openai_api.credentials import Key, Masking
from pairkit.openai_api.refusals import NoAnswer, RefusedCall
from pairkit.openai_api.request_guard import MOST_BYTES_HEADER, ExchangeFailed, RequestGuard
from pairkit.system.address import read_address
from tests.pairkit.exchange_server import Answer, serving, whole

KEY = Key("sk-secret/0123456789", "MINE")


def channel(url: str, environ: Mapping[str, str] | None = None, **more: Any) -> Channel:
    address = read_address(url, "base_url", "http://localhost:8000/v1")
    return Channel(ServerConnection(address, **{"key": KEY, "timeout_s": 5.0, **more}), environ or {})


def exchange(
    answer: Answer, environ: Mapping[str, str] | None = None, path: str = "/models", **more: Any
) -> bytes:
    async def main() -> bytes:
        async with serving(answer) as port:
            opened = channel(f"http://127.0.0.1:{port}/v1", environ, **more)
            try:
                return await opened.get(path)
            finally:
                await opened.close()

    return asyncio.run(main())


def headers_sent(
    environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, *, host_is_openai: bool = False
) -> str:
    heads: list[bytes] = []

    async def note(writer: asyncio.StreamWriter, head: bytes) -> None:
        heads.append(head)
        await whole(b"{}")(writer, head)

    if host_is_openai:
        monkeypatch.setattr("pairkit.openai_api.credentials.OPENAI_HOST", "127.0.0.1")
    exchange(note, environ)
    return heads[0].decode().lower()


ENVIRON = {
    "OPENAI_API_KEY": "sk-of-openai-alone",
    "OPENAI_ADMIN_KEY": "sk-admin-secret",
    "OPENAI_CUSTOM_HEADERS": "X-Custom: custom-secret",
    "OPENAI_ORG_ID": "org-secret",
    "OPENAI_PROJECT_ID": "project-secret",
    "OPENAI_BASE_URL": "http://evil.example/v1",
}


def test_another_host_gets_the_key_that_was_named_for_it_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    sent = headers_sent(ENVIRON, monkeypatch)
    assert f"authorization: bearer {KEY.secret}" in sent
    assert not [value for value in ENVIRON.values() if value in sent]
    assert sent.startswith("get /v1/models http/1.1")


def test_openai_gets_what_is_meant_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = headers_sent(ENVIRON, monkeypatch, host_is_openai=True)
    for word in ("custom-secret", "org-secret", "project-secret"):
        assert word in sent
    assert "sk-admin-secret" not in sent


def test_a_request_takes_along_what_is_meant_for_the_server_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    names = {line.partition(":")[0] for line in headers_sent({}, monkeypatch).split("\r\n")[1:] if line}
    assert names == {"host", "accept", "accept-encoding", "authorization", "user-agent"}


ODD: dict[str, str] = {
    "OPENAI_API_KEY": "sk of Zoë",
    "OPENAI_ADMIN_KEY": "Zoë",
    "OPENAI_ORG_ID": "Zoë",
    "OPENAI_PROJECT_ID": "two\nlines",
    "OPENAI_WEBHOOK_SECRET": "Zoë",
    "OPENAI_BASE_URL": "no URL: [",
    "OPENAI_CUSTOM_HEADERS": "Host: evil.example\nContent-Length: 3\nTransfer-Encoding: chunked\n"
    "X-Most-Bytes: 1\nX-Stainless-Raw-Response: true\nContent-Type: text/plain\nZoë: é",
}


def test_what_the_environment_holds_for_openai_spoils_no_call_to_another_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ODD.items():
        monkeypatch.setenv(name, value)
    heads: list[bytes] = []

    async def note(writer: asyncio.StreamWriter, head: bytes) -> None:
        heads.append(head)
        await whole(b'{"a": 1}')(writer, head)

    async def main() -> bytes:
        async with serving(note) as port:
            return await channel(f"http://127.0.0.1:{port}/v1", ODD).post("/x", {"b": 1})

    assert asyncio.run(main()) == b'{"a": 1}'
    sent = heads[0].decode().lower()
    assert "content-type: application/json\r\n" in sent
    assert "content-length: 7\r\n" in sent
    assert "host: 127.0.0.1" in sent
    for word in ("evil", "chunked", "zo", "x-"):
        assert word not in sent


def test_a_file_is_handed_in_as_a_form() -> None:
    found: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        found.extend((head, await reader.readexactly(int(length.partition(b":")[2]))))
        await whole(b"{}")(writer, head)
        writer.close()

    async def main() -> bytes:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        async with server:
            opened = channel(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
            try:
                return await opened.upload("/files", "a.jsonl", b"line\n" * 9, purpose="batch", timeout_s=5)
            finally:
                await opened.close()

    assert asyncio.run(main()) == b"{}"
    head, body = found
    assert b"multipart/form-data; boundary=" in head
    assert b"application/json" not in head
    assert b'name="purpose"\r\n\r\nbatch\r\n' in body
    assert b'filename="a.jsonl"' in body
    assert b"line\n" * 9 in body


@pytest.mark.parametrize("status", [200, 429, 503])
def test_each_call_is_made_once(status: int) -> None:
    heads: list[bytes] = []

    async def count(writer: asyncio.StreamWriter, head: bytes) -> None:
        heads.append(head)
        await whole(b"{}", status, retry_after_ms="1", x_should_retry="true")(writer, head)

    if status == 200:
        exchange(count)
    else:
        with pytest.raises(RefusedCall):
            exchange(count)
    assert len(heads) == 1


def test_the_request_guard_sends_nothing_elsewhere() -> None:
    async def main() -> None:
        asked: list[bytes] = []

        async def elsewhere(writer: asyncio.StreamWriter, head: bytes) -> None:
            asked.append(head)

        async with serving(elsewhere) as other:
            address = read_address("http://127.0.0.1:9/v1", "base_url", "")
            guard = RequestGuard(address, {}, Masking([]), concurrency=1, connect_s=5, verify=True)
            for url in (f"http://127.0.0.1:{other}/v1/models", f"http://127.0.0.1:9@localhost:{other}/v1"):
                with pytest.raises(ExchangeFailed) as caught:
                    await guard.get(url, headers={MOST_BYTES_HEADER: "9"}, follow_redirects=True)
                assert isinstance(caught.value.failure, BadReply)
        assert not asked

    asyncio.run(main())


def test_nothing_heavy_is_imported_before_the_first_call() -> None:
    program = "import sys, pairkit.openai_api.channel; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"openai", "httpx2"} & {*found.stdout.split()}


def test_no_key_sends_none() -> None:
    async def echo(writer: asyncio.StreamWriter, head: bytes) -> None:
        await whole(b"none" if b"authorization" not in head.lower() else b"some")(writer, head)

    assert exchange(echo, key=None) == b"none"


def test_a_key_is_not_sent_in_clear_to_another_machine() -> None:
    with pytest.raises(ConfigError, match=r"over plain http, .* the key; use https"):
        channel("http://llm.example/v1")
    channel("http://llm.example/v1", plain_http=True)
    channel("http://llm.example/v1", key=None)
    for url in ("https://llm.example/v1", "http://localhost/v1", "http://[::1]:8000/v1"):
        channel(url)


@pytest.mark.parametrize(
    "path", ["@evil.example/x", "//evil.example/x", "/\\evil.example", "http://evil.example/"]
)
def test_a_path_that_leads_elsewhere_is_not_asked_for(path: str) -> None:
    with pytest.raises(BadReply, match="is not a path on this server"):
        exchange(whole(b"{}"), path=path)


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_is_a_refusal(status: int) -> None:
    async def main() -> None:
        asked = []

        async def elsewhere(writer: asyncio.StreamWriter, head: bytes) -> None:
            asked.append(head)

        async with serving(elsewhere) as other:
            moved = whole(b"", status, location=f"http://127.0.0.1:{other}/v1/models")
            async with serving(moved) as port:
                with pytest.raises(RefusedCall) as caught:
                    await channel(f"http://127.0.0.1:{port}/v1").get("/models")
        assert caught.value.refusal.status == status
        assert not asked

    asyncio.run(main())


def test_no_proxy_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert exchange(whole(b"{}")) == b"{}"


@pytest.mark.parametrize("in_head", [True, False])
def test_one_deadline_for_a_server_that_drips(in_head: bool) -> None:
    async def drip(writer: asyncio.StreamWriter, head: bytes) -> None:
        if not in_head:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        for _ in range(1000):
            writer.write(b"H" if in_head else b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    with pytest.raises(NoAnswer) as caught:
        exchange(drip, timeout_s=0.3)
    assert (caught.value.reason, caught.value.was_sent) == ("timeout", True)


def test_a_body_without_end() -> None:
    async def flood(writer: asyncio.StreamWriter, head: bytes) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(40):
            writer.write(b" " * (1 << 20))
            await writer.drain()

    async def main() -> None:
        async with serving(flood) as port:
            opened = channel(f"http://127.0.0.1:{port}/v1", timeout_s=60)
            with pytest.raises(NoAnswer, match="more than 8 MiB") as caught:
                await opened.get("/models", most_bytes=8 << 20)
            assert caught.value.reason == "broken_reply"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("coding", "status"), [("gzip", 200), ("deflate", 200), ("gzip, gzip", 200), ("gzip", 500)]
)
def test_a_bomb_is_unpacked_no_further_than_the_limit(coding: str, status: int) -> None:
    blank = b" " * (1 << 27)
    packed = zlib.compress(blank, 1) if coding == "deflate" else gzip.compress(blank, 1)
    if coding == "gzip, gzip":
        packed = gzip.compress(packed, 1)

    async def main() -> None:
        async with serving(whole(packed, status, content_encoding=coding)) as port:
            opened = channel(f"http://127.0.0.1:{port}/v1", timeout_s=60)
            with pytest.raises(NoAnswer, match="more than 4 MiB"):
                await opened.get("/models", most_bytes=4 << 20)

    import tracemalloc

    tracemalloc.start()
    try:
        asyncio.run(main())
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("status", [200, 400])
def test_a_server_that_echoes_its_request(status: int) -> None:
    async def echo(writer: asyncio.StreamWriter, head: bytes) -> None:
        body = json.dumps({"error": {"message": head.decode()}}).replace("/", "\\/").encode()
        await whole(body, status, x_echo=f"Bearer {KEY.secret}", retry_after=KEY.secret)(writer, head)

    if status == 200:
        assert b"0123456789" not in exchange(echo)
        return
    with pytest.raises(RefusedCall) as caught:
        exchange(echo)
    told = f"{caught.value} {caught.value.refusal!r} {caught.value.headers}"
    assert "0123456789" not in told
    assert "[key]" in told


def test_no_part_of_a_failure_shows_what_a_server_repeats() -> None:
    async def nonsense(writer: asyncio.StreamWriter, head: bytes) -> None:
        writer.write(b"HTTP/1.1 " + KEY.secret.encode() + b"\r\n\r\n")

    failed = failing_with(nonsense)
    assert "0123456789" not in "".join(traceback.format_exception(failed))
    assert "[key]" in failed.detail


def failing_with(answer: Answer) -> NoAnswer:
    with pytest.raises(NoAnswer) as caught:
        exchange(answer)
    return caught.value


def failing(main: Coroutine[Any, Any, Any]) -> NoAnswer:
    with pytest.raises(NoAnswer) as caught:
        asyncio.run(main)
    return caught.value


def test_nobody_there() -> None:
    failed = failing(channel("http://127.0.0.1:9/v1").get("/models"))
    assert (failed.reason, failed.was_sent) == ("connection", False)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nno gzip",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 999999 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"x" * 200_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_http(head: bytes) -> None:
    async def send(writer: asyncio.StreamWriter, _: bytes) -> None:
        writer.write(head)

    with pytest.raises(NoAnswer) as caught:
        exchange(send)
    assert (caught.value.reason, caught.value.was_sent) == ("connection", True)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that no system trusts, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
    builder = builder.not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, form, plain)
    )
    return path


def over_tls(certificate: Path, environ: Mapping[str, str], **more: Any) -> bytes:
    async def main() -> bytes:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
        async with serving(whole(b"{}"), tls=tls) as port:
            return await channel(f"https://127.0.0.1:{port}/v1", environ, **more).get("/models")

    return asyncio.run(main())


def test_certificates_that_are_named_count_on_this_machine_too(certificate: Path) -> None:
    with pytest.raises(NoAnswer, match="as ca_file or in SSL_CERT_FILE") as caught:
        over_tls(certificate, {})
    assert not caught.value.was_sent
    assert over_tls(certificate, {}, ca_file=certificate) == b"{}"
    assert over_tls(certificate, {"SSL_CERT_FILE": str(certificate)}) == b"{}"


def test_named_certificates(tmp_path: Path) -> None:
    assert trusted(None, {}) is True
    for ca_file, environ, source in (
        (tmp_path / "none.pem", {}, "ca_file"),
        (None, {"SSL_CERT_FILE": str(tmp_path / "none.pem")}, "SSL_CERT_FILE"),
    ):
        with pytest.raises(ConfigError, match=f"{source} names .*none.pem, which holds no certificates"):
            trusted(ca_file, environ)


async def doubled(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def within_a_loop(call: Callable[[], Any]) -> Any:
    """As in a cell of a notebook, whose loop takes no notice of SIGINT."""

    async def cell() -> Any:
        return call()

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(cell())
    finally:
        loop.close()


def test_with_and_without_a_running_loop() -> None:
    assert run_anywhere(doubled(2)) == 4
    assert within_a_loop(lambda: run_anywhere(doubled(3))) == 6


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_a_notebook_ends_what_runs_in_the_thread() -> None:
    ended: list[str] = []

    async def long() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    def call() -> None:
        main: Coroutine[Any, Any, None] = long()
        run_anywhere(main)

    with pytest.raises(KeyboardInterrupt):
        within_a_loop(call)
    assert ended == ["cancelled"]
