"""The server over HTTP: OpenAI's client gets the model's vectors, hostile requests get an error status."""

import base64
import hashlib
import json
import re
import shutil
import socket
from contextlib import suppress
from functools import partial
from itertools import repeat

import numpy as np
import openai
import pytest
import requests
from numpy.testing import assert_allclose
from starlette.datastructures import Headers

from aoe_train import search, serve
from pairkit.base.system.http_server import RefusedError, check_own_page
from tests.aoe_train.shorthand import index
from tests.aoe_train.test_search import issues, sentences
from tests.aoe_train.tiny import load
from tests.support.shorthand import (
    config_error,
    module_fixture,
    raises,
    table,
    values,
)

KEY = "a-key-of-nobody"
LONG = " ".join(["dog"] * 500)


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("KEY", KEY)


@module_fixture
def encoder(bert):
    return load(bert, prompts={"query": "find: "})


def serving(encoder, **options):
    return serve(encoder, name="m", port=0, **options)


@module_fixture
def server(encoder):
    """A shared server."""
    with serving(encoder, max_body=1, max_texts=64) as running:
        yield running


def client(server, key="any"):
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0)


def embed(api, texts="a dog", model="m", **more):
    return api.embeddings.create(input=texts, model=model, **more)


def post(server, body, path="/v1/embeddings", **headers):
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    told = {"content-type": "application/json", **headers}
    return requests.post(server.url + path, data=sent, headers=told, timeout=60)


def connect(server):
    return socket.create_connection(
        ("127.0.0.1", int(server.url.rpartition(":")[2])), 60
    )


def raw(server, *parts, times=1):
    """The server's answer until it closes the connection, and the number of parts that it accepted."""
    taken, answer = 0, b""
    with connect(server) as connection:
        with suppress(ConnectionError):
            for part in (*parts[:-1], *repeat(parts[-1], times)):
                connection.sendall(part)
                taken += 1
        with suppress(ConnectionError):
            while piece := connection.recv(65536):
                answer += piece
    return answer, taken


def head(server, *lines):
    host = f"Host: {server.url.removeprefix('http://')}"
    told = ["POST /v1/embeddings HTTP/1.1", host, "Content-Type: application/json"]
    return "\r\n".join([*told, *lines, "", ""]).encode()


def get(server, path="", **headers):
    return requests.get(server.url + path, headers=headers, timeout=60)


def alive(server):
    return post(server, {"input": "a dog"}).status_code == 200


@table(
    """
    encoding, dimensions
    float | 8
    base64 | 8
    None | None
    """,
)
def test_openai_client_gets_the_vectors_of_encode(
    server, encoder, encoding, dimensions
):
    texts = [*sentences(20), LONG]
    api = client(server)
    more = {"encoding_format": encoding, "dimensions": dimensions} if encoding else {}
    reply = embed(api, texts, **more)
    vectors = [entry.embedding for entry in reply.data]
    if encoding == "base64":  # which the client decodes itself only by default
        vectors = [np.frombuffer(base64.b64decode(vector), "<f4") for vector in vectors]
    assert_allclose(vectors, encoder.encode(texts, dim=dimensions), atol=1e-6)
    assert [entry.index for entry in reply.data] == [*range(len(texts))]
    tokens = encoder.tokens(texts).lengths.sum()
    assert reply.usage.prompt_tokens == reply.usage.total_tokens == tokens
    assert reply.model == "m"
    one = embed(api, extra_body={"prompt_name": "query"})
    assert_allclose(one.data[0].embedding, encoder.encode_query("a dog"), atol=1e-6)
    assert [model.id for model in api.models.list()] == ["m"]
    assert api.models.retrieve("m").id == "m"
    with raises(openai.NotFoundError, match="this server has 'm'"):
        embed(api, model="text-embedding-3-small")


@table(
    r"""
    body, status, words
    b'{"input": NaN}' | 400 | JSON is malformed
    NESTED | 400 | nested too deep
    b'{"input": "\xff"}' | 400 | utf-8
    b'{"input": "a\\uDC00 dog"}' | 400 | invalid utf-16 surrogate pair
    b'[]' | 400 | Expected `object`
    {'input': [1, 2, 3]} | 400 | token ids
    {'input': []} | 400 | input is empty
    {'input': ['a dog', ' ']} | 400 | text 1 \(from 0\) is empty
    MANY | 400 | 65 texts in one request; send at most 64
    LARGE | 413 | more than 1,048,576 bytes
    {'input': [True]} | 400 | got `bool`
    {'input': 'a', 'encoding_format': 'int8'} | 400 | encoding_format
    {'input': 'a', 'dimensions': 33} | 400 | expected 1 to 32
    {'input': 'a', 'prompt_name': 'lost'} | 400 | lost
    {'input': 'a', 'model': 'other'} | 404 | this server has 'm'
    """,
    NESTED=b'{"input": "a", "x": ' + b"[" * 200_000,
    MANY={"input": ["a"] * 65},
    LARGE={"input": ["a"] * 10**6},
)
def test_errors_of_embedding_requests(server, body, status, words):
    answer = post(server, body)
    assert answer.status_code == status
    assert re.search(words, answer.json()["error"]["message"])
    assert alive(server)


