"""Hard negatives: by hand, by any data, as sentence-transformers finds them, and from the command line."""

import random
from collections import defaultdict
from itertools import chain

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train import Encoder, mine
from pairkit import DataError
from tests.aoe_train.shorthand import aoe_json
from tests.aoe_train.tiny import WORDS, Wrapped, load, sentence_transformer
from tests.support.shorthand import (
    approx,
    data_error,
    input_error,
    module_fixture,
    pair_table,
    parametrize,
    raises,
    table,
    values,
)


def negatives(rows):
    found = rows.select("^negative_.*$").iter_rows()
    return [[text for text in row if text is not None] for row in found]


SHIPS = pair_table(
    values("""
    the red boat sinks | crimson ship going under | 1
    the red boat sinks | boat of red goes down | 1
    a dog barks loudly | loud dog | 1
    a cat sleeps | the red car | 0
    """)
)


def test_the_nearest_by_words_that_are_no_positives():
    """Of the anchor's words red is in two other texts: one is its positive, the other is taken."""
    found = mine(SHIPS, num_negatives=1)
    assert found.splits["train"].rows()[:2] == [
        ("the red boat sinks", "crimson ship going under", "the red car"),
        ("the red boat sinks", "boat of red goes down", "the red car"),
    ]
    assert found.statistics["dropped_rows"] == {"not_positive": 1}
    data = pair_table([("red boat", "ship", 1), ("red boat", "red car", 0)])
    assert mine(data).statistics["splits"]["train"]["labelled_negatives"] == 1


def test_a_row_that_gets_none_is_counted():
    data = {"anchor": ["red boat", "zebra"], "positive": ["big ship", "striped horse"]}
    with data_error("no row got a negative"):
        mine(pl.DataFrame(data))
    data["positive"][1] = "red horse"
    found = mine(pl.DataFrame(data), num_negatives=2)
    assert found.splits["train"].rows() == [("red boat", "big ship", "red horse", None)]
    assert found.statistics["dropped_rows"] == {"no_negative": 1}
    assert found.statistics["splits"]["train"]["rows_with_fewer"] == 1


class Given(Wrapped):
    """A model with a given cosine of each text with all anchors, which are the texts without one."""

    def __init__(self, bert, cosines):
        super().__init__(load(bert))
        self.cosines = cosines

    def encode(self, texts, **_):
        vectors = np.zeros((len(texts), self.dim), np.float32)
        vectors[:, 0] = [self.cosines.get(text, 1) for text in texts]
        vectors[:, 1] = np.sqrt(1 - vectors[:, 0] ** 2)
        return vectors


def test_two_rankings_alternate(bert):
    cosines = {"red ship": 0.1, "red boat sinks": 0.3, "a dog": 0.2, "a cat": 0.4}
    data = pl.DataFrame({"anchor": ["red boat"], "positive": ["yes"]})
    how = {"by": "both", "num_negatives": 4, "scores": True}
    model = Given(bert, cosines | {"yes": 0.9})
    found = mine(data, corpus=[*cosines], model=model, **how).splits["train"]
    assert negatives(found) == [["a cat", "red boat sinks", "red ship", "a dog"]]
    assert found["scores"].to_list() == [approx([0.9, 0.4, 0.3, 0.1, 0.2])]


@table(
    """
    transitive, expected
    True | {'w'}
    False | {'y', 'z', 'w'}
    """,
)
def test_near_duplicates_positives_and_clusters_are_excluded(
    bert, transitive, expected
):
    rows = [("a b c d e f g", "x", ""), ("x", "y", "c"), ("z", "v", "c")]
    data = pl.DataFrame(rows, ["text1", "text2", "cluster"], orient="row")
    how = {"model": Given(bert, {}), "corpus": ["A b c d  e f g!", *"xyzw"]}
    found = mine(data.with_columns(label=1), transitive=transitive, **how)
    assert {*negatives(found.splits["train"])[0]} == expected


CLUSTERED = pl.DataFrame(
    values("""
    file error one | crash on open | 1 | x
    file error two | panics when opening | 1 | x
    file error three | does not start | 1 | x
    other error | words here | 1 | y
    big bird | small bird | 1 | z
    """),
    ["text1", "text2", "label", "cluster"],
    orient="row",
)


def test_clusters_are_kept_apart_and_the_estimate_counts_what_they_save():
    """Of each of the three anchors the two others are nearest; by the cluster they are positives."""
    found = mine(CLUSTERED.drop("cluster"), num_negatives=2).splits["train"]
    assert "file error two" in chain(*negatives(found))
    with_clusters = mine(CLUSTERED, num_negatives=2)
    assert negatives(with_clusters.splits["train"])[:3] == [["other error"]] * 3
    estimate = with_clusters.statistics["false_negatives"]
    assert (estimate["positives"], estimate["telling"], estimate["mined"]) == (6, 6, 8)
    assert estimate["share_where_known"] == 1
    assert with_clusters.false_negatives == 6 / 8


