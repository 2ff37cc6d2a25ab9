"""`aoe encode` and `aoe evaluate` with a small model; SIGKILL."""

import json
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import aoe_train
from aoe_train import Encoder
from pairkit import ConfigError
from tests import forked
from tests.aoe_train.shell import aoe
from tests.aoe_train.tiny import WORDS, around, save_bert


def write_texts(path: Path, count: int) -> list[str]:
    choose = random.Random(0)
    texts = [" ".join(choose.choices(WORDS, k=choose.randint(1, 12))) for _ in range(count)]
    path.write_text("\n".join(texts) + "\n")
    return texts


def test_flags_and_the_json_object(bert, tmp_path):
    texts = write_texts(tmp_path / "in.txt", 9)
    pl.DataFrame({"body": texts, "n": range(9)}).write_parquet(tmp_path / "in.parquet")
    out = tmp_path / "out.parquet"
    flags = ("--columns", "text=body", "--normalize", "--batch-tokens", "16", "--precision", "fp32", "--json")
    result = json.loads(aoe("encode", tmp_path / "in.parquet", "--model", bert, "--out", out, *flags))
    expected = {"out": str(out), "texts": 9, "dim": 32, "quantize": "float32", "resumed": 0}
    assert result == {**expected, "seconds": result["seconds"], "texts_per_s": result["texts_per_s"]}
    found = pl.read_parquet(out)
    assert found.columns == ["body", "n", "vector"]
    wanted = Encoder.load(bert).encode(texts, normalize=True)
    assert found["vector"].to_numpy() == pytest.approx(wanted, abs=1e-6)


def test_quantized_vectors_and_queries_with_the_same_ranges(bert, tmp_path):
    texts = write_texts(tmp_path / "in.txt", 40)
    vectors = Encoder.load(bert).encode(texts)[:, :12]
    out, query = tmp_path / "out.npy", tmp_path / "query.npy"
    flags = ("--model", bert, "--dim", "12", "--precision", "fp32", "-q")
    aoe("encode", tmp_path / "in.txt", "--out", out, "--quantize", "int8", *flags)
    codes = np.load(out)
    assert (codes.shape, codes.dtype) == ((40, 12), np.int8)
    record = json.loads((tmp_path / "out.npy.run.json").read_text())
    ranges = np.array(record["ranges"], np.float32)
    assert (record["dim"], record["quantize"]) == (12, "int8")
    assert ranges == pytest.approx(np.stack([vectors.min(0), vectors.max(0)]), abs=1e-6)

    (tmp_path / "one.txt").write_text(texts[7] + "\n")
    one = ("encode", tmp_path / "one.txt", "--out", query, "--quantize", "int8", *flags)
    with pytest.raises(ConfigError, match="calibration"):
        aoe(*one)
    aoe(*one, "--calibration", out)
    assert np.abs(np.load(query)[0].astype(int) - codes[7]).max() <= 1  # as other batches round
    again = aoe_train.encode([texts[7]], model=str(bert), dim=12, quantize="int8", calibration=out)
    assert (again == np.load(query)).all()
    with pytest.raises(ConfigError, match=r"other settings: quantize"):
        aoe("encode", tmp_path / "in.txt", "--out", out, "--quantize", "binary", *flags)
    bits = tmp_path / "bits.parquet"
    aoe("encode", tmp_path / "in.txt", "--out", bits, "--quantize", "ubinary", *flags)
    found = pl.read_parquet(bits)["vector"]
    assert found.dtype == pl.Array(pl.UInt8, 2)
    assert (found.to_numpy() == np.packbits(vectors > 0, axis=1)).all()


def test_identity_depends_on_weights_settings_and_precision(bert, tmp_path):
    encoders = [
        *(Encoder.load(bert) for _ in range(3)),
        Encoder.load(save_bert(tmp_path / "other", seed=1)),
        *(
            Encoder.load(bert, **how)
            for how in ({"pooling": "max"}, {"precision": "bf16"}, around("the {text} of"))
        ),
    ]
    encoders[2].model.backbone.config.layer_norm_eps *= 2
    same, again, *others = (json.dumps(encoder.identity(), sort_keys=True) for encoder in encoders)
    assert same == again
    assert len({same, *others}) == 6


def test_prompts_by_name_and_by_text(bert, tmp_path):
    texts, out = write_texts(tmp_path / "in.txt", 9), tmp_path / "out.npy"
    encoder = Encoder.load(bert, prompts={"query": "the man: ", "t": "a car "}, default_prompt_name="t")
    encoder.save(tmp_path / "m")
    command = ("encode", tmp_path / "in.txt", "--model", tmp_path / "m", "--out", out)
    for flags, asked in (
        (("--prompt-name", "query"), {"prompt_name": "query"}),
        (("--prompt", "the {text} or"), {"prompt": "the {text} or"}),
        (("--prompt", ""), {"prompt": ""}),
        ((), {}),
    ):
        aoe(*command, *flags, "--fresh", "-q")
        np.testing.assert_allclose(np.load(out), encoder.encode(texts, **asked), atol=1e-6)
    for flags, words in (
        (("--prompt-name", "q", "--fresh"), "no prompt 'q'; this model has 'query', 'document', 't'"),
        (("--prompt-name", "query", "--prompt", "x"), "prompt= and prompt_name=: give only one of them"),
        (("--prompt-name", "query"), r"other settings: prompt \(a car there, the man: now\)"),
    ):
        with pytest.raises(ConfigError, match=words):
            aoe(*command, *flags)


def test_a_killed_process_is_resumed(bert, tmp_path):
    texts, out, whole = tmp_path / "in.txt", tmp_path / "out.npy", tmp_path / "whole.npy"
    write_texts(texts, 4000)
    command = ["encode", str(texts), "--model", str(bert), "--batch-tokens", "512"]
    aoe(*command, "--out", whole, "-q")
    process = forked.begin("aoe_train", *command, "--out", str(out), cwd=Path.cwd())
    manifest = tmp_path / "out.npy.partial/manifest.json"
    while process.exitcode is None and not (manifest.exists() and json.loads(manifest.read_text())["done"]):
        process.join(0.001)
    process.kill()
    process.join()
    assert not out.exists()
    assert 1000 <= json.loads(aoe(*command, "--out", out, "--json"))["resumed"] < 4000
    assert out.read_bytes() == whole.read_bytes()
    assert not manifest.parent.exists()
