"""Embedders: local models, functions, prompts, quantization and the cache."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aoe_train
from aoe_train import Encoder
from aoe_train.evaluation.embedders import cached, embedder
from aoe_train.evaluation.embedders.cached import CachedEmbedder, VectorStore
from aoe_train.evaluation.embedders.embedder import (
    FunctionEmbedder,
    LocalEmbedder,
    MemoizedEmbedder,
    PromptedEmbedder,
    QuantizedEmbedder,
    find_separator,
)
from aoe_train.settings.prompt_settings import NamedPrompts
from aoe_train.settings.train_settings import Similarity
from pairkit import ConfigError, DataError
from tests.aoe_train.tiny import bytelevel, wordpiece

TEXTS = ["a man is playing a flute", "the dog is eating", "a red boat", "a man is playing a flute"]


class Counting:
    """A deterministic model that records its calls."""

    name, identity, separator = "counting", "0" * 64, " | "
    prompts = NamedPrompts({"query": "q: "})
    similarity: Similarity = "cosine"

    def __init__(self, turn: float = 0.0, fails_after: int | None = None) -> None:
        self.turn, self.fails_after = turn, fails_after
        self.calls: list[list[str]] = []

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        if self.fails_after is not None and len(self.calls) == self.fails_after:
            raise KeyboardInterrupt
        self.calls.append(texts)
        said = [f"{prompt or ''}{text}" for text in texts]
        return np.array([[1 / (1 + len(text)), text.count("a") + self.turn] for text in said], np.float32)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def store(folder: Path) -> VectorStore:
    return VectorStore(folder, Counting.identity)


def test_local_embedder(bert: Path, monkeypatch):
    encoder = Encoder.load(bert, device="cpu")
    local = LocalEmbedder(encoder, str(bert))
    assert local.encode(TEXTS).tobytes() == encoder.encode(TEXTS).tobytes()
    assert (local.name, local.separator) == ("bert", " [SEP] ")
    before = local.identity
    monkeypatch.setattr(embedder, "versions", lambda: {"torch": "0"})
    assert LocalEmbedder(encoder, str(bert)).identity != before
    without = bytelevel()
    without.eos_token = None
    found = [find_separator(tokenizer) for tokenizer in (wordpiece(), bytelevel(), without)]
    assert found == [" [SEP] ", " </s> ", "\n"]


def test_each_text_is_encoded_once_and_restored_exactly(tmp_path: Path):
    first, again = Counting(), Counting()
    made = CachedEmbedder(first, store(tmp_path), progress=False).encode(TEXTS)
    assert made.dtype == np.float32
    assert made.tobytes() == Counting().encode(TEXTS).tobytes()
    assert sorted(first.calls[1]) == sorted(set(TEXTS))
    kept = CachedEmbedder(again, store(tmp_path), progress=False).encode([*TEXTS, "new"])
    assert kept[:-1].tobytes() == made.tobytes()
    # one fixed text is asked about first, to see that the model is the same
    assert again.calls == [[cached.PROBE], ["new"]]
    assert first.calls[0] == again.calls[0]


def test_a_killed_run_resumes_and_long_texts_have_smaller_batches(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(cached, "_TEXTS", 3)
    texts = [f"text {'a' * place}" for place in range(10)]
    with pytest.raises(KeyboardInterrupt):
        CachedEmbedder(Counting(fails_after=3), store(tmp_path), progress=False).encode(texts)
    rest = Counting()
    found = CachedEmbedder(rest, store(tmp_path), progress=False).encode(texts)
    assert found.tobytes() == Counting().encode(texts).tobytes()
    assert sum(map(len, rest.calls)) == 1 + 4
    monkeypatch.setattr(cached, "_CHARACTERS", 10)
    counting = Counting()
    CachedEmbedder(counting, None, progress=False).encode(["a" * 30, "b" * 6, "c" * 4, "d"])
    assert counting.calls == [["a" * 30], ["b" * 6, "c" * 4], ["d"]]


class Longer(Counting):
    """Its vectors have twice as many dimensions."""

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        return np.hstack([super().encode(texts)] * 2)


@pytest.mark.parametrize("other", [Counting(turn=-5.0), Longer()], ids=["turned", "longer"])
def test_vectors_of_a_changed_model_are_deleted(tmp_path: Path, other: Counting):
    CachedEmbedder(Counting(), store(tmp_path), progress=False).encode(TEXTS)
    found = CachedEmbedder(other, store(tmp_path), progress=False).encode(TEXTS[:2])
    assert found.tobytes() == other.encode(TEXTS[:2]).tobytes()
    assert not store(tmp_path).find(TEXTS[2:3])


def test_a_store_accepts_only_finite_vectors_of_one_length(tmp_path: Path):
    kept, texts = store(tmp_path), [f"{place}" for place in range(1201)] + ["\ud800 half"]
    vectors = np.arange(2 * len(texts), dtype=np.float32).reshape(-1, 2)
    vectors[1000, 1] = np.nan
    kept.keep(texts, vectors)
    found = store(tmp_path).find(texts)
    assert {*texts} - {*found} == {"1000"}
    numbers = [text for text in texts if text != "1000"]
    assert np.stack([found[text] for text in numbers]).tobytes() == np.delete(vectors, 1000, 0).tobytes()
    counting = Counting()
    wrapped = CachedEmbedder(counting, store(tmp_path / "other"), progress=False)
    wrapped.encode(TEXTS)
    counting.encode = Longer().encode  # type: ignore[method-assign]
    with pytest.raises(DataError, match=r"vectors of shape \(1, 4\) for 1 texts; expected 2 dim"):
        wrapped.encode(["new"])
    assert not store(tmp_path / "other").find(["new"])


def test_errors_of_the_cache(tmp_path: Path):
    ours, other = store(tmp_path), sqlite3.connect(tmp_path / f"{Counting.identity}.sqlite")
    ours._connection.execute("PRAGMA busy_timeout = 0")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(ConfigError, match="another process writes to it; wait") as caught:
        ours.keep(["a"], np.ones((1, 2), np.float32))
    assert "delete" not in str(caught.value)
    other.rollback()
    other.close()
    ours.keep(["a"], np.ones((1, 2), np.float32))
    damaged = tmp_path / "damaged" / f"{Counting.identity}.sqlite"
    damaged.parent.mkdir()
    damaged.write_bytes(b"not a database" * 100)
    for folder, error in ((damaged.parent, DataError), (damaged / "below", ConfigError)):
        with pytest.raises(error, match=r"the cache of vectors is unusable .*cache=False"):
            store(folder)


def test_vectors_are_cached_per_prompt(cache: Path):
    counting = Counting()
    embedder = CachedEmbedder(counting, store(cache), progress=False)
    asked = {prompt: embedder.encode(["aa", "b"], prompt) for prompt in (None, "", "a", "aa")}
    assert len({found.tobytes() for found in asked.values()}) == 3  # none and an empty one are alike
    made = len(counting.calls)
    again = CachedEmbedder(counting, store(cache), progress=False)
    for prompt, found in asked.items():
        assert again.encode(["aa", "b"], prompt).tobytes() == found.tobytes()
    assert [len(texts) for texts in counting.calls[made:]] == [1]  # the text by which it is known again
    assert again.encode(["a"], "aa").tobytes() == again.encode(["aa"], "a").tobytes()
    assert len(counting.calls) == made + 2  # of which one was kept


class Fixed(Counting):
    """A model with fixed vectors."""

    def __init__(self, vectors: list[list[float]]) -> None:
        super().__init__()
        self.vectors = np.array(vectors, np.float32)

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        self.calls.append(texts)
        return self.vectors[: len(texts)]


def test_quantized_embedder_by_hand():
    model = Fixed([[3, -4, 12], [0, 8, -1]])
    assert QuantizedEmbedder(model, 2, "float32").encode(["a", "b"]).tolist() == [[3, -4], [0, 8]]
    assert QuantizedEmbedder(model, 2, "binary").encode(["a", "b"]).tolist() == [[1, -1], [-1, 1]]
    found = QuantizedEmbedder(model, 2, "int8")
    step = np.array([3, 12]) / 255
    expected = [[3 + step[0] / 2, -4 + step[1] / 2], [step[0] / 2, 8 + step[1] / 2]]
    assert found.encode(["a", "b"]) == pytest.approx(np.array(expected), abs=1e-5)
    assert (found.size().dim, found.size().bytes) == (2, 2)
    with pytest.raises(ConfigError, match="dim 4: this model's vectors have 3 dimensions"):
        QuantizedEmbedder(model, 4, "float32").encode(["a"])
    unit = Fixed([[0.6, 0.0, 0.8], [0.0, 0.6, 0.8]])  # vectors of length one have it again when they are cut
    assert QuantizedEmbedder(unit, 2, "float32").encode(["a", "b"]).tolist() == [[1, 0], [0, 1]]
    assert unit.vectors[0].tolist() == pytest.approx([0.6, 0, 0.8])  # they are cut, not changed


def test_all_sizes_of_a_model_encode_its_texts_once():
    model = Fixed([[3, -4, 12], [0, 8, -1]])
    once = MemoizedEmbedder(model, "shown")
    sizes = [QuantizedEmbedder(once, dim, how) for dim in (3, 2) for how in ("float32", "int8", "ubinary")]
    for size in sizes:
        size.encode(["a", "b"])
    assert [size.size().bytes for size in sizes] == [12, 3, 1, 8, 2, 1]
    assert sizes[0].name == "shown"
    once.encode(["a"])
    assert model.calls == [["a", "b"], ["a"]]


def test_prompted_embedder():
    named = PromptedEmbedder(Counting(), prompt=None, prompt_name="query")
    assert named.encode(["aa"]).tobytes() == Counting().encode(["aa"], "q: ").tobytes()
    assert named.encode(["aa"], "").tobytes() == Counting().encode(["aa"]).tobytes()
    with pytest.raises(ConfigError, match="no prompt 'x'; this model has 'query', 'document'"):
        PromptedEmbedder(Counting(), prompt=None, prompt_name="x")
    with pytest.raises(ConfigError, match="give only one of them"):
        PromptedEmbedder(Counting(), prompt="a", prompt_name="query")


def test_function_embedder(tmp_path: Path, cache: Path):
    def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0, len(text)] for text in texts]

    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("text1\ttext2\tscore\na\tb\t5\na\tfour\t3\na\tfar too long\t0\n")
    found = aoe_train.evaluate(embed, data=pairs, resamples=0, progress=False)
    (scores,) = found.to_dict().values()
    assert scores["spearman"] == pytest.approx(1)
    assert not list(cache.rglob("*.sqlite"))
    assert FunctionEmbedder(embed).encode(["ab"], "query: ").tolist() == [[1, 9]]
    wrong: list[Any] = [[[1.0]], [[np.nan]] * 3, [[1.0], [1.0, 2.0], [1.0]]]
    for rows in wrong:
        with pytest.raises(DataError, match=r"^<lambda>: "):
            FunctionEmbedder(lambda texts, rows=rows: rows).encode(["a", "b", "c"])
