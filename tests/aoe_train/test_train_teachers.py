"""Guides and teachers in a run: vectors, scores, resuming and refused combinations."""

import random
import shutil

import polars as pl
import pytest

from aoe_train import Encoder, plan, train
from tests.aoe_train.tiny import (
    WORDS,
    card_of,
    edit,
    load,
    save_bert,
    write_lines,
    write_rows,
)
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    input_error,
    module_fixture,
    parametrize,
    table,
)

PARTS = ("embed_distill", "score_distill", "margin_mse")
EMBED, SCORE, MARGIN = ({f"objective.weights.{part}": 1} for part in PARTS)
EVERYTHING = EMBED | SCORE | MARGIN


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))


@module_fixture
def teacher(tmp_path_factory):
    """A model with another size and prompts for queries and documents."""
    folder = tmp_path_factory.mktemp("teacher")
    save_bert(folder / "bert", dim=16, layers=1, seed=7)
    prompts = {"query": "the ", "document": "a "}
    load(folder / "bert", pooling="avg", prompts=prompts).save(folder / "model")
    return folder / "model"


def sentences(count, seed=0):
    drawn = random.Random(seed)
    return [" ".join(drawn.sample(WORDS, drawn.randint(3, 7))) for _ in range(count)]


def draw_rows(drawn, texts, rows, negative):
    """Rows of three different texts."""
    names = ("anchor", "positive", negative)
    return [dict(zip(names, drawn.sample(texts, 3), strict=True)) for _ in range(rows)]


def triplets():
    """Rows with one or two negatives, and texts that repeat in other columns."""
    drawn, texts = random.Random(3), sentences(30)
    found = draw_rows(drawn, texts, 24, "negative_1")
    for row in found[::2]:
        others = [text for text in texts if text not in row.values()]
        row["negative_2"] = drawn.choice(others)
    return found


def how(**settings):
    given = {"preset": "simcse", "optim.lr": 1e-3, "optim.batch_size": 8}
    return {"settings": {**given, "optim.epochs": 1, "log.steps": 1, **settings}}


def run(data, backbone, out, **settings):
    return train(data, backbone=backbone, out=out, **how(**settings))


@parametrize(
    "prompts", [None, {"anchor": "is ", "positive": "with ", "negative": "is "}]
)
def test_a_teacher_reads_each_text_once_with_its_columns_prompt(
    shallow, teacher, tmp_path, monkeypatch, prompts
):
    seen = []
    original = Encoder.encode

    def encode(self, texts, prompt=None, **options):
        if self.dim == 16:
            seen.extend((prompt, text) for text in texts)
        return original(self, texts, prompt=prompt, **options)

    monkeypatch.setattr(Encoder, "encode", encode)
    rows = triplets()
    rows[0]["anchor"] = "<p>the man</p>"
    given = EMBED | {"teacher.model": str(teacher), "teacher.prompts": prompts}
    run(rows, shallow, tmp_path / "m", **given)
    own = prompts or {"anchor": "the ", "positive": "a ", "negative": "a "}
    expected = {
        (own[name.rpartition("_")[0] or name], text)
        for row in rows
        for name, text in row.items()
    }
    assert {*seen} == expected
    assert len(seen) == len(expected)
    # A file a prompt.
    assert len([*(tmp_path / "cache" / "vectors").glob("*.npy")]) == 2
    run(rows, shallow, tmp_path / "again", **given, seed=7)
    assert len(seen) == len(expected)  # the second run reads the cache


@parametrize("data", [triplets(), sentences(24)], ids=["triplets", "texts"])
def test_learning_from_oneself_costs_nothing(tmp_path, data):
    """Without dropout, the vectors of teacher and model are the same, text by text."""
    still = tmp_path / "still"
    load(save_bert(tmp_path / "bert", layers=1, dropout=0.0), pooling="avg").save(still)
    given = {"teacher.model": str(still), "objective.weights": {"embed_distill": 1}}
    found = run(data, still, tmp_path / "m", preset="auto", **given)
    assert found.history[0]["embed_distill"] == approx(0, abs=1e-5)


