from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

from aoe_train.exporting.export import difference, probes, verify
from aoe_train.model.encoder import Encoder
from aoe_train.model.interchange import needs_toolkit, read_sentence_transformers, write_sentence_transformers
from aoe_train.model.tokens.special_tokens import generic_tokenizer
from aoe_train.settings.training import EncoderSettings
from pairkit.app.errors import ConfigError, DataError
from tests.aoe_train.tiny import around

POOLINGS = ["cls", "avg", "max", "last", "cls-avg", "first-last-avg", "weighted-mean"]
PROMPT = "the {text} in one word:"


def agrees(folder: Path, encoder: Encoder, **options: Any) -> None:
    """sentence-transformers gives our vectors, in batches of mixed length, whatever the order."""
    texts = [*probes(encoder.settings.max_length or 1), "bread", "a large blue car is on the road . " * 3]
    expected = encoder.encode(texts)
    found = SentenceTransformer(str(folder), device="cpu", **options).encode(texts, batch_size=3)
    assert difference(found, expected) < 1e-5
    assert abs(np.linalg.norm(found, axis=1) - 1).max() < 1e-5 or not encoder.settings.normalize


@pytest.mark.parametrize(
    ("backbone", "pooling"),
    [("bert", pooling) for pooling in POOLINGS] + [("llama", "last"), ("llama", "cls-avg")],
)
def test_every_pooling(request: pytest.FixtureRequest, tmp_path: Path, backbone: str, pooling: str) -> None:
    llama = {"bidirectional": True, **around(PROMPT)}
    more = llama if backbone == "llama" else {"normalize": pooling == "avg"}
    encoder = Encoder.load(
        request.getfixturevalue(backbone), device="cpu", pooling=pooling, max_length=48, **more
    )
    encoder.save(tmp_path / "m")
    agrees(tmp_path / "m", encoder)
    if backbone == "llama":  # a long text loses its own end, not the prompt's
        theirs = SentenceTransformer(str(tmp_path / "m"), device="cpu")
        ids = theirs.preprocess(["x" * 500])["input_ids"][0]
        assert len(ids) == 48
        assert theirs.tokenizer.decode(ids).endswith(" in one word:")


def test_long_texts_by_our_own_module_also_after_their_save(bert: Path, tmp_path: Path) -> None:
    how: dict[str, Any] = {"max_length": 16, "long_text": "chunks", "normalize": True}
    encoder = Encoder.load(bert, device="cpu", pooling="avg", **how)
    encoder.save(tmp_path / "m")
    assert "chunks" in str(needs_toolkit(tmp_path / "m", encoder.settings))
    agrees(tmp_path / "m", encoder, trust_remote_code=True)
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(tmp_path / "m"), device="cpu")
    theirs = SentenceTransformer(str(tmp_path / "m"), device="cpu", trust_remote_code=True)
    theirs.save(str(tmp_path / "theirs"))
    agrees(tmp_path / "theirs", encoder, trust_remote_code=True)


@pytest.mark.parametrize("pooling", ["cells", "avg"])
def test_recurrent_attention_by_our_own_module(bert: Path, tmp_path: Path, pooling: str) -> None:
    from transformers import AutoTokenizer

    from aoe_train.model.ran import RanConfig, RanModel

    tokenizer = AutoTokenizer.from_pretrained(bert)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8}
    config = RanConfig(vocab_size=len(tokenizer), window_size=8, min_window_size=2, **shape)
    settings = EncoderSettings(pooling=pooling, max_length=200, normalize=True)  # type: ignore[arg-type]
    encoder = Encoder.build(RanModel(config).eval(), tokenizer, settings)
    encoder.save(tmp_path / "m")
    assert "Recurrent" in str(needs_toolkit(tmp_path / "m", encoder.settings))
    agrees(tmp_path / "m", encoder, trust_remote_code=True)


def test_only_what_is_needed_is_asked_of_the_reader(bert: Path, llama: Path, tmp_path: Path) -> None:
    def requirements(folder: Path, **settings: Any) -> set[str]:
        Encoder.load(folder, device="cpu", **settings).save(tmp_path / "m")
        return set(json.loads((tmp_path / "m/config_sentence_transformers.json").read_text())["requirements"])

    assert requirements(bert) == set()
    assert requirements(bert, long_text="chunks") == {"aoe-toolkit"}
    assert requirements(llama, bidirectional=True) == {"transformers"}
    with pytest.raises(ConfigError, match="'auto' can't be exported; known are cls"):
        write_sentence_transformers(tmp_path, EncoderSettings(), 32)