def test_bodies_are_refused_before_they_are_read(server):
    answer, _ = raw(server, head(server, "Content-Length: 1073741824"))
    assert answer.startswith(b"HTTP/1.1 413 ")
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    # 1 GiB.
    _, taken = raw(
        server, head(server, "Transfer-Encoding: chunked"), chunk, times=16_384
    )
    assert taken < 1000  # what was on its way
    assert alive(server)


@table(
    r"""
    sent
    # the beginning of TLS
    TLS
    b'GET /health HTTP/9.9\r\n\r\n'
    LONG
    b'POST /search HTTP/1.1\r\nContent-Length: -1\r\n\r\n'
    """,
    TLS=b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
    LONG=b"A" * 200_000,
)
def test_other_protocols_are_refused(server, sent):
    answer, _ = raw(server, sent)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 421 "))
    assert alive(server)


def test_other_hosts_origins_and_types_are_refused(server):
    localhost = server.url.replace("127.0.0.1", "localhost").removeprefix("http://")
    for call, path, headers, status in values(
        """
            post | /v1/embeddings | {'Host': 'evil.example'} | 421
            post | /v1/embeddings | {'Origin': 'http://evil.example'} | 403
            post | /v1/embeddings | {'content-type': 'text/plain'} | 415
            post | /v1/embeddings | LOCALHOST | 200
            get | '' | LINK | 200
            get | /v1/models | LINK | 403
            get | /health | LINK | 403
            get | /search | LINK | 403
            get | /nowhere | {} | 404
            get | /v1/embeddings | {} | 405
            """,
        get=get,
        post=partial(post, body={"input": "a dog"}),
        LINK={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        LOCALHOST={"Host": localhost},
    ):
        assert call(server, path=path, **headers).status_code == status
    assert post(server, {"text": "a"}, "/search").status_code == 404
    assert get(server, "/v1/embeddings").headers["allow"] == "POST"


def test_clients_leave_out_port_80():
    for host in ("localhost", "localhost:80"):
        told = Headers({"host": host, "origin": "http://localhost"})
        check_own_page(told, {"localhost:80"})
        with raises(RefusedError, match="another address"):
            check_own_page(told, {"localhost:8080"})


def test_a_key_is_required_except_for_health(encoder):
    with serving(encoder, key_env="KEY") as server:
        assert embed(client(server, KEY)).data
        with raises(openai.AuthenticationError, match="needs a key"):
            embed(client(server, KEY[:-1]))
        for (headers,) in values(
            """
                {}
                BARE
                {'Authorization': 'Bearer '}
                {'Authorization': 'Bearer \xff'}
                """,
            BARE={"Authorization": KEY},
        ):
            answer = post(server, {"input": "a dog"}, **headers)
            found = answer.status_code, answer.headers["www-authenticate"]
            assert found == (401, "Bearer")
        assert get(server, "/health").status_code == 200
        assert get(server, "/v1/models").status_code == 401


def test_the_address_for_other_machines(encoder):
    for host in ("0.0.0.0", "127.0.0.1"):
        with serving(encoder, host=host, key_env="KEY") as server:
            assert "//0.0.0.0" not in server.url
            assert server.page_url == f"{server.url}/#{KEY}"


def test_invalid_options_of_serve(bert):
    for options, words in values("""
            {'host': '0.0.0.0'} | other machines could use this server
            {'key_env': 'NOWHERE_SET'} | no key; set NOWHERE_SET
            {'key_env': 'KEY', 'no_key': True} | contradicts
            {'max_texts': 0} | texts
            {'max_queue': 0} | queue
            {'host': '192.0.2.1', 'no_key': True} | can't be used
            {'index': 'nowhere'} | nowhere
            {'index': 1} | index = 1
            {'index': 'nowhere', 'against': 1} | against = 1
            """):
        with config_error(words):
            serve(bert, port=0, **options)
    taken = socket.create_server(("127.0.0.1", 0))
    with taken, config_error("can't be used"):
        serve(bert, port=taken.getsockname()[1])


def test_search_in_an_index(bert, out):
    index(issues(), bert, out)
    with serve(bert, index=out, port=0) as server:
        how = {"top": 3, "where": {"state": "open"}, "before": {"number": 40}}
        hits = post(server, {"text": sentences(60)[7], **how}, "/search").json()["hits"]
        wanted = search(out, sentences(60)[7], **how)
        assert [(hit["place"], hit["text"]) for hit in hits] == [
            (hit.place, hit.text) for hit in wanted
        ]
        assert hits[0]["row"]["state"] == "open"
        for wrong, words in values(
            """
                {'text': ' '} | the text is empty
                LONG | length <= 100000
                {'text': 'a', 'top': 0} | top
                {'text': 'a', 'where': {'lost': 1}} | no such column
                {'text': 'a', 'wieght': 1} | wieght
                {'text': 'a', 'by': 'words', 'weight': 1} | no effect with by = words; leave it out
                """,
            LONG={"text": "文" * 100_001},
        ):
            answer = post(server, wrong, "/search")
            assert answer.status_code == 400
            assert words in answer.json()["error"]["message"]


def test_the_page_of_two_indexes(bert, tmp_path):
    index(issues(), bert, tmp_path / "one")
    hostile = [
        {"text": f"a dog {mark}", "url": f"{mark}:x"} for mark in ("<b>", "javascript")
    ]
    index(hostile, bert, tmp_path / "two")
    given = {"index": tmp_path / "one", "against": tmp_path / "two", "key_env": "KEY"}
    with serve(port=0, **given) as server:
        page = get(server)  # has no data, so it needs no key
        policy = page.headers["content-security-policy"]
        (script,) = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}';" in policy
        assert policy.startswith("default-src 'none'; ")
        assert not re.search(r"innerHTML|https?://|src=", page.text)
        assert get(server, Host="evil.example").status_code == 421
        assert get(server, "/search").status_code == 401
        own = {"Authorization": f"Bearer {KEY}"}
        one, two = get(server, "/search", **own).json()["indexes"]
        assert (one["texts"], one["columns"]) == (60, ["title", "body"])
        assert (two["texts"], two["columns"]) == (2, ["text"])
        for number, name in enumerate(("number", "url")):
            asked = {"text": "a dog", "top": 1, "index": number}
            (hit,) = post(server, asked, "/search", **own).json()["hits"]
            assert (hit["key_column"], hit["key"]) == (name, hit["row"][name])
    with config_error("nothing to serve"):
        serve(port=0)


