"""An endpoint with OpenAI's protocol: requests, and errors for faulty replies."""

import asyncio

import pytest

from aoe_train import evaluate
from pairkit import BadReply, ConfigError, DataError, RemoteError
from tests.aoe_train.embeddings_server import listing, serving, vector
from tests.aoe_train.shorthand import figures
from tests.aoe_train.tiny import scored
from tests.support.shorthand import config_error, data_error, raises, table


def evaluated(texts, url, model="m", **options):
    """Scores of pairs of these texts, which the server encodes."""
    how = {"cache": False, "resamples": 0, "suite": "sts", **options}
    return figures(evaluate(model, endpoint=url, data=scored(texts), **how))


def sizes(requests):
    return [len(request["input"]) for request in requests]


async def no_pause(*_):
    """Doesn't wait."""


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def server():
    with serving() as found:
        yield found


def test_vectors_in_text_order_from_several_requests(server):
    texts = [f"a{'b' * place}" for place in range(300)]
    expected = evaluated(texts, None, model=lambda texts: [*map(vector, texts)])
    assert evaluated(texts, server.url) == expected
    assert sizes(server.asked) == [128, 128, 44]
    assert {asked["model"] for asked in server.asked} == {"m"}
    evaluated(["a" * 150_000, "b" * 150_000, "c", "d"], server.url + "/embeddings")
    assert sizes(server.asked[3:]) == [1, 3]  # long texts

    async def notebook():  # within a running loop
        return evaluated(["a", "b", "cc"], server.url)

    assert asyncio.run(notebook())["n"] == 3


TEXTS = ["a", "long", "bb"]


def test_a_key_is_sent_only_to_its_host_and_never_shown(server, monkeypatch):
    monkeypatch.setenv("MINE", "sk-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-of-openai")
    evaluated(TEXTS, server.url)
    error = {"error": {"message": "what is sk-secret doing here"}}
    server.answer = lambda *_: (400, error)
    with raises(DataError) as caught:
        evaluated(TEXTS, server.url, api_key_env="MINE")
    assert server.keys == [None, "Bearer sk-secret"]
    assert "sk-secret" not in str(caught.value)
    with config_error("plain http"):
        evaluated(TEXTS, "http://host.example/v1", api_key_env="MINE")


def test_vectors_are_cached_by_model_and_address(server, monkeypatch, tmp_path):
    monkeypatch.setenv("AOE_CACHE", str(tmp_path))
    for _ in range(2):
        evaluated(TEXTS, server.url, cache=True)
    evaluated(TEXTS, server.url + "/", cache=True)
    # A text that identifies the model.
    assert sizes(server.asked) == [1, 3, 1, 1]
    with serving() as other:
        evaluated(TEXTS, other.url, cache=True)
        assert sizes(other.asked) == [1, 3]


def test_temporary_failures_are_retried(server, monkeypatch):
    monkeypatch.setattr("asyncio.sleep", no_pause)
    server.answer = lambda texts, n: (503, {}) if n < 2 else (200, listing(texts))
    assert evaluated(TEXTS, server.url)["n"] == 3
    assert len(server.asked) == 3
    server.answer = lambda texts, n: (200, listing(texts, dim=n))
    with raises(BadReply, match="vectors of 4 dimensions, after vectors of 3"):
        evaluated([f"text {number}" for number in range(200)], server.url)
    with raises(RemoteError, match=r"m at http://127\.0\.0\.1:9/v1: can't be reached"):
        evaluated(TEXTS, "http://127.0.0.1:9/v1")


@table(
    """
    status, answer, error, words
    401 | {'error': {'message': 'bad key'}} | AuthError | refused a request without a key (HTTP 401)
    400 | {'error': {'message': 'Incorrect API key'}} | AuthError | (HTTP 400: Incorrect API key)
    404 | {'error': {'message': 'no m'}} | ConfigError | no such model or address (HTTP 404: no m)
    429 | {'error': {'message': 'slow down'}} | RateLimited | rate limit (HTTP 429: slow down)
    429 | {'error': {'code': 'insufficient_quota', 'message': 'pay'}} | RemoteError | HTTP 429: pay
    400 | {'error': {'message': '8192 tokens at most'}} | DataError | the longest has 4 characters
    500 | {'error': {'message': 'oops'}} | RemoteError | HTTP 500: oops
    200 | {'data': [{'index': 0, 'embedding': [1.0]}]} | BadReply | isn't a list of 2 vectors
    200 | NESTED | BadReply | isn't a list of 2 vectors
    200 | {'data': [{'index': 0, 'embedding': [1e300]}, {'index': 1, 'embedding': [1e300]}]} | BadReply | infinite, NaN
    200 | THREE | BadReply | returned 3 vectors for 2 texts
    200 | {'data': [{'index': 0, 'embedding': [1.0]}, {'index': 1, 'embedding': [1.0, 1.0]}]} | BadReply | equal length
    """,
    NESTED=b'{"data": ' + b"[" * 200_000,
    THREE=listing(["a", "b", "c"]),
)
def test_errors_for_bad_replies(server, monkeypatch, status, answer, error, words):
    monkeypatch.setattr("asyncio.sleep", no_pause)
    server.answer = lambda *_: (status, answer)
    with raises(error) as caught:
        evaluated(["a", "long"], server.url)
    assert type(caught.value) is error
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@table(
    r"""
    text, words
    '' | is empty
    ' \n' | is empty
    '\ud800' | surrogate
    """,
)
def test_texts_that_are_refused(server, text, words):
    class Task:
        name, texts, measure = "mine", ["a", text], print

    with data_error(words):
        evaluate("m", endpoint=server.url, tasks=[Task()], cache=False)
    assert not server.asked


@table(
    """
    url, words
    http://me:pw@host/v1 | holds a user or password
    https://api.openai.com/v1 | no key; set OPENAI_API_KEY
    """,
)
def test_addresses_that_are_refused(url, words):
    with raises(ConfigError) as caught:
        evaluated(TEXTS, url)
    assert words in str(caught.value)
    assert "pw" not in str(caught.value)
