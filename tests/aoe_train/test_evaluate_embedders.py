"""Models that are evaluated: functions, sizes of vectors, the cache of vectors, and servers with OpenAI's protocol."""

import asyncio

import numpy as np
import pytest
from numpy.random import default_rng

from aoe_train import evaluate
from pairkit import BadReply, ConfigError, DataError, RemoteError
from tests.aoe_train.embeddings_server import listing, serving, vector
from tests.aoe_train.shorthand import figures, stderr
from tests.aoe_train.tiny import Recorded, scored, unit
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    parametrize,
    raises,
    table,
    values,
)

TEXTS = ["a man is playing a flute", "the dog is eating", "a red boat", "a cat"]
FEW = {"resamples": 0, "suite": "sts"}


class Counting(Recorded):
    """A deterministic model that records its calls."""

    def __init__(self, bert, turn=0.0, **settings):
        super().__init__(bert, **settings)
        self.turn = turn

    def identity(self):
        return {"name": "counting"}

    def encode(self, texts, prompt=None, **_):
        self.record(texts)
        said = [f"{prompt or ''}{text}" for text in texts]
        return np.float32(
            [[1 / (1 + len(text)), text.count("a") + self.turn] for text in said]
        )


def evaluated(model, texts=TEXTS, **options):
    """The scores of pairs of the first text and each one."""
    return figures(evaluate(model, data=scored(texts), **FEW, **options))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_each_text_is_encoded_once_and_restored_exactly(bert):
    first, again = Counting(bert), Counting(bert)
    made = evaluated(first, [*TEXTS, TEXTS[1]])
    assert made == evaluated(Counting(bert), [*TEXTS, TEXTS[1]], cache=False)
    assert sorted(first.calls[1]) == sorted(TEXTS)
    assert evaluated(again, [*TEXTS, TEXTS[1]]) == made
    # One text, which shows that the model is the same.
    assert again.calls == first.calls[:1]
    evaluated(again, [*TEXTS, "new"])
    assert again.calls[1:] == [*first.calls[:1], ["new"]]


def test_a_killed_run_resumes_and_long_texts_have_smaller_batches(bert):
    texts = [f"text {number} {'a' * (number % 50)}" for number in range(5000)]
    with raises(KeyboardInterrupt):
        evaluated(Counting(bert, stop_before=3), texts)
    rest = Counting(bert)
    assert evaluated(rest, texts) == evaluated(Counting(bert), texts, cache=False)
    assert [len(call) for call in rest.calls] == [1, 5000 - 2 * 2048]
    counting = Counting(bert)
    evaluated(counting, ["a" * 500_000, "b" * 250_000, "c" * 150_000, "d"], cache=False)
    assert [len(call) for call in counting.calls] == [1, 2, 1]


class Longer(Counting):
    """Its vectors have twice as many dimensions."""

    def encode(self, texts, **options):
        return np.hstack([super().encode(texts, **options)] * 2)


@parametrize("kind", [Counting, Longer])
def test_vectors_of_a_changed_model_are_deleted(bert, capsys, kind):
    evaluated(Counting(bert))
    other = kind(bert, turn=-5.0)
    expected = evaluated(Counting(bert, turn=-5.0), TEXTS[:3], cache=False)
    assert evaluated(other, TEXTS[:3], progress=True) == expected
    told = "the model has changed, so its cached vectors are deleted"
    assert told in stderr(capsys)
    assert other.calls[1:] == [sorted(TEXTS[:3], key=len, reverse=True)]
    evaluated(other)
    assert other.calls[-1] == TEXTS[3:]


def test_only_finite_vectors_are_cached(bert):
    with data_error("vectors of 4 of 4 texts contain NaN or infinity"):
        evaluated(broken := Counting(bert, turn=float("nan")))
    broken.turn = 0.0
    evaluated(broken)
    assert len(broken.calls[-1]) == 4


def test_vectors_are_cached_per_prompt(bert):
    prompts = {"query": "q: ", "a": "a"}
    model = Counting(bert, prompts=prompts)
    asked = [{}, *({"prompt": prompt} for prompt in ("", "a"))]
    asked += [{"prompt_name": name} for name in ("query", "a")]
    found = [evaluated(model, **options) for options in asked]
    assert found[0] == found[1]
    assert found[2] == found[4]  # the same prompt, which is found again
    assert [len(call) for call in model.calls] == [1, 4, 1, 4, 1, 4, 1, 4, 1]
    again = Counting(bert, prompts=prompts)
    assert [evaluated(again, **options) for options in asked] == found
    assert {len(call) for call in again.calls} == {1}


def test_errors_of_the_cache(bert, cache, tmp_path, monkeypatch):
    evaluated(Counting(bert))
    (path,) = cache.rglob("*.sqlite")
    damaged = tmp_path / "damaged" / path.relative_to(cache)
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"not a database" * 100)
    for folder, error in ((tmp_path / "damaged", DataError), (damaged, ConfigError)):
        monkeypatch.setenv("AOE_CACHE", str(folder))
        with raises(error, match=r"the cache of vectors is unusable .*cache=False"):
            evaluated(Counting(bert))