_TEXT = st.lists(st.sampled_from(WORDS[:12]), min_size=1, max_size=4).map(" ".join)
_ROW = st.tuples(_TEXT, _TEXT, st.sampled_from([1, 1, 0]))


@settings(max_examples=20)
@given(
    st.lists(_ROW, min_size=3, max_size=25),
    st.booleans(),
    st.integers(1, 4),
    st.sampled_from(["top", "random"]),
)
def test_no_positive_is_ever_mined(rows, transitive, count, sampling):
    rows = [*rows, ("a man", "the man", 1)]
    data = pair_table(rows)
    how = {"num_negatives": count, "sampling": sampling, "transitive": transitive}
    try:
        found = mine(data, **how)
    except DataError:
        return  # no row got a negative
    table = found.splits["train"]
    assert table.equals(mine(data, **how).splits["train"])
    positives = {(one, other) for one, other, label in rows if label}
    partners = defaultdict(set)
    for one, other in positives:
        partners[one] |= {one, other}
        partners[other] |= {one, other}
    everyone = {text for one, other, _ in rows for text in (one, other)}
    for anchor, texts in zip(table["anchor"], negatives(table), strict=True):
        assert 1 <= len(texts) == len({*texts}) <= count
        assert {*texts} <= everyone - partners[anchor]
    dropped = found.statistics["dropped_rows"].get("no_negative", 0)
    assert table.height + dropped == len(positives)


def test_splits_share_no_text_also_with_a_corpus():
    draw = random.Random(1)
    texts = [" ".join(draw.choices(WORDS, k=8)) for _ in range(200)]
    train = pl.DataFrame({"anchor": texts[:40], "positive": texts[40:80]})
    test = pl.DataFrame({"anchor": texts[80:90], "positive": texts[90:100]})
    corpus = [*texts[100:], *train["positive"]]
    found = mine({"train": train, "test": test}, corpus=corpus, num_negatives=3)
    in_train, in_test = (
        {*chain(*found.splits[name].iter_rows())} - {None} for name in ("train", "test")
    )
    assert not in_train & in_test
    assert in_test & {*corpus}
    assert not in_test & {*texts[:80]}


def tuples(seed, rows):
    choose = random.Random(seed)
    texts = [" ".join(choose.sample(WORDS, k=5)) for _ in range(2 * rows)]
    return pl.DataFrame({"anchor": texts[:rows], "positive": texts[rows:]})


@parametrize("by", ["model", "both"])
def test_anchors_are_queries_and_candidates_documents(bert, by):
    encoder = load(bert, prompts={"query": "the man is", "document": "a red boat"})
    how = {"model": encoder, "by": by, "num_negatives": 2, "scores": True}
    found = mine(tuples(2, 12), **how).splits["train"]
    for row, texts in zip(found.iter_rows(named=True), negatives(found), strict=True):
        vectors = encoder.encode_document([row["positive"], *texts], normalize=True)
        cosines = vectors @ encoder.encode_query(row["anchor"], normalize=True)
        assert row["scores"] == approx(cosines, abs=1e-5)


def write_tuples(folder):
    folder.mkdir()
    for seed, (name, rows) in enumerate({"train": 30, "test": 12}.items()):
        tuples(seed, rows).write_ndjson(folder / f"{name}.jsonl")
    return folder


@parametrize("kept", [True, False])
def test_a_run_that_was_stopped_goes_on_with_its_vectors(
    bert, out, tmp_path, monkeypatch, kept
):
    data = write_tuples(tmp_path / "data")

    def stop(*_, **__):
        raise KeyboardInterrupt

    def stop_mining(at):
        if at.stage.startswith("mine "):
            stop()

    encoder = load(bert)
    work = {"work": tmp_path / "work"} if kept else {}
    with raises(KeyboardInterrupt):
        mine(data, model=encoder, out=out, progress=stop_mining, **work)
    assert not out.exists()
    whole = mine(data, model=encoder).splits["train"]
    monkeypatch.setattr(Encoder, "encode", stop)
    assert mine(data, model=encoder, out=out, **work).splits["train"].equals(whole)
    assert not out.with_name("m.work").exists()
    if kept:  # also for a run with other rules
        work["out"] = tmp_path / "other"
        other = mine(data, model=encoder, rank_range=(5, 40), **work)
        assert not other.splits["train"].equals(whole)


