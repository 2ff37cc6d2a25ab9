"""Guides and teachers in a run: vectors, scores, resuming and refused combinations."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from aoe_train import Encoder
from aoe_train import Encoder as Loaded
from aoe_train.data.examples import read_examples
from aoe_train.data.run_data import Sources
from aoe_train.data.token_batches import Collate
from aoe_train.objectives.training_rows import Examples, TeacherOutputs
from aoe_train.settings.train_settings import TrainSettings
from aoe_train.training.teacher_files import scores_from_file, vectors_from_file
from aoe_train.training.teachers import precompute_vectors, teachers_of
from aoe_train.training.train import train
from aoe_train.training.train_plan import plan
from pairkit import ConfigError, DataError
from pairkit.base.settings import load_settings
from tests.aoe_train.tiny import WORDS, save_bert


@pytest.fixture(scope="module")
def bert(shallow):
    """A BERT of one layer, for speed."""
    return shallow


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """A model with another size and prompts for queries and documents."""
    folder = tmp_path_factory.mktemp("teacher")
    save_bert(folder / "bert", dim=16, layers=1, seed=7)
    prompts = {"query": "the ", "document": "a "}
    Encoder.load(folder / "bert", pooling="avg", prompts=prompts, device="cpu").save(folder / "model")
    return folder / "model"


def quiet(_: object) -> None:
    """Ignore progress."""


def outputs_of(given: TrainSettings, examples: Examples, cache: Path) -> TeacherOutputs:
    """Outputs of guide and teacher for one dataset."""
    return precompute_vectors(teachers_of(given), {"": examples}, given.teacher, cache, quiet)[""]


def sentences(count: int, seed: int = 0) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.sample(WORDS, drawn.randint(3, 7))) for _ in range(count)]


def put(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def triplets(path: Path, rows: int = 24) -> Path:
    """Rows with one or two negatives, and texts that repeat in other columns."""
    drawn, texts = random.Random(3), sentences(30)
    names = ("anchor", "positive", "negative_1")
    found = [dict(zip(names, drawn.sample(texts, 3), strict=True)) for _ in range(rows)]
    for row in found[::2]:
        row["negative_2"] = drawn.choice([text for text in texts if text not in row.values()])
    return put(path, found)


def settings(**flags: Any) -> TrainSettings:
    given = {name.replace("__", "."): value for name, value in flags.items()}
    below = {"preset": "simcse", "optim.lr": 1e-3, "optim.batch_size": 8, "optim.epochs": 1, "log.steps": 1}
    return load_settings(TrainSettings, flags={**below, **given})


def run(data: Path, backbone: Path, out: Path, *, fresh: bool = False, **flags: Any) -> Any:
    sources = Sources(str(data), str(backbone), out)
    return train(sources, settings(**flags), fresh=fresh, say=lambda _: None, progress=False)


def test_vectors_equal_encode_with_column_prompts(teacher, tmp_path):
    examples = read_examples(triplets(tmp_path / "rows.jsonl"))
    found = outputs_of(settings(teacher__model=str(teacher)), examples, tmp_path / "vectors")
    rows = np.array([5, 0, 1])
    vectors = found.batch(rows)["teacher"]
    encoder = Encoder.load(teacher, device="cpu")
    for row, told in zip(rows, vectors, strict=True):
        for column, number in enumerate(examples.rows[row]):
            if number >= 0:
                how = encoder.encode_document if column else encoder.encode_query
                np.testing.assert_allclose(told[column], how([examples.texts[number]])[0], atol=1e-6)
    assert len(list((tmp_path / "vectors").glob("*.npy"))) == 2  # a file a prompt


def test_text_in_several_columns_has_each_columns_prompt(teacher, tmp_path):
    examples = read_examples(put(tmp_path / "rows.jsonl", [{"anchor": "a dog", "positive": "a dog"}]))
    same = {"anchor": "the ", "positive": "the "}
    for prompts, equal in (({}, False), ({"teacher__prompts": same}, True)):
        given = settings(teacher__model=str(teacher), **prompts)
        one, other = outputs_of(given, examples, tmp_path).batch(np.array([0]))["teacher"][0]
        assert bool((one - other).abs().max() < 1e-6) is equal


def test_texts_are_encoded_once_and_cached(teacher, tmp_path, monkeypatch):
    asked: list[int] = []
    original = Loaded.encode

    def encode(self: Encoder, texts: Any, **options: Any) -> np.ndarray:
        if self.dim == 16:
            asked.append(len(texts))
        return original(self, texts, **options)

    monkeypatch.setattr(Loaded, "encode", encode)
    examples = read_examples(triplets(tmp_path / "rows.jsonl"))
    first = outputs_of(settings(teacher__model=str(teacher)), examples, tmp_path)
    once, parts = sum(asked), (examples.rows[:, :1], examples.rows[:, 1:])
    assert once == sum(len(np.unique(part[part >= 0])) for part in parts)
    again = outputs_of(settings(teacher__model=str(teacher)), examples, tmp_path)
    assert sum(asked) == once
    rows = np.arange(len(examples))
    torch.testing.assert_close(first.batch(rows), again.batch(rows), rtol=0, atol=0)


def test_batch_has_the_teachers_vectors(bert, teacher, tmp_path):
    data = tmp_path / "texts.txt"
    data.write_text("\n".join(sentences(12)) + "\n")
    examples = read_examples(data)
    outputs = outputs_of(settings(teacher__model=str(teacher)), examples, tmp_path)
    store = Encoder.load(bert, device="cpu").tokens(examples.texts)
    batch = Collate(examples, store, views=False, teacher_outputs=outputs)([3, 1])
    assert len(batch["pieces"]) == 2
    assert batch["rows"].shape == (2, 2)
    assert batch["teacher"].shape == (2, 2, 16)
    assert len(Collate(examples, store, teacher_outputs=outputs)([3, 1])["pieces"]) == 4


EVERYTHING = {
    "objective__weights__embed_distill": 1,
    "objective__weights__score_distill": 1,
    "objective__weights__margin_mse": 1,
}


def test_run_with_guide_and_teacher_resumes_with_the_same_bytes(bert, teacher, tmp_path, kill_at):
    """Guide, teacher, column prompts, chunks and two sizes; killed after its second step."""
    data = triplets(tmp_path / "rows.jsonl")
    flags: dict[str, Any] = {
        **EVERYTHING,
        "guide__model": str(teacher),
        "teacher__model": str(teacher),
        "objective__dims": (32, 8),
        "prompts": {"anchor": "is ", "positive": "with "},
        "run__chunk": 5,
        "log__checkpoint_steps": 1,
    }
    record = run(data, bert, tmp_path / "whole", **flags)
    assert record["result"]["steps"] == 3
    assert {"embed_distill", "score_distill", "margin_mse", "contrastive"} <= record["history"][0].keys()
    resumed = kill_at(2, lambda: run(data, bert, tmp_path / "killed", **flags))
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "killed")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert resumed["history"] == record["history"]
    told = record["advisers"]["teacher"]
    assert told["prompts"] == {"anchor": "the ", "positive": "a ", "negative_1": "a ", "negative_2": "a "}
    assert told["dim"] == 16
    assert record["origin"]["teacher"]["weights"] == told["weights"]
    other = save_bert(tmp_path / "other", dim=16, layers=1, seed=8)
    with pytest.raises(ConfigError, match=r"other settings: .*teacher\.weights"):
        run(data, bert, tmp_path / "whole", **{**flags, "teacher__model": str(other)})


def test_vectors_from_a_file(bert, tmp_path):
    texts = [*sentences(16), *sentences(16, 1)]
    pairs = [{"anchor": a, "positive": b} for a, b in zip(texts[:16], texts[16:], strict=True)]
    data = put(tmp_path / "rows.jsonl", pairs)
    vectors = Encoder.load(bert, device="cpu").encode(texts)  # of the student's size
    brought = tmp_path / "vectors.parquet"
    flags = {"objective__weights__embed_distill": 1, "teacher__model": str(brought)}
    pl.DataFrame({"text": texts, "vector": vectors}).write_parquet(brought)
    assert run(data, bert, tmp_path / "file", **flags)["advisers"]["teacher"]["file"]
    pl.DataFrame({"text": texts[:-1], "vector": vectors[:-1]}).write_parquet(brought)
    message = r"vectors.parquet: has no vector for 1 of 32 training texts, such as"
    with pytest.raises(DataError, match=message):
        run(data, bert, tmp_path / "less", **flags)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"sentence": ["a"], "vector": [[1.0]]},
            "found the columns sentence, vector; expected text and vector",
        ),
        ({"text": ["a"], "vector": ["b"]}, "vector has no lists of numbers"),
        ({"text": ["a", "b"], "vector": [[1.0, 2.0], [1.0]]}, "vector has 1 numbers; expected 2"),
        ({"text": ["a", "b"], "vector": [[1.0], [None]]}, "has NaN, infinity or null"),
    ],
)
def test_invalid_vector_files_are_refused(columns, message, tmp_path):
    pl.DataFrame(columns).write_parquet(tmp_path / "vectors.parquet")
    with pytest.raises(DataError, match=message):
        vectors_from_file(tmp_path / "vectors.parquet", ["a"])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"objective__weights__embed_distill": 1}, "embed_distill: needs a teacher"),
        ({"teacher__model": "TEACHER"}, r"no part of the objective \(contrastive\) learns from one"),
        (
            {"teacher__model": "TEACHER", "objective__projection": "principal", **EVERYTHING},
            "the teacher's vectors have 16 numbers, fewer than the backbone's 32",
        ),
        ({"guide__model": "TEACHER", "preset": "cosent"}, "has in-batch negatives to filter"),
        ({"guide__model": "DOT"}, "compared by dot; expected a model with cosine"),
        (
            {"teacher__model": "DOT", "objective__weights__score_distill": 1},
            "compared by dot, the model's by cosine, but score_distill needs both",
        ),
        ({"teacher__model": "x.npy"}, "a .npy lacks the texts"),
        ({"teacher__model": "x.parquet", **EVERYTHING}, "no such file; give a model, or a file of vectors"),
        ({"teacher__prompts": "q: "}, "teacher: has settings but no model; give teacher="),
        (
            {"teacher__model": "TEACHER", "teacher__prompts": {"text": "q: "}, **EVERYTHING},
            "teacher.prompts: no column",
        ),
    ],
)
def test_invalid_combinations_are_refused_before_encoding(flags, message, bert, teacher, tmp_path):
    Encoder.load(teacher, device="cpu", similarity_fn_name="dot").save(tmp_path / "dot")
    names = {"TEACHER": str(teacher), "DOT": str(tmp_path / "dot")}
    given = {key: names.get(str(value), value) for key, value in flags.items()}
    with pytest.raises(ConfigError, match=message) as raised:
        run(triplets(tmp_path / "rows.jsonl"), bert, tmp_path / "m", **given)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "cache" / "vectors").exists()


def test_custom_loss_refuses_a_guide_and_plan_encodes_nothing(bert, teacher, tmp_path):
    sources = Sources(str(triplets(tmp_path / "rows.jsonl")), str(bert), tmp_path / "m")
    own = replace(sources, losses={"rows": lambda vectors, _: vectors.sum()})
    with pytest.raises(ConfigError, match="a custom loss can't use a guide"):
        train(own, settings(guide__model=str(teacher)))
    both = {"guide__model": str(teacher), "teacher__model": str(teacher)}
    found = plan(sources, settings(**both, **EVERYTHING), progress=False)
    assert found["advisers"] == {"guide": str(teacher), "teacher": str(teacher)}
    assert not (tmp_path / "cache" / "vectors").exists()


def test_scores_are_matched_by_text(tmp_path):
    one = {"anchor": "a", "positive": "b", "negative_1": "c", "negative_2": "d"}
    rows = [
        {**one, "teacher_scores": [9.0, 1.0, 2.5]},
        {"anchor": "b", "positive": "a", "negative_1": "c", "teacher_scores": [8.0, -1.0]},
    ]
    data = put(tmp_path / "rows.jsonl", rows)
    examples = read_examples(data)
    found = scores_from_file(put(tmp_path / "scores.jsonl", rows[::-1]), examples, None)
    np.testing.assert_array_equal(found, [[9, 1, 2.5], [8, -1, np.nan]])
    np.testing.assert_allclose(scores_from_file(data, examples, (-1.0, 9.0))[1, :2], [0.9, 0])
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("text1\ttext2\tscore\na\tc\t1\na\tb\t9\nb\ta\t8\nb\tc\t-1\na\td\t2.5\n")
    np.testing.assert_array_equal(scores_from_file(pairs, examples, None), found)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{}], "found the columns anchor, positive; expected teacher_scores"),
        ([{"positive": "x", "teacher_scores": 1}], "has no score for 1 training pairs, .* 'a' and 'b'"),
        ([{"teacher_scores": [1, 2]}], ":1: found 2 scores for 1 pairs"),
        ([{"teacher_scores": "high"}], ":1: teacher_scores is not a number"),
        (
            [{"teacher_scores": score} for score in (1, 2)],
            ":2: 'a' and 'b' have the scores 1 and 2; keep one",
        ),
    ],
)
def test_invalid_score_files_are_refused(rows, message, tmp_path):
    pair = {"anchor": "a", "positive": "b"}
    examples = read_examples(put(tmp_path / "data.jsonl", [pair]))
    with pytest.raises(DataError, match=message):
        scores_from_file(put(tmp_path / "scores.jsonl", [pair | row for row in rows]), examples, None)


def test_scores_are_trained_and_recorded(bert, tmp_path):
    drawn, texts = random.Random(1), sentences(30)
    names = ("anchor", "positive", "negative")
    rows = [
        {
            **dict(zip(names, drawn.sample(texts, 3), strict=True)),
            "teacher_scores": [drawn.uniform(5, 9), drawn.uniform(-9, 3)],
        }
        for _ in range(16)
    ]
    data = put(tmp_path / "rows.jsonl", rows)
    flags = {"preset": "auto", "teacher__scores": str(data), "teacher__score_range": "-10,10"}
    record = run(data, bert, tmp_path / "m", **flags)
    assert record["origin"]["settings"]["objective"]["weights"]["margin_mse"] == 1
    assert record["history"][0]["margin_mse"] == record["history"][0]["loss"]
    assert record["advisers"] == {"teacher_scores": {"file": "rows.jsonl"}}
    assert "Scores of a teacher: `rows.jsonl`." in (tmp_path / "m" / "README.md").read_text()
    for more, message in (
        ({"objective__weights__embed_distill": 1}, "scores, expected its vectors"),
        ({"teacher__scores": str(tmp_path / "none.jsonl")}, r"teacher_scores=.*none.jsonl': no such file"),
    ):
        with pytest.raises(ConfigError, match=message):
            run(data, bert, tmp_path / "n", **{**flags, **more})
