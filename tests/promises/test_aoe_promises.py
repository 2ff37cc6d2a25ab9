"""The promises of `aoe`: killed runs continue to the same bytes, outputs are safe, other libraries agree."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from safetensors.torch import load_file

import aoe_train
from aoe_train import Encoder
from pairkit import ConfigError, DataError
from tests import forked
from tests.aoe_train import conftest
from tests.aoe_train.shell import aoe
from tests.aoe_train.test_encoder import TEXTS as ODD_TEXTS
from tests.aoe_train.test_mine import mined, negatives, tuples, write_tuples
from tests.aoe_train.test_search import QUIET, TEXTS, sentences
from tests.aoe_train.test_search_nearest import dated
from tests.aoe_train.tiny import WORDS, save_bert, write_texts
from tests.contract.conftest import Done
from tests.contract.train_command import DEV, MIXTURE, begin_ranks, command, environ, fill, run
from tests.two_nodes import two_nodes

bert, minilm = conftest.bert, conftest.minilm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a backbone without dropout, and pairs."""
    return fill(tmp_path_factory.mktemp("aoe"))


@pytest.fixture(scope="module")
def trained(folder: Path) -> Done:
    done = run(folder, *DEV, "--json", out="model")
    assert done.code == 0, done.err
    return done


def killed_after(step: int, folder: Path, *arguments: str, out: str) -> None:
    """Train in a separate process, and kill it after the checkpoint of this step."""
    process = forked.begin(*command(*arguments, out=out), cwd=folder, environ=environ())
    while process.exitcode is None:
        steps = [int(path.stem[5:]) for path in folder.glob(f"{out}.work/step-*.pt")]
        if max(steps, default=0) >= step:
            process.kill()
        process.join(0.01)


def difference(folder: Path, one: str, other: str) -> float:
    found = [load_file(folder / name / "model.safetensors") for name in (one, other)]
    assert found[0].keys() == found[1].keys()
    return max(float((found[0][name] - found[1][name]).abs().max()) for name in found[0])


def run_ranks(folder: Path, *arguments: str, out: str) -> None:
    ranks = begin_ranks(folder, *arguments, out=out, err=folder)
    for rank in ranks:
        rank.join(200)
    assert [rank.exitcode for rank in ranks] == [0, 0], (folder / "0").read_text()


def test_json_ends_with_one_object(folder: Path, trained: Done) -> None:
    assert len(trained.out.splitlines()) == 1
    result = trained.result
    assert list(result)[:7] == ["out", "steps", "pairs", "seconds", "pairs_per_s", "peak_rss_mb", "dev"]
    assert (result["out"], result["steps"], result["pairs"]) == ("model", 36, 288)
    assert result["pairs_per_s"] == pytest.approx(288 / result["seconds"], rel=0.01)
    assert -1 <= result["dev"] <= 1
    assert "Traceback" not in trained.err
    run_record = json.loads((folder / "model" / "run.json").read_text())
    assert run_record["origin"]["settings"]["seed"] == 5
    assert run_record["files"]["data"]["train"].keys() == {"train.tsv"}


