"""Public Python functions, including inputs in memory and wrong arguments."""

import json
import os
import re
from functools import partial

import polars as pl
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from aoe_train import encode, evaluate, losses, plan, train
from pairkit import ConfigError, PairDataset, Progress
from tests.aoe_train.shorthand import figures, python, stderr
from tests.aoe_train.tiny import (
    WORDS,
    card_of,
    load,
    read_json,
    same_weights,
    write_pairs,
)
from tests.support.shorthand import (
    ROOT,
    config_error,
    data_error,
    module_fixture,
    pair,
    parametrize,
    raises,
    table,
    values,
)

HOW = {"lr": 1e-3, "epochs": 1, "batch_size": 16, "settings": {"log.steps": 2}}


@module_fixture
def train_file(tmp_path_factory):
    return write_pairs(tmp_path_factory.mktemp("api") / "train.tsv", 48, 1)


@module_fixture
def dev_file(tmp_path_factory):
    return write_pairs(tmp_path_factory.mktemp("api") / "dev.tsv", 30, 2)


def rows(path):
    return pl.read_csv(path, separator="\t", quote_char=None).to_dicts()


def squared(vectors, labels):
    """Regression of cosines on scores from 0 to 5."""
    assert labels is not None
    assert vectors.shape[1:] == (2, 32)
    return (torch.cosine_similarity(*vectors.unbind(1)) - labels / 5).square().mean()