def test_all_sizes_of_a_model_encode_its_texts_once(bert):
    class Wide(Counting):
        """Vectors of length 1 in five dimensions."""

        def encode(self, texts, **_):
            self.record(texts)
            drawn = [default_rng([*text.encode()]).normal(size=5) for text in texts]
            return unit(np.array(drawn)).astype(np.float32)

    model = Wide(bert)
    how = {"layers": [], "dim": [5, 3], "quantize": "float32,int8,ubinary"}
    told = evaluate(model, data=scored(TEXTS), cache=False, **how, **FEW).to_dict()[
        "sizes"
    ]
    sizes = [(one["dim"], one["bytes"]) for one in told]
    assert sizes == values("""
        5 | 20
        5 | 5
        5 | 1
        3 | 12
        3 | 3
        3 | 1
    """)
    assert [len(call) for call in model.calls] == [4]
    exact, rounded, bits, short, *_ = (
        one["tasks"]["the list given"]["pearson"] for one in told
    )
    vectors = Wide(bert).encode(TEXTS)

    def correlation(vectors):
        return np.corrcoef(vectors @ vectors[0], range(4))[0, 1]

    assert exact == approx(correlation(vectors), abs=1e-6)
    assert rounded == approx(exact, abs=0.01)
    assert bits == approx(correlation(np.sign(vectors)), abs=1e-6)
    assert short == approx(correlation(unit(vectors[:, :3])), abs=1e-6)


def test_functions(cache):
    def embed(texts):
        return [[1.0, len(text)] for text in texts]

    assert evaluated(embed, ["a", "four", "far too long"])["spearman"] == approx(-1)
    assert not list(cache.rglob("*.sqlite"))  # nothing identifies a function
    with config_error("no prompt 'missing'"):
        evaluated(embed, prompt_name="missing")
    with config_error("several are named <lambda>; give each its own name"):
        evaluated([lambda texts: embed(texts), lambda texts: embed(texts)])
    for rows in [[[1.0]], [[np.nan]] * 3, [[1.0], [1.0, 2.0], [1.0]]]:
        with data_error(r"^<lambda>: "):
            evaluated(lambda texts, rows=rows: rows, TEXTS[:3])


def evaluated_by(url, texts=("a", "long", "bb"), model="m", **options):
    """Scores of pairs of these texts, which the server encodes."""
    how = {"cache": False, "resamples": 0, "suite": "sts", **options}
    return figures(evaluate(model, endpoint=url, data=scored(texts), **how))


def sizes_of(requests):
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
    expected = evaluated_by(None, texts, lambda texts: [*map(vector, texts)])
    assert evaluated_by(server.url, texts) == expected
    assert sizes_of(server.asked) == [128, 128, 44]
    assert {asked["model"] for asked in server.asked} == {"m"}
    evaluated_by(server.url + "/embeddings", ["a" * 150_000, "b" * 150_000, "c", "d"])
    assert sizes_of(server.asked[3:]) == [1, 3]  # long texts

    async def notebook():  # within a running loop
        return evaluated_by(server.url)

    assert asyncio.run(notebook())["n"] == 3


def test_a_key_is_sent_only_to_its_host_and_never_shown(server, monkeypatch):
    monkeypatch.setenv("MINE", "sk-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-of-openai")
    evaluated_by(server.url)
    error = {"error": {"message": "what is sk-secret doing here"}}
    server.answer = lambda *_: (400, error)
    with raises(DataError) as caught:
        evaluated_by(server.url, api_key_env="MINE")
    assert server.keys == [None, "Bearer sk-secret"]
    assert "sk-secret" not in str(caught.value)
    with config_error("plain http"):
        evaluated_by("http://host.example/v1", api_key_env="MINE")


def test_vectors_are_cached_by_model_and_address(server, monkeypatch, tmp_path):
    monkeypatch.setenv("AOE_CACHE", str(tmp_path))
    for _ in range(2):
        evaluated_by(server.url, cache=True)
    evaluated_by(server.url + "/", cache=True)
    # A text that identifies the model.
    assert sizes_of(server.asked) == [1, 3, 1, 1]
    with serving() as other:
        evaluated_by(other.url, cache=True)
        assert sizes_of(other.asked) == [1, 3]


def test_temporary_failures_are_retried(server, monkeypatch):
    monkeypatch.setattr("asyncio.sleep", no_pause)
    server.answer = lambda texts, n: (503, {}) if n < 2 else (200, listing(texts))
    assert evaluated_by(server.url)["n"] == 3
    assert len(server.asked) == 3
    server.answer = lambda texts, n: (200, listing(texts, dim=n))
    with raises(BadReply, match="vectors of 4 dimensions, after vectors of 3"):
        evaluated_by(server.url, [f"text {number}" for number in range(200)])
    with raises(RemoteError, match=r"m at http://127\.0\.0\.1:9/v1: can't be reached"):
        evaluated_by("http://127.0.0.1:9/v1")


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
        evaluated_by(server.url, ["a", "long"])
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
        evaluated_by(url)
    assert words in str(caught.value)
    assert "pw" not in str(caught.value)
