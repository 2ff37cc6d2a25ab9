"""Arrays of tokens: read where their encoding was named, and LangChain's and LlamaIndex's own clients."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import aoe_train
from aoe_train import EmbeddingServer, Encoder
from pairkit.errors import ConfigError
from tests.aoe_train.test_serve import client, post

tiktoken = pytest.importorskip("tiktoken")
CLIENTS = os.environ.get("AOE_CLIENTS_PYTHON")
LETTERS = """
import tiktoken
letters = tiktoken.Encoding(
    "letters", pat_str=r"(?s).", mergeable_ranks={bytes([n]): n for n in range(256)}, special_tokens={}
)
"""
TEXTS = ["a dog is running", "\u00fcber das Meer"]


@pytest.fixture
def encoding(monkeypatch: pytest.MonkeyPatch) -> str:
    """An encoding without a file: a token for each byte."""
    names: dict = {}
    exec(LETTERS, names)
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "letters", names["letters"])
    return "letters"


@pytest.fixture
def server(bert: Path, encoding: str) -> Iterator[EmbeddingServer]:
    with aoe_train.serve(bert, port=0, name="m", token_encoding=encoding, progress=False) as running:
        yield running


def numbers(text: str) -> list[int]:
    return list(text.encode())


def test_arrays_of_tokens_have_the_vectors_of_their_texts(server: EmbeddingServer, bert: Path):
    wanted = Encoder.load(bert).encode(TEXTS)
    for given, expected in (
        (numbers(TEXTS[1]), wanted[1:]),
        ([numbers(text) for text in TEXTS], wanted),
        ([TEXTS[0], numbers(TEXTS[1])], wanted),
    ):
        reply = client(server).embeddings.create(input=given, model="m")  # type: ignore[arg-type]
        found = np.array([one.embedding for one in reply.data])
        assert np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1, 256], "no token of letters"),
        ([[-1]], "no token of letters"),
        ([[2**70]], "integer|no token"),
        ([32] * 9000, "9,000 tokens in an array"),
        ([[32] * 8000] * 40, "320,000 in all"),
        ([[]], r"text 0 \(from 0\) is empty"),
        ([[32, 32]], r"text 0 \(from 0\) is empty"),
    ],
)
def test_arrays_that_can_not_be_read_are_refused(server: EmbeddingServer, given: list, words: str):
    answer = post(server, {"input": given})
    assert answer.status_code == 400
    assert re.search(words, answer.json()["error"]["message"])


def test_an_encoding_that_is_not_there_is_one_line(
    bert: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    with pytest.raises(ConfigError, match="--token-encoding klingon: no encoding of tiktoken's, which are"):
        aoe_train.serve(bert, port=0, token_encoding="klingon", progress=False)

    def unreachable(name: str) -> None:
        raise ConnectionError(f"no network for {name}")

    monkeypatch.setattr(tiktoken, "get_encoding", unreachable)
    with pytest.raises(ConfigError, match=r"could not be fetched .*TIKTOKEN_CACHE_DIR"):
        aoe_train.serve(bert, port=0, token_encoding="cl100k_base", progress=False)


ASKING = """
import sys
tiktoken.registry.ENCODINGS["cl100k_base"] = letters  # its own file is on the network
from langchain_openai import OpenAIEmbeddings
from llama_index.embeddings.openai import OpenAIEmbedding
url, plain, texts = sys.argv[1], sys.argv[2] == "plain", sys.argv[3:]
given = {"model": "m", "api_key": "any", "base_url": url + "/v1"}
try:
    chain = OpenAIEmbeddings(**given, check_embedding_ctx_length=not plain).embed_documents(texts)
except Exception as error:
    chain = str(error)
llama = OpenAIEmbedding(model_name="m", api_key="any", api_base=url + "/v1").get_text_embedding_batch(texts)
import json
print(json.dumps({"chain": chain, "llama": llama}))
"""


@pytest.mark.skipif(CLIENTS is None, reason="AOE_CLIENTS_PYTHON names no Python that has these clients")
@pytest.mark.parametrize(("named", "way"), [(True, "tokens"), (False, "tokens"), (False, "plain")])
def test_langchain_and_llama_index_get_the_vectors(bert: Path, encoding: str, named: bool, way: str):
    """LangChain by default sends tokens: it works where the server knows whose, or where it sends texts."""
    wanted = Encoder.load(bert).encode(TEXTS)
    with aoe_train.serve(
        bert, port=0, name="m", token_encoding=encoding if named else None, progress=False
    ) as running:
        told = subprocess.run(
            [str(CLIENTS), "-c", LETTERS + ASKING, running.url, way, *TEXTS],
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )
    found = json.loads(told.stdout)
    assert np.abs(np.array(found["llama"]) - wanted).max() < 1e-5
    if named or way == "plain":
        # LangChain scales what it puts together of tokens to length 1.
        unit = wanted / np.linalg.norm(wanted, axis=1, keepdims=True)
        lengths = np.linalg.norm(found["chain"], axis=1, keepdims=True)
        assert np.abs(np.array(found["chain"]) / lengths - unit).max() < 1e-5
    else:
        assert "check_embedding_ctx_length=False" in found["chain"]