class Scaled(nn.Module):
    """A loss with a trained weight."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, vectors, labels):
        return self.scale * squared(vectors, labels)


def test_rows_in_memory_and_their_file_give_the_same_model(
    train_file, dev_file, shallow, tmp_path
):
    how = {"backbone": shallow, **HOW}
    kept = train(train_file, dev_data=dev_file, out=tmp_path / "file", **how)
    held_out = pl.DataFrame(rows(dev_file))
    run = train(rows(train_file), dev_data=held_out, out=tmp_path / "rows", **how)
    assert same_weights(kept.out, run.out)
    assert (run.steps, run.pairs, run.dev_metric) == (3, 48, "spearman")
    assert run.dev == kept.dev
    assert repr(run).startswith(f"Trained({str(run.out)!r}, 3 steps, 48 rows, ")
    assert f"spearman {run.dev:.4f} (before {run.dev_before:.4f})" in repr(run)
    assert [entry["step"] for entry in run.history if "loss" in entry] == [1, 2, 3]
    assert any("eval_dev" in entry for entry in run.history)
    assert run.encoder is run.encoder
    record = read_json(run.out / "run.json")
    assert record["sources"]["data"] == {"data-1": "the list given"}
    assert record["files"]["data"] == {"data-1": {}}
    again = train(rows(train_file), dev_data=dev_file, out=run.out, **how)
    assert again.record == record  # finished already


def test_numeric_classes_need_an_explicit_mapping(shallow, out):
    nli = [pair(f"the man {n}", f"a man {n % 7}", n % 3) for n in range(48)]
    table = pl.DataFrame([*nli, pair("a man 0", "the man 0", 2)])
    how = {"backbone": shallow, "out": out, **HOW}
    with data_error(r"^the DataFrame given:3: label 2: 0, 1, 2 may be classes"):
        train(table, **how)
    how |= {"labels": {0: 1, 1: "skip", 2: 0}, "conflicts": "drop"}
    with data_error(r"^the list given:49: label 3 has no meaning"):  # dev rows likewise
        train(table, dev_data=[*nli, {**nli[0], "label": 3}], **how)
    run = train(table, dev_data=nli, **how)
    text = "0=1, 1=skip, 2=0"
    read = run.record["datasets"]["data-1"]
    assert (read["rows"], read["kind"]) == (31, "binary")
    left_out = {"1": 16, "conflicting_labels": 2}
    assert read["reading"] == {"labels": text, "conflicts": 1, "left_out": left_out}
    assert run.record["origin"]["settings"]["data"]["labels"] == {
        "0": 1,
        "1": "skip",
        "2": 0,
    }
    told = f"Labels: `{text}`. Rows left out: 16 `1`, 2 `conflicting labels`."
    assert told in card_of(run.out)
    reading = plan(
        table, backbone=shallow, settings=["data.labels={0 = 1, 1 = 'skip', 2 = 0}"]
    ).to_dict()["datasets"]["data-1"]["reading"]
    assert reading == {"labels": text, "conflicts": 1, "left_out": {"1": 16}}
    found = evaluate(run.out, data=table, labels=how["labels"], resamples=0)
    assert figures(found)["n"] == 33


def test_progress_function_gets_a_loss_from_the_first_step(
    train_file, dev_file, shallow, tmp_path, capfd, monkeypatch
):
    seen = []
    how = {**HOW, "progress": seen.append, "settings": {"log.steps": 100}}
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "tokens"))
    train(train_file, backbone=shallow, dev_data=dev_file, out=tmp_path / "m", **how)
    begun = [f"read {train_file}", f"load {shallow}", "tokenise"]
    stages = [*begun, "evaluate on dev data", "train"]
    assert [*dict.fromkeys(at.stage for at in seen)] == stages
    steps = [at for at in seen if at.stage == "train" and not at.ended]
    assert [(at.done, at.total) for at in steps] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert all(at.note.startswith("loss ") for at in steps[1:])
    assert {at.stage for at in seen if at.ended} == {*stages}
    assert capfd.readouterr() == ("", "")


def test_arguments_override_settings_and_settings_override_the_file(
    train_file, shallow, tmp_path, capsys
):
    config = tmp_path / "c.toml"
    config.write_text("[optim]\nlr = 1.0\nbatch_size = 8\nepochs = 2.0\n")
    given = {"optim.lr": 0.5, "optim.batch_size": 24}
    given["encoder.similarity_fn_name"] = "dot"
    how = {"backbone": shallow, "out": tmp_path / "m", "config": config}
    run = train(train_file, lr=1e-3, settings=given, progress=True, **how)
    optim = run.record["origin"]["settings"]["optim"]
    assert (optim["lr"], optim["batch_size"], optim["epochs"]) == (1e-3, 24, 2.0)
    assert "compares vectors by dot, but cosent, in_batch, angle train" in stderr(
        capsys
    )


def test_custom_loss_is_used_and_recorded(train_file, shallow, out, tmp_path, capsys):
    how = {"backbone": shallow, **HOW}
    run = train(train_file, out=out, objective=squared, **how)
    name = f"{__name__}.squared"
    assert f"graded rows: {name}, learning rate" in stderr(capsys)
    assert run.record["origin"]["objective"] == [name]
    assert "cosine" not in run.record["history"][0]
    assert not same_weights(run.out, shallow)
    with config_error("other settings: objective"):
        train(train_file, out=out, **how)
    assert f"## Objective\n\nA custom loss: `{name}`.\n" in card_of(out)
    # A custom loss can learn from rows with equal labels, and a module's weights are trained.
    alike = [{**row, "score": 5.0} for row in rows(train_file)]
    own = Scaled()
    train(alike, out=tmp_path / "alike", objective=own, **how)
    assert float(own.scale.detach()) != 1
    planned = plan(train_file, objective=own, **how)
    assert planned.record["datasets"].popitem()[1]["objective"] == {
        f"{__name__}.Scaled": 1.0
    }
    assert "cosine" not in str(planned)


def test_evaluation_pairs_are_read_like_training_pairs(train_file, shallow, capsys):
    pairs = [{**row, "score": int(row["score"] > 2)} for row in rows(train_file)]
    pairs.append({**pairs[3], "score": 1 - pairs[3]["score"]})
    how = {"suite": "binary", "resamples": 0}
    expected = evaluate(shallow, data=pairs, **how).to_dict()
    told = stderr(capsys)
    both = (
        r"1 pairs have different labels, .* list given:4, .* list given:49\); they are"
    )
    assert re.search(both, told)
    renamed = {"sentence1": "a", "sentence2": "b", "score": "says"}
    named = pl.DataFrame(pairs).rename(renamed)
    columns = {"text1": "a", "text2": "b", "label": "says"}
    found = evaluate(shallow, data=named.to_dicts(), columns=columns, **how)
    assert found.to_dict() == expected
    for name, value in {"columns": columns, "bad_rows": "skip"}.items():
        with config_error(f"{name}= needs data="):
            evaluate(shallow, data_dir=".", **{name: value})


@parametrize("form", ["dataset", "csv", "mixed"])
def test_rows_by_llms_are_recognised(form, shallow, tmp_path):
    said = {"llms": ["chatgpt"], "prompt_hashes": ["a1"]}
    own = [pair(word, f"a {word}", n % 2) for n, word in enumerate(WORDS[:40])]
    frame = pl.from_dicts([row | said for row in own])
    data = {"dataset": PairDataset({"train": frame}, "made")}
    data["mixed"] = pl.concat([frame.head(9), pl.from_dicts(own[9:])], how="diagonal")
    path = tmp_path / "train.csv"
    listed = {name: json.dumps(values) for name, values in said.items()}
    pl.from_dicts([row | listed for row in own]).write_csv(path)
    planned = plan(data.get(form, path), backbone=shallow)
    assert planned.record["optim"]["lr"] == (5e-5 if form == "mixed" else 5e-6)


def test_plan_writes_nothing(train_file, shallow, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    how = {"batch_size": 8, "epochs": 2, "settings": ["optim.accumulation=4"]}
    planned = plan(rows(train_file), backbone=shallow, **how)
    assert planned.to_dict()["steps"] == 4  # an epoch's second step has 2 batches
    assert planned.memory_mb > 0
    assert "2 epochs, learning rate 5e-05, 8 rows a batch" in repr(planned)
    assert "<table>" in planned._repr_html_()
    assert not [*tmp_path.iterdir()]


def test_evaluation_as_tables(dev_file, shallow):
    found = evaluate(load(shallow), data=rows(dev_file), resamples=100)
    scores = found.to_dict()["the list given"]
    (row,) = found.to_polars().filter(metric="spearman").to_dicts()
    assert row["value"] == scores["spearman"]
    assert [row["low"], row["high"]] == scores["ci95"]["spearman"]
    assert (row["model"], row["suite"], row["n"]) == ("encoder", "sts", 30)
    assert f"{100 * scores['spearman']:.2f} [" in repr(found)
    assert "<table>" in found._repr_html_()
    assert "## sts, times 100" in found.to_markdown()


def test_bad_rows_are_written_next_to_the_model(
    train_file, shallow, out, tmp_path, capsys
):
    data = tmp_path / "train.tsv"
    head, first, *lines = train_file.read_text().splitlines()
    without_text = " \t" + first.partition("\t")[2]
    data.write_text("\n".join([head, without_text, first, *lines[:7], ""]))
    how = {"backbone": shallow, "out": out, "epochs": 1}
    with data_error(r"train\.tsv:2: .*bad_rows='skip'"):
        train(data, **how)
    assert train(data, bad_rows="skip", **how).pairs == 8
    assert f"{data}: rows left out: empty" in stderr(capsys)
    assert read_json(tmp_path / "m.bad-rows.jsonl")["row"] == 2


def test_encode_returns_an_array_or_writes_a_file(shallow, tmp_path):
    texts = ["the cat", "a dog", "the man on the road"]
    vectors = encode(texts, model=shallow)
    assert (vectors == encode(pl.Series(texts), model=load(shallow))).all()
    file = tmp_path / "t.txt"
    file.write_text("\n".join(texts))
    seen = []
    done = encode(file, model=shallow, out=tmp_path / "v.npy", progress=seen.append)
    assert (done.texts, done.dim) == vectors.shape
    assert Progress("encode", 3, 3) in seen
    for given, how, words in values(
        """
            FILE | {} | needs `out`
            NAME | {} | needs `out`
            TEXTS | OUT | is for a file of texts
            TEXTS | {'precision': 'half'} | "precision = 'half': expected 'auto', "
            """,
        FILE=file,
        NAME=str(file),
        TEXTS=texts,
        OUT={"out": tmp_path / "w.npy"},
    ):
        with config_error(words):
            encode(given, model=shallow, **how)


FOUR = [pair("a man", f"a dog {word}", n % 2) for n, word in enumerate("abcd")]


@table(
    """
    texts
    None
    5
    {'a man'}
    {'a': 1}
    FRAME
    b'a man'
    ITERATOR
    """,
    FRAME=pl.DataFrame({"text": ["a man"]}),
    ITERATOR=iter("a"),
)
def test_encode_accepts_only_texts(texts, bert):
    encoder = load(bert)
    with data_error("expected a text, or a list of texts; found"):
        encoder.encode(texts)
    if hasattr(texts, "__getitem__"):  # `aoe_train.encode` also takes iterators
        with data_error("expected a text, or a list of texts; found"):
            encode(texts, model=encoder)


@table(
    """
    call, given, message
    encode | {'model': None} | model = None: expected a folder
    evaluate | {'models': {'text1': 'a man'}} | model = {
    evaluate | LOADED | "model = SentenceTransformer( (0): "
    evaluate | {'models': []} | no model to evaluate
    evaluate | {'against': 'm'} | no model to evaluate
    evaluate | {'models': 'm', 'seed': 'x'} | "seed = 'x': "
    evaluate | {'models': 'm', 'resamples': 'x'} | "resamples = 'x': "
    evaluate | {'models': 'm', 'suite': 3} | suite=3: expected sts
    train | {'out': None} | 'out = None: '
    train | {'out': 'm', 'backbone': None} | 'backbone = None: '
    loss | {'tau': 0} | "setting 'tau.angle' = 0: "
    """,
    encode=partial(encode, ["a man"]),
    evaluate=lambda models=None, **given: evaluate(models, data=FOUR, **given),
    train=partial(train, FOUR),
    loss=partial(losses.AngleLoss, nn.Identity()),
    LOADED={"models": SentenceTransformer(modules=[Pooling(2)], device="cpu")},
)
def test_errors_name_the_wrong_argument(call, given, message):
    with raises(ConfigError) as raised:
        call(**given)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_plan_refuses_unknown_arguments():
    with raises(TypeError, match="unexpected keyword argument 'batchsize'"):
        plan(FOUR, batchsize=2)


WRONG_INPUTS = r"""
import sys
import aoe_train
from pairkit import PairkitError

good = "pairs.tsv"
for call, told in {
    lambda: aoe_train.train("empty.tsv"): "empty.tsv: is empty (0 bytes)",
    lambda: aoe_train.train(good, dev_data="nowhere.tsv"): "nowhere.tsv: no such file",
    lambda: aoe_train.train(good, accept_on="empty.tsv"): "empty.tsv: is empty (0 bytes)",
    lambda: aoe_train.train("splits", columns="label=nothing"): "nothing",  # its empty split is not read
    lambda: aoe_train.train(good, backbone="minilmm"): "minilmm: no such folder or packaged model",
    lambda: aoe_train.train(good, backbone="folder"): "folder: no config.json",
    lambda: aoe_train.train(good, teacher="MiniLM"): "did you mean minilm?",
    lambda: aoe_train.train(good, out="pairs.tsv"): "pairs.tsv: ",
    lambda: aoe_train.evaluate("minilm", against="minillm", data=good): "did you mean minilm?",
}.items():
    try:
        call()
    except PairkitError as error:
        assert told in str(error), error
    else:
        raise AssertionError(told)
assert "torch" not in sys.modules
"""


def test_inputs_are_checked_before_torch_is_imported(tmp_path):
    for folder in ("folder", "splits"):
        (tmp_path / folder).mkdir()
    for name in ("empty.tsv", "splits/test.tsv"):
        (tmp_path / name).touch()
    for name in ("pairs.tsv", "splits/train.tsv"):
        rows = "text1\ttext2\tlabel\na man\ta dog\t1\na cat\ta car\t0\n"
        (tmp_path / name).write_text(rows)
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = python(WRONG_INPUTS, env=environ, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_error_in_a_custom_loss_gets_a_note_on_its_arguments(bert, out):
    def own(vectors, labels):
        return nn.functional.mse_loss(
            vectors[:, 0] @ vectors[:, 1], labels[:, None, None]
        )

    with raises(RuntimeError) as raised:
        train(FOUR, backbone=bert, out=out, objective=own, batch_size=2)
    (note,) = raised.value.__notes__
    assert "own: called with vectors (row, column, dim) of shape (2, 2, " in note
    assert "and labels (2,); expected one number" in note