@pytest.mark.parametrize("mode", ["cls", "mean", "max", "lasttoken", "weightedmean"])
def test_reads_what_they_write_today(bert: Path, tmp_path: Path, mode: str) -> None:
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    modules = [Transformer(str(bert), max_seq_length=24), Pooling(32, pooling_mode=mode)]  # type: ignore[arg-type]
    theirs = SentenceTransformer(
        modules=modules, device="cpu", prompts={"q": "the car: "}, default_prompt_name="q"
    )
    theirs.save(str(tmp_path / "m"))
    ours = Encoder.load(tmp_path / "m", device="cpu")
    assert ours.settings.prompts["q"] == "the car: "
    assert ours.settings.default_prompt_name == "q"
    texts = ["a cat is playing", "error when opening", "bread " * 50]
    assert difference(ours.encode(texts), theirs.encode(texts)) < 1e-5


def modules(folder: Path, *kinds: str, pooling: dict[str, Any] | None = None, **bert: Any) -> Path:
    listed = [
        {
            "idx": i,
            "name": f"{i}",
            "path": f"{i}" if i else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for i, kind in enumerate(kinds)
    ]
    (folder / "1").mkdir()
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1/config.json").write_text(json.dumps(pooling or {"pooling_mode_cls_token": True}))
    (folder / "sentence_bert_config.json").write_text(json.dumps(bert))
    return folder


@pytest.mark.parametrize(
    ("kinds", "pooling", "named"),
    [
        (["Transformer", "Pooling", "LayerNorm"], {}, "models.LayerNorm"),
        (["Transformer", "Pooling", "Normalize", "Dense"], {}, "Normalize, Dense"),
        (["StaticEmbedding", "Pooling"], {}, "StaticEmbedding, Pooling"),
        (["Transformer"], {}, "are Transformer;"),
        (["Transformer", "Normalize"], {}, "Transformer, Normalize"),
        (
            ["Transformer", "Pooling"],
            {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
            "cls_token.*mean_tokens",
        ),
        (["Transformer", "Pooling"], {"pooling_mode_mean_sqrt_len_tokens": True}, "mean_sqrt_len_tokens"),
        (["Transformer", "Pooling"], {"pooling_mode": "median"}, "median"),
    ],
)
def test_modules_and_poolings_that_we_lack_are_refused_by_name(
    tmp_path: Path, kinds: list[str], pooling: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        read_sentence_transformers(modules(tmp_path, *kinds, pooling=pooling))
    (tmp_path / "modules.json").write_text("[")
    with pytest.raises(DataError, match=r"modules\.json"):
        read_sentence_transformers(tmp_path)


@settings(max_examples=20)
@given(st.floats(-3, 3), st.floats(0.01, 100))
def test_difference_is_relative_to_the_length(apart: float, length: float) -> None:
    expected = np.array([[3.0, 4.0], [1.0, 0.0]]) * length
    found = expected + np.array([[0.0, 0.0], [0.0, apart]]) * length
    assert difference(found, expected) == pytest.approx(abs(apart), abs=1e-9)


def test_nan_and_wrong_shapes_never_pass() -> None:
    one = np.ones((1, 2))
    for wrong in (np.array([[1, np.nan]]), np.ones((1, 3)), np.ones((2, 2))):
        with pytest.raises(DataError, match="differ"):
            verify(lambda _, wrong=wrong: wrong, ["a"], one, path=Path("m"), within=1e-5)
    assert verify(lambda _: one, ["a"], one, path=Path("m"), within=1e-5) == 0


def test_lower_casing_survives_saving(bert: Path, tmp_path: Path) -> None:
    from tokenizers import normalizers
    from transformers import AutoTokenizer

    source = Path(shutil.copytree(bert, tmp_path / "source"))
    cased = AutoTokenizer.from_pretrained(bert)
    raw = cased.backend_tokenizer
    raw.normalizer = normalizers.BertNormalizer(lowercase=False)
    generic_tokenizer(cased, raw).save_pretrained(source)
    texts = ["A Cat on the ROAD", "a cat on the road"]
    plain = Encoder.load(source, device="cpu", pooling="cls", max_length=40).encode(texts)
    assert abs(plain[0] - plain[1]).max() > 1e-2  # the tokenizer alone tells them apart
    modules(source, "Transformer", "Pooling", max_seq_length=40, do_lower_case=True)

    lowered = Encoder.load(source, device="cpu")
    expected = lowered.encode(texts)
    np.testing.assert_allclose(expected[0], expected[1], atol=1e-6)
    lowered.save(tmp_path / "m")
    assert difference(Encoder.load(tmp_path / "m", device="cpu").encode(texts), expected) < 1e-6
    theirs = SentenceTransformer(str(tmp_path / "m"), device="cpu").encode(texts)
    assert difference(theirs, expected) < 1e-5