@table(
    """
    data, options, words
    SHIPS | {'by': 'model'} | needs a model
    SHIPS | {'by': 'bm25', 'model': 'minilm'} | doesn't use a model
    SHIPS | {'rank_range': '50,10'} | such as 10,50
    SHIPS | {'rank_range': (0, 3), 'num_negatives': 5} | 5 negatives from 3 candidates
    SHIPS | {'corpus_columns': {'text': 'body'}} | applies to a corpus
    SHIPS | {'precision': 'bf16'} | applies to a model; add one
    SHIPS | {'model': ['minilm', 'smollm2']} | found several, expected one
    SHIPS | {'out': 'm', 'work': 'm/vectors'} | would replace the working folder m/vectors
    texts.txt | {} | `aoe sample-pairs` draws pairs
    SCORED | {} | labels are scores
    APART | {} | no positives
    SHIPS | OF_PAIRS | expected single texts
    """,
    SHIPS=SHIPS,
    SCORED=SHIPS.with_columns(label=pl.Series([4.2, 5.0, 0.5, 1.0])),
    APART=SHIPS.with_columns(label=0),
    OF_PAIRS={"corpus": SHIPS},
)
def test_what_can_not_be_mined(data, options, words):
    with input_error(words):
        mine(data, **options)


def test_the_command_makes_a_dataset_that_training_reads(bert, out, tmp_path):
    data = write_tuples(tmp_path / "data")
    flags = f"--data {data} --model {bert} --out {out} --num-negatives 3"
    printed = aoe_json(f"mine {flags} --json --quiet")
    rows = {
        path.name.split("-")[0]: pl.read_parquet(path)
        for path in out.rglob("*.parquet")
    }
    assert rows.keys() == {"train", "test"}
    columns = ["negative_1", "negative_2", "negative_3"]
    assert rows["train"].columns == ["anchor", "positive", *columns]
    count = rows["train"].select(columns).count().sum_horizontal().item()
    assert printed["splits"]["train"]["negatives"] == count
    assert not out.with_name("m.work").exists()
    next(out.rglob("test-*.parquet")).unlink()
    with data_error("no such file"):
        aoe_json(f"mine {flags} --json")


def test_random_negatives_are_of_the_range_and_the_seed_and_a_finished_run_returns_them(
    out,
):
    source = {"train": tuples(0, 40), "test": tuples(1, 40)}

    def found(**how):
        how |= {"rank_range": (3, 12), "scores": True, "candidates": "all"}
        return mine(source, **how).splits

    how = {"num_negatives": 2, "sampling": "random"}
    once, again, anew = (
        found(**how, seed=1, **more) for more in ({"out": out}, {"out": out}, {})
    )
    assert [*again] == [*once] == ["train", "test"]
    for split in source:
        assert once[split].equals(again[split])
        assert once[split].equals(anew[split])
    assert not once["train"].equals(found(**how)["train"])
    in_range = negatives(found(num_negatives=9)["train"])
    for some, every in zip(negatives(once["train"]), in_range, strict=True):
        assert {*some} <= {*every}
    assert negatives(once["train"]) != negatives(found(num_negatives=2)["train"])


@module_fixture
def real(minilm):
    """One model, as we load it and as sentence-transformers does; its cosines are far enough apart."""
    pytest.importorskip("sentence_transformers")
    return load(minilm, precision="fp32"), sentence_transformer(minilm)


@table(
    """
    ours, theirs
    {} | {}
    {'corpus': True} | {}
    {'margin': 0.05, 'rank_range': (0, 30)} | {'absolute_margin': 0.05, 'range_max': 30}
    {'relative_margin': 0.1, 'rank_range': (0, 30)} | {'relative_margin': 0.1, 'range_max': 30}
    {'rank_range': (1, 24)} | {'range_min': 1, 'range_max': 24}
    """,
)
def test_as_sentence_transformers(real, ours, theirs):
    from datasets import Dataset
    from sentence_transformers.util import mine_hard_negatives

    encoder, model = real
    data = tuples(0, 25)
    if "corpus" in ours:  # theirs has the positives in any case
        corpus = tuples(7, 30)["anchor"].to_list()
        ours = {"corpus": [*corpus, *data["positive"]]}
        theirs = {"corpus": corpus}
    pairs = Dataset.from_dict(data.to_dict(as_series=False))
    how = {"num_negatives": 3, "output_format": "n-tuple", "verbose": False}
    expected = mine_hard_negatives(pairs, model, **how, **theirs)
    found = mine(data, model=encoder, num_negatives=3, **ours)
    rows = found.splits["train"].drop_nulls()
    turned_down = found.statistics["turned_down_candidates"]
    assert all(turned_down[rule] for rule in {*ours} - {"rank_range", "corpus"})
    assert rows.rows() == pl.DataFrame(expected.to_dict()).rows()
    assert rows.height > 10