def test_guide_and_teacher_are_recorded(shallow, teacher, out, tmp_path):
    settings = EVERYTHING | {"guide.model": str(teacher), "teacher.model": str(teacher)}
    found = run(triplets(), shallow, out, **settings)
    assert {*PARTS, "contrastive"} <= found.history[0].keys()
    told = found.record["advisers"]["teacher"]
    others = dict.fromkeys(("positive", "negative_1", "negative_2"), "a ")
    assert told["prompts"] == {"anchor": "the ", **others}
    assert told["dim"] == 16
    assert found.record["origin"]["teacher"]["weights"] == told["weights"]
    other = save_bert(tmp_path / "other", dim=16, layers=1, seed=8)
    with config_error(r"other settings: .*teacher\.weights"):
        run(triplets(), shallow, out, **settings | {"teacher.model": str(other)})


def pairs():
    columns = {"anchor": sentences(16), "positive": sentences(16, 1)}
    return pl.DataFrame(columns).to_dicts()


def test_vectors_from_a_file(shallow, tmp_path):
    texts = [*sentences(16), *sentences(16, 1)]
    vectors = load(shallow).encode(texts)  # of the student's size
    brought = tmp_path / "vectors.parquet"
    settings = EMBED | {"teacher.model": str(brought)}
    pl.DataFrame({"text": texts, "vector": vectors}).write_parquet(brought)
    found = run(pairs(), shallow, tmp_path / "file", **settings)
    assert found.record["advisers"]["teacher"]["file"]
    # Single texts are read without tags.
    tagged = [f"<p>{text}</p>" for text in texts]
    pl.DataFrame({"text": tagged, "vector": vectors}).write_parquet(brought)
    run(tagged, shallow, tmp_path / "tagged", **settings, preset="auto")


@table(
    """
    columns, message
    {'sentence': ['a'], 'vector': [[1.0]]} | the columns sentence, vector; expected text and vector
    {'text': ['a'], 'vector': ['b']} | vector has no lists of numbers
    {'text': ['a'], 'vector': [[[1.0], [2.0]]]} | vector has no lists of numbers
    EMPTY | vector has no lists of numbers
    {'text': ['a', 'b'], 'vector': [[1.0, 2.0], [1.0]]} | parquet:2: vector has 1 numbers, .*; expected 2
    {'text': ['a', 'b'], 'vector': [[1.0], [None]]} | parquet:2: vector has .* NaN, infinity or null
    {'text': ['a'], 'vector': [['b']]} | parquet:1: vector has .* null
    INT8 | vector has quantised vectors
    {'text': ['a'], 'vector': [[1]]} | has no vector for 32 of 32 training texts, such as
    """,
    EMPTY=pl.DataFrame(schema={"text": pl.String, "vector": pl.List(pl.Float32)}),
    INT8=pl.DataFrame([["a"], [[1]]], {"text": pl.String, "vector": pl.List(pl.Int8)}),
)
def test_invalid_vector_files_are_refused(columns, message, shallow, tmp_path):
    brought = tmp_path / "vectors.parquet"
    pl.DataFrame(columns).write_parquet(brought)
    settings = EMBED | {"teacher.model": str(brought)}
    with data_error(message):
        run(pairs(), shallow, tmp_path / "m", **settings)


@table(
    r"""
    settings, message
    objective.weights.embed_distill=1 | embed_distill: needs a teacher
    teacher.model=TEACHER | no part of the objective \(contrastive\) learns from one
    guide.model=TEACHER; preset=cosent | has in-batch negatives to filter
    guide.model=DOT | compared by dot; expected a model with cosine
    guide.model=RERANKER | is a classifier or reranker, .*teacher_scores=
    teacher.model=DOT; SCORE | by dot, the model's by cosine, but score_distill needs
    teacher.model=x.parquet; EMBED | no such file; give a model, or a file of vectors
    teacher.model=x.npy | a .npy lacks the texts
    teacher.prompts=q:  | teacher: has settings but no model; give teacher=
    teacher.score_range=0,1 | no effect without teacher_scores=
    teacher.model=TEACHER; teacher.prompts={text = "q: "}; EMBED | teacher.prompts: no column
    teacher.model=x.parquet; teacher.prompts=q:  | have no effect on vectors from a file
    """,
)
def test_invalid_combinations_are_refused_before_encoding(
    settings, message, shallow, teacher, tmp_path
):
    load(teacher, similarity_fn_name="dot").save(tmp_path / "dot")
    reranker = shutil.copytree(teacher, tmp_path / "reranker")
    edit(reranker / "config.json", architectures=["BertForSequenceClassification"])
    for name, value in {
        "TEACHER": teacher,
        "DOT": tmp_path / "dot",
        "RERANKER": reranker,
        "EMBED": "objective.weights.embed_distill=1",
        "SCORE": "objective.weights.score_distill=1",
    }.items():
        settings = settings.replace(name, str(value))
    given = ["preset=simcse", *settings.split("; ")]
    with config_error(message) as raised:
        train(triplets(), backbone=shallow, out=tmp_path / "m", settings=given)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "cache" / "vectors").exists()


