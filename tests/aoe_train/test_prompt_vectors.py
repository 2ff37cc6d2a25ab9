"""The vectors of each prompt, beside those of sentence-transformers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer

from aoe_train.exporting.export import difference
from aoe_train.model.encoder import Encoder
from pairkit.app.errors import ConfigError, DataError
from tests.aoe_train.tiny import around

NAMED = {"query": "the man: ", "document": "a road, ", "title": "is a cat on the road"}
TEXTS = ["a cat", " {text} or {0}", "", "bread.", "the man: is not in the city " * 9, "{", "a{text}b"]
PAPERS = "the {text} in one word:"


def theirs(
    source: Path, folder: Path, *, pooling: str = "mean", include_prompt: bool = True, **model: Any
) -> SentenceTransformer:
    """A folder as sentence-transformers writes it."""
    shutil.copytree(source, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    tokenizer.save_pretrained(folder)
    home = "sentence_transformers.models"
    listed = [
        {"idx": 0, "name": "0", "path": "", "type": f"{home}.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{home}.Pooling"},
    ]
    own = {"embedding_dimension": 32, "pooling_mode": pooling, "include_prompt": include_prompt}
    (folder / "1_Pooling").mkdir()
    for name, value in {
        "modules.json": listed,
        "1_Pooling/config.json": own,
        "sentence_bert_config.json": {"max_seq_length": 32},
        "config_sentence_transformers.json": {"default_prompt_name": None, **model},
    }.items():
        (folder / name).write_text(json.dumps(value))
    return SentenceTransformer(str(folder), device="cpu")


def agree(ours: Encoder, model: SentenceTransformer, texts: list[str] = TEXTS) -> None:
    """Both give one vector a text for each name, in batches of mixed length."""
    assert ours.prompts == model.prompts
    assert ours.settings.default_prompt_name == model.default_prompt_name
    names = [{"prompt_name": name} for name in (None, *model.prompts)]
    for how in (*names, *({"prompt": prompt} for prompt in ("", "a dog. ", "is"))):
        assert difference(ours.encode(texts, **how), model.encode(texts, **how, batch_size=3)) < 1e-6
    for how in ({}, names[-1]):
        assert difference(ours.encode_query(texts, **how), model.encode_query(texts, **how)) < 1e-6
    assert difference(ours.encode_document(texts), model.encode_document(texts)) < 1e-6


@pytest.mark.parametrize(
    ("which", "pooling", "include_prompt"),
    [
        ("bert", "mean", False),
        ("llama", "cls", False),
        ("llama", "lasttoken", True),
        ("llama", "weightedmean", False),
    ],
)
def test_each_name_loaded_and_saved_and_loaded_by_them(
    which: str, pooling: str, include_prompt: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    options: dict[str, Any] = {"pooling": pooling, "include_prompt": include_prompt}
    named = {"prompts": NAMED, "default_prompt_name": "title", "similarity_fn_name": "dot"}
    model = theirs(request.getfixturevalue(which), tmp_path / "theirs", **named, **options)
    # Of an empty text some of their poolings of no token at all make infinity.
    texts = TEXTS if which == "bert" or include_prompt else [text for text in TEXTS if len(text) > 1]
    ours = Encoder.load(tmp_path / "theirs", device="cpu")
    agree(ours, model, texts)
    ours.save(tmp_path / "ours")
    again = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    agree(Encoder.load(tmp_path / "ours", device="cpu"), again, texts)
    assert (again.prompts, again.default_prompt_name) == (model.prompts, "title")
    assert again.similarity_fn_name == ours.settings.similarity_fn_name == "dot"
    assert again[1].include_prompt is include_prompt


def test_a_document_is_what_a_model_calls_passage(bert: Path, tmp_path: Path) -> None:
    model = theirs(bert, tmp_path / "m", prompts={"query": "the man: ", "passage": "a road "})
    ours = Encoder.load(tmp_path / "m", device="cpu")
    expected = model.encode(["a cat"], prompt_name="passage")  # their encode_document overlooks it
    assert difference(ours.encode_document(["a cat"]), expected) < 1e-6
    np.testing.assert_array_equal(ours.encode_document("a cat"), ours.encode_document(["a cat"])[0])


@pytest.mark.parametrize("which", ["bert", "llama"])
def test_a_prompt_around_the_text_is_the_tokenizers_for_others(
    which: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = request.getfixturevalue(which)
    encoder = Encoder.load(source, device="cpu", max_length=40, **around(PAPERS))
    encoder.save(tmp_path / "m")
    ours = Encoder.load(tmp_path / "m", device="cpu")
    model = SentenceTransformer(str(tmp_path / "m"), device="cpu")
    for name in (None, "default", "query", "document"):
        expected = encoder.encode(TEXTS, prompt_name=name)
        assert difference(ours.encode(TEXTS, prompt_name=name), expected) < 1e-6
        assert difference(model.encode(TEXTS, prompt_name=name), expected) < 1e-6
    plain = Encoder.load(source, device="cpu", max_length=40)
    np.testing.assert_array_equal(ours.encode(TEXTS, prompt=""), plain.encode(TEXTS))
    model.save(str(tmp_path / "again"))  # without our settings
    again = Encoder.load(tmp_path / "again", device="cpu")
    assert difference(again.encode(TEXTS), encoder.encode(TEXTS)) < 1e-6


def test_prompts_around_the_text_beside_others_are_run_by_our_module(bert: Path, tmp_path: Path) -> None:
    prompts = {"default": PAPERS, "title": "is a cat on the road"}
    encoder = Encoder.load(bert, device="cpu", max_length=32, prompts=prompts, default_prompt_name="default")
    encoder.save(tmp_path / "m")
    model = SentenceTransformer(str(tmp_path / "m"), device="cpu", trust_remote_code=True)
    agree(Encoder.load(tmp_path / "m", device="cpu"), model)
    assert difference(model.encode(TEXTS, prompt=PAPERS), encoder.encode(TEXTS)) < 1e-6


def test_each_chunk_of_a_text_has_the_prompt(llama: Path) -> None:
    encoder = Encoder.load(llama, device="cpu", max_length=16, long_text="chunks", **around("query: "))
    store = encoder.tokens(["x" * 40], "query: ")
    alone = encoder.tokenizer("query: ").input_ids
    ids, ends = store.ids.tolist(), store.piece_ends
    assert len(ends) - 1 == 5  # 9 of 16 tokens are the prompt's and the beginning's, 8 are left
    assert all(ids[start : start + len(alone)] == alone for start in ends[:-1])


def test_what_is_wrong_with_a_prompt_is_told(bert: Path, tmp_path: Path) -> None:
    encoder = Encoder.load(bert, device="cpu", max_length=16, prompts={"query": "the man: "})
    with pytest.raises(ConfigError, match=r"no prompt 'title'; this model has 'query', 'document'$"):
        encoder.encode("a cat", prompt_name="title")
    for prompt in ("the " * 14, "the {text}" + " man" * 13):
        with pytest.raises(ConfigError, match="max_length 16 leaves no room for text: prompt and special"):
            encoder.encode("a cat", prompt=prompt)
    with pytest.raises(ConfigError, match="once at most"):
        encoder.encode("a cat", prompt="{text} {text}")
    with pytest.warns(UserWarning, match="prompt_name 'query' is not asked for"):
        encoder.encode("a cat", prompt="the ", prompt_name="query")
    with pytest.raises(ConfigError, match=r"include_prompt is false, and the prompt .* has words after"):
        Encoder.load(bert, device="cpu", include_prompt=False).encode("a cat", prompt=PAPERS)


@pytest.mark.parametrize(
    ("more", "error", "told"),
    [
        ({"prompts": {"q": "query {text}"}}, ConfigError, "'q' holds {text}, which sentence-transformers"),
        ({"truncate_dim": 33}, ConfigError, "dim 33: this model's vectors have 32 numbers"),
        ({"default_prompt_name": "q"}, ConfigError, "no prompt 'q'; this model has 'query', 'document'"),
        ({"similarity_fn_name": "hamming"}, DataError, "similarity_fn_name = 'hamming'"),
    ],
)
def test_what_their_folder_asks_for_and_we_lack_is_refused(
    bert: Path, tmp_path: Path, more: dict[str, Any], error: type[Exception], told: str
) -> None:
    Encoder.load(bert, device="cpu").save(tmp_path / "m")
    (tmp_path / "m/aoe.json").unlink()
    (tmp_path / "m/config_sentence_transformers.json").write_text(json.dumps(more))
    with pytest.raises(error) as refused:
        Encoder.load(tmp_path / "m", device="cpu")
    assert told in str(refused.value)