def test_killed_run_continues_to_the_same_bytes(folder: Path, trained: Done) -> None:
    arguments = (*DEV, "--json", "--set", "log.checkpoint_steps=2")
    killed_after(2, folder, *arguments, out="killed")
    assert not (folder / "killed").exists()
    done = run(folder, *arguments, out="killed")
    assert done.code == 0, done.err
    assert "killed.work: continuing after step" in done.err
    weights = [folder / name / "model.safetensors" for name in ("killed", "model")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    assert done.result.keys() == trained.result.keys()
    assert not (folder / "killed.work").exists()


@pytest.mark.slow
def test_killed_mixture_continues_to_the_same_bytes(folder: Path) -> None:
    arguments = (*MIXTURE, *DEV, "--dev-data", "other=triplets.jsonl", "--set", "log.checkpoint_steps=2")
    forked.run(*command(*arguments, out="mixed"), cwd=folder, environ=environ())
    killed_after(2, folder, *arguments, out="cut-mixture")
    assert not (folder / "cut-mixture").exists()
    done = run(folder, *arguments, out="cut-mixture")
    assert "cut-mixture.work: continuing after step" in done.err
    assert difference(folder, "cut-mixture", "mixed") == 0


@pytest.mark.slow
def test_sharded_training_equals_whole_and_resumes(folder: Path) -> None:
    flags = (*DEV, "--lr", "1e-3", "--set", "optim.average=0.5", "--set", "log.checkpoint_steps=2")
    shard = ("--set", "run.shard=true")
    run_ranks(folder, *flags, out="copies")
    run_ranks(folder, *flags, *shard, out="shares")
    assert difference(folder, "copies", "shares") < 1e-5
    assert difference(folder, "shares", "bert") > 1e-4

    ranks = begin_ranks(folder, *flags, *shard, out="cut", err=folder)
    while not list(folder.glob("cut.work/step-*")) and ranks[0].exitcode is None:
        ranks[0].join(0.01)
    for rank in ranks:
        rank.kill()
        rank.join()
    assert list(folder.glob("cut.work/step-*"))
    run_ranks(folder, *flags, *shard, out="cut")
    assert difference(folder, "shares", "cut") == 0


@pytest.mark.slow
@pytest.mark.parametrize("mixture", [False, True])
def test_two_processes_train_the_same_model(folder: Path, *, mixture: bool) -> None:
    flags = ("--set", "batches.strategy=shuffle", "--lr", "2e-5", "--json", "--fresh")
    flags += MIXTURE if mixture else ()
    one = run(folder, *flags, "--batch-size", "16", out="one")
    assert one.code == 0, one.err
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    done = subprocess.run(
        [*torchrun, "-m", *command(*flags, out="two")],
        capture_output=True,
        text=True,
        env=environ(),
        cwd=folder,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1  # only rank 0 prints
    assert json.loads(done.stdout)["pairs"] == one.result["pairs"]
    # Rounding can invert a step of Adam for tiny gradients; a mixture takes more steps.
    assert difference(folder, "one", "two") < (2e-5 if mixture else 1e-5)
    assert difference(folder, "one", "bert") > 1e-4


@pytest.mark.slow
def test_on_a_cluster_of_two_nodes_it_has_the_same_bytes(bert: Path, tmp_path: Path):
    """A node is killed, then the driver. Slow: a cluster takes half a minute to start."""
    texts = write_texts(tmp_path / "in.txt")
    texts.write_text(texts.read_text() * 200)
    whole, out = tmp_path / "whole.npy", tmp_path / "out.npy"
    aoe_train.encode(texts, model=bert, out=whole, progress=False)
    with two_nodes() as (cluster, second):
        command = [
            *(sys.executable, "-m", "aoe_train", "encode", str(texts), "--model", str(bert), "-q"),
            *("--out", str(out), "--engine", "ray", "--address", cluster.address),
        ]
        driver = subprocess.Popen(command)
        begun(out)
        second.all_processes["raylet"][0].process.kill()
        assert driver.wait(timeout=300) == 0
        assert out.read_bytes() == whole.read_bytes()
        out.unlink()
        driver = subprocess.Popen([*command, "--fresh"])
        begun(out)
        driver.kill()
        driver.wait()
        assert not out.exists()
        again = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
        assert json.loads(again.stdout)["resumed"] > 0
        assert out.read_bytes() == whole.read_bytes()


def begun(out: Path) -> None:
    """Wait until a part is stored."""
    manifest, until = out.with_name(out.name + ".partial") / "manifest.json", time.monotonic() + 300
    while not (manifest.exists() and json.loads(manifest.read_text())["done"]):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_search_every_on_the_command_line(bert: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    aoe_train.index(dated(), model=bert, out="index", **QUIET)
    for name in ("one.parquet", "two.parquet"):
        flags = ["--every", "--before", "day", "--top", "3", "--out", name, "--json", "-q"]
        printed = json.loads(aoe("search", "index", *flags))
        assert printed == {"texts": 39, "hits": pl.read_parquet("one.parquet").height, "undated": 1}
    assert Path("one.parquet").read_bytes() == Path("two.parquet").read_bytes()
    for wrong, words in (
        (["--every"], "expected a TEXT to search for, or both every= and out="),
        (["text", "--out", "x"], "expected a TEXT to search for, or both every= and out="),
        (["--every", "--out", "one.parquet"], "already exists"),
        (["--every", "--out", "hits.txt"], "hits.txt: expected the name of a .csv or .tsv or"),
        (["--every", "--out", "x.parquet", "--before", "day=3"], "one before=COLUMN and no where="),
    ):
        with pytest.raises(ConfigError, match=words):
            aoe("search", "index", *wrong)


@pytest.mark.parametrize("quantize", ["float32", "int8"])
def test_vectors_of_an_earlier_index_are_reused(bert: Path, tmp_path: Path, quantize: str):
    out, whole = tmp_path / "index", tmp_path / "whole"
    how: dict[str, Any] = {"model": bert, "quantize": quantize, **QUIET}
    first = aoe_train.index(sentences(40), out=out, **how)
    assert (first.rows, first.encoded, first.kind, first.recall) == (40, 40, "flat", 1.0)
    texts = [*sentences(50)[5:], "the dog the dog"]
    again = aoe_train.index(texts, out=out, remove_missing=True, **how)
    assert (again.rows, again.encoded) == (46, 11 if quantize == "float32" else 46)
    aoe_train.index(texts, out=whole, **how)
    assert (out / "rows.parquet").read_bytes() == (whole / "rows.parquet").read_bytes()
    assert np.load(out / "vectors.npy") == pytest.approx(np.load(whole / "vectors.npy"), abs=1e-6)
    assert np.load(out / "vectors.npy").dtype == quantize
    assert aoe_train.search(out, texts[11], model=bert)[0].text == texts[11]
    assert aoe_train.index(texts, out=out, **how).encoded == (0 if quantize == "float32" else 46)


def test_other_folders_and_columns_are_not_replaced(bert: Path, tmp_path: Path):
    out = tmp_path / "index"
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="isn't an index of `aoe index`"):
        aoe_train.index(TEXTS, model=bert, out=tmp_path, progress=False)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    with pytest.raises(ConfigError, match="kind = 'tree': expected 'flat' or 'hnsw'"):
        aoe_train.index(TEXTS, model=bert, out=out, kind="tree", progress=False)
    with pytest.raises(DataError, match="the column sha256 is reserved"):
        aoe_train.index([{"text": "a dog", "sha256": "mine"}], model=bert, out=out, **QUIET)
    aoe_train.index(TEXTS, model=bert, out=out, **QUIET)
    how: dict[str, Any] = {"model": bert, "out": tmp_path / "anew", "columns": {"text": "text"}, **QUIET}
    assert aoe_train.index(out / "rows.parquet", **how).rows == len(TEXTS)


def test_the_command_makes_a_dataset_that_training_reads(bert: Path, tmp_path: Path):
    data, out = write_tuples(tmp_path / "data"), tmp_path / "mined"
    command = ("mine", "--data", data, "--model", bert, "--out", out, "--num-negatives", "3", "--json")
    printed = json.loads(aoe(*command, "--quiet"))
    rows = {path.name.split("-")[0]: pl.read_parquet(path) for path in out.rglob("*.parquet")}
    assert rows.keys() == {"train", "test"}
    columns = [f"negative_{number}" for number in (1, 2, 3)]
    assert rows["train"].columns == ["anchor", "positive", *columns]
    count = sum(rows["train"][column].drop_nulls().len() for column in columns)
    assert printed["splits"]["train"]["negatives"] == count
    assert not out.with_name("mined.work").exists()
    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert json.loads(aoe(*command)) == printed
    aoe(*command, "--fresh")
    assert files == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(ConfigError, match=r"other settings: settings\.num_negatives .*fresh=True"):
        aoe(*command[:-2], "2")


def test_random_negatives_are_of_the_range_and_the_seed_and_a_finished_run_returns_them(tmp_path: Path):
    source = {split: tuples(seed, 40) for seed, split in enumerate(("train", "test"))}

    def found(**options: Any) -> dict[str, pl.DataFrame]:
        return mined(source, rank_range=(3, 12), scores=True, candidates="all", **options).splits

    how: dict[str, Any] = {"out": tmp_path / "mined", "num_negatives": 2, "sampling": "random", "seed": 1}
    once, again, anew = found(**how), found(**how), found(**{**how, "out": None})
    assert [*again] == [*once] == ["train", "test"]
    assert all(again[split].equals(once[split]) and anew[split].equals(once[split]) for split in source)
    assert not once["train"].equals(found(num_negatives=2, sampling="random")["train"])
    in_range = negatives(found(num_negatives=9)["train"])
    assert all({*some} <= {*every} for some, every in zip(negatives(once["train"]), in_range, strict=True))
    assert negatives(once["train"]) != negatives(found(num_negatives=2)["train"])


def test_the_command_samples_queries(bert: Path, tmp_path: Path) -> None:

    save_bert(tmp_path / "other", seed=1, spread=0.5)
    (tmp_path / "texts.txt").write_text("".join(f"{word} and {WORDS[0]}\n" for word in WORDS[1:30]))
    arguments = ("sample-pairs", "--data", tmp_path / "texts.txt", "--queries", tmp_path / "texts.txt")
    models = ("--model", bert, "--model", tmp_path / "other", "--out", tmp_path / "to-judge", "-q")
    told = aoe(*arguments, *models)
    assert "differing queries" in told
    assert aoe(*arguments, *models) == told  # finished before
    rows = pl.read_parquet(tmp_path / "to-judge" / "data" / "*.parquet")
    assert (rows["text1"] != rows["text2"]).all()
    with pytest.raises(ConfigError, match="made from other inputs or with other settings"):
        aoe(*arguments, *models, "--top", "2")


def test_minilm_equals_sentence_transformers(minilm):
    from sentence_transformers import SentenceTransformer

    texts = [*ODD_TEXTS, "Long text. " * 400, "Angles: naïve café, 日本語!"]
    encoder = Encoder.load("minilm")
    assert encoder.settings.pooling == "avg"
    assert encoder.settings.max_length == 256
    np.testing.assert_allclose(encoder.encode(texts), SentenceTransformer(str(minilm)).encode(texts), 0, 1e-5)


@pytest.mark.parametrize("normalize", [False, True])
def test_truncated_vectors_equal_sentence_transformers(bert, tmp_path, *, normalize):
    from sentence_transformers import SentenceTransformer

    encoder = Encoder.load(bert, device="cpu", precision="fp32", normalize=normalize)
    encoder.save(tmp_path)
    texts = ["a dog is running", "the red car", "a man was eating bread on the road"]
    theirs = SentenceTransformer(str(tmp_path), device="cpu", truncate_dim=12)
    found = encoder.encode(texts, dim=12)
    assert found == pytest.approx(theirs.encode(texts, normalize_embeddings=normalize), abs=1e-5)
    bits = encoder.encode(texts, dim=12, quantize="ubinary")
    assert bits.tolist() == theirs.encode(texts, precision="ubinary").tolist()
    int8 = {"quantize": "int8", "calibration": found}
    one, all_of_them = (
        encoder.encode(texts[1], dim=12, **int8),
        encoder.encode(texts, dim=12, quantize="int8"),
    )
    assert one == pytest.approx(all_of_them[1], abs=1)
    with pytest.raises(ConfigError, match="calibration: its vectors have 12 dimensions; expected 8"):
        encoder.encode(texts, dim=8, **int8)
    with pytest.raises(ConfigError, match="dim 33"):
        encoder.encode(texts, dim=33)


@pytest.fixture(scope="module")
def real(minilm: Path) -> tuple[Encoder, Any]:
    """One model, as we load it and as sentence-transformers does; its cosines are far enough apart."""
    library = pytest.importorskip("sentence_transformers")
    return Encoder.load(minilm, device="cpu", precision="fp32"), library.SentenceTransformer(
        str(minilm), device="cpu"
    )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {}),
        ({"corpus": True}, {}),
        ({"margin": 0.05, "rank_range": (0, 30)}, {"absolute_margin": 0.05, "range_max": 30}),
        ({"relative_margin": 0.1, "rank_range": (0, 30)}, {"relative_margin": 0.1, "range_max": 30}),
        ({"rank_range": (1, 24)}, {"range_min": 1, "range_max": 24}),
    ],
)
def test_as_sentence_transformers(real: tuple[Encoder, Any], ours: dict[str, Any], theirs: dict[str, Any]):
    from datasets import Dataset
    from sentence_transformers.util import mine_hard_negatives

    encoder, model = real
    data = tuples(0, 25)
    if "corpus" in ours:  # theirs has the positives in any case
        corpus = tuples(7, 30)["anchor"].to_list()
        ours, theirs = {"corpus": [*corpus, *data["positive"]]}, {"corpus": corpus}
    pairs = Dataset.from_dict(data.to_dict(as_series=False))
    how: dict[str, Any] = {"num_negatives": 3, "output_format": "n-tuple", "verbose": False}
    expected = mine_hard_negatives(pairs, model, **how, **theirs)
    found = mined(data, model=encoder, num_negatives=3, **ours)
    rows = found.splits["train"].drop_nulls()
    rules = {*ours} - {"rank_range", "corpus"}
    assert rules <= {name for name, count in found.statistics["turned_down_candidates"].items() if count}
    assert rows.rows() == pl.DataFrame(expected.to_dict()).rows()
    assert rows.height > 10