def test_custom_loss_refuses_a_guide_and_plan_encodes_nothing(
    shallow, teacher, tmp_path
):
    both = {"guide.model": str(teacher), "teacher.model": str(teacher)}
    own = {"objective": lambda vectors, _: vectors.sum(), **how(**both)}
    with config_error("a custom loss can't use a guide"):
        plan(triplets(), backbone=shallow, **own)
    found = plan(triplets(), backbone=shallow, **how(**both, **EVERYTHING))
    assert found.record["advisers"] == {"guide": str(teacher), "teacher": str(teacher)}
    assert not (tmp_path / "cache" / "vectors").exists()


@table(
    """
    rows, message
    [{}] | found the columns anchor, positive; expected teacher_scores
    [{'positive': 'x', 'teacher_scores': 1}] | has no score for 1 training pairs, .* 'a' and 'b'
    [{'teacher_scores': [1, 2]}] | :1: found 2 scores for 1 pairs
    [{'teacher_scores': 'high'}] | :1: the score is not a number
    [{'teacher_scores': 1}, {'teacher_scores': 2}] | :2: 'a' and 'b' have the scores 1 and 2; keep one
    [] | none.jsonl': no such file
    """,
)
def test_invalid_score_files_are_refused(rows, message, shallow, tmp_path):
    pair, file = {"anchor": "a", "positive": "b"}, tmp_path / "none.jsonl"
    if rows:
        file = write_rows(tmp_path / "scores.jsonl", [pair | row for row in rows])
    given = {"preset": "auto", "teacher.scores": str(file)}
    with input_error(message):
        run([pair], shallow, tmp_path / "m", **given)


def scored():
    """Triplets with the scores of a teacher."""
    drawn = random.Random(1)
    rows = draw_rows(drawn, sentences(90), 16, "negative")
    return [
        {**row, "teacher_scores": [drawn.uniform(5, 9), drawn.uniform(-9, 3)]}
        for row in rows
    ]


def test_scores_are_matched_by_text_trained_and_recorded(shallow, out, tmp_path):
    data = write_rows(tmp_path / "rows.jsonl", scored())
    settings = {
        "teacher.scores": str(data),
        "teacher.score_range": "-10,10",
        "preset": "auto",
    }
    found = run(data, shallow, out, **settings)
    assert found.record["origin"]["settings"]["objective"]["weights"]["margin_mse"] == 1
    assert found.history[0]["margin_mse"] == found.history[0]["loss"]
    assert found.record["advisers"] == {"teacher_scores": {"file": "rows.jsonl"}}
    assert "Scores of a teacher: `rows.jsonl`." in card_of(out)
    # Rows in another order, or pairs with a score each, give the same losses.
    turned = write_rows(tmp_path / "turned.jsonl", scored()[::-1])
    lines = [
        f"{row['anchor']}\t{row[name]}\t{row['teacher_scores'][place]}"
        for row in scored()
        for place, name in enumerate(("positive", "negative"))
    ]
    listed = write_lines(tmp_path / "pairs.tsv", ["text1\ttext2\tscore", *lines])
    for file in (turned, listed):
        given = settings | {"teacher.scores": str(file)}
        again = run(data, shallow, tmp_path / file.stem, **given)
        assert again.history == found.history
    with config_error("scores, expected its vectors"):
        run(data, shallow, tmp_path / "n", **settings, **EMBED)
    with config_error("found single texts, expected pairs or triplets"):
        run(sentences(8), shallow, tmp_path / "n", **settings | SCORE)