@pytest.fixture
def browse():
    """A function that opens a page in a narrow window."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed"
    )
    with playwright.sync_playwright() as running:
        path = shutil.which("chromium")
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"])

        def open_page(url, faults=None):
            page = browser.new_page(viewport={"width": 390, "height": 844})
            if faults is not None:
                page.on("pageerror", lambda error: faults.append(str(error)))
                page.on("console", lambda message: faults.append(message.text))
                page.on("dialog", lambda dialog: faults.append(dialog.message))
            page.goto(url)
            return page

        yield open_page
        browser.close()


in_a_browser = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="there is no chromium"
)


@pytest.mark.slow
@in_a_browser
def test_the_page_in_a_browser(bert, out, browse):
    hostile = [
        "<img src=x onerror=alert(1)> a dog",
        "a dog\n\n</script><script>alert(2)</script>",
    ]
    rows = [{"text": text, "url": "javascript:alert(3)"} for text in hostile]
    rows.append({"text": "a red boat", "url": "https://example.org/boat"})
    index(rows, bert, out)
    faults = []
    with serve(index=out, against=out, port=0) as server:
        page = browse(server.url, faults)
        page.wait_for_selector("h2:visible")
        page.keyboard.type("a dog")
        page.wait_for_selector("summary:visible")
        assert hostile[0] in page.locator("section:visible .text").all_inner_texts()
        links = page.locator("section:visible summary a").all_inner_texts()
        assert links == ["https://example.org/boat"]
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_selector("details[open] dl")
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.id") == "box"
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.click("section:visible h2 button")
        assert page.inner_text("section:visible h2 span").endswith("3 texts")
    assert faults == []


@pytest.mark.slow
@in_a_browser
def test_the_page_asks_for_the_key_and_shows_short_columns(bert, out, browse):
    facts = {"customer": "<b>Miller</b>", "tags": ["a", "b"], "note": "long " * 20}
    index([{"text": "a red boat", **facts}], bert, out)
    with serve(index=out, key_env="KEY", port=0) as server:
        page = browse(f"{server.url}?q=boat")
        for key, shown in values(
            """
                wrong | '#trouble:visible'
                KEY | summary
                """,
            KEY=KEY,
        ):
            page.fill("#key:visible", key)
            page.keyboard.press("Enter")
            page.wait_for_selector(shown)
        shown = page.locator(".facts span").all_inner_texts()
        assert shown == ["customer <b>Miller</b>", "tags a,b"]
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.goto(server.page_url)
        page.wait_for_selector("#box:visible")
