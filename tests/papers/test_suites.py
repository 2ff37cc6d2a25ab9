"""The papers' suites: files, the classifier against SentEval's loops, rankings against sorted lists."""

from __future__ import annotations

import gzip
import itertools
import json
import warnings
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, ndcg_score
from sklearn.model_selection import StratifiedKFold

import aoe_train
from aoe_train import evaluate
from papers import suites
from papers.__main__ import app
from papers.suites import find_tasks, nli, transfer
from papers.suites.evaluate import compare_with_published
from papers.suites.probe import ClassTask, Detection, JoinedTask, predict
from papers.suites.retrieval import CaptionTask
from tests.aoe_train.embeddings_server import serving
from tests.published import REAL, real_data, write_table
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    parametrize,
    raises,
    table,
    values,
)

NARROW, WIDE = [2.0**t for t in range(-2, 4)], [2.0**t for t in range(-1, 6)]


def blobs(size, classes=2, seed=0, dim=5):
    """Overlapping clouds, so that some predictions are wrong and the penalty matters."""
    labels = np.arange(size) % classes
    centres = default_rng(99).normal(size=(classes, dim))
    noise = 1.2 * default_rng(seed).normal(size=(size, dim))
    return (centres[labels] + noise).astype(np.float32), labels


def fit(c, x, y):
    exact = LogisticRegression(C=c, tol=1e-8, solver="newton-cholesky")
    return exact.fit(x.astype(float), y)


def folds(y):
    ten = StratifiedKFold(10, shuffle=True, random_state=1111)
    return [*ten.split(y, y)]


def chosen(regs, x, y):
    def score(c):
        accuracies = [fit(c, x[a], y[a]).score(x[b], y[b]) for a, b in folds(y)]
        return round(100 * np.mean(accuracies), 2)

    return max(regs, key=score)


def test_one_part_uses_nested_folds():
    x, y = blobs(80)
    found = predict((x, y))
    assert 0.6 < np.mean(found == y) < 0.99
    for a, b in folds(y)[::8]:
        expected = fit(chosen(NARROW, x[a], y[a]), x[a], y[a]).predict(x[b])
        assert found[b].tolist() == expected.tolist()


def test_two_parts_choose_the_penalty_by_folds_of_train():
    (x, y), test = blobs(150, 3), blobs(300, 3, seed=1)
    expected = fit(chosen(WIDE, x, y), x, y).predict(test[0])
    assert predict((x, y), test).tolist() == expected.tolist()
    nothing = np.zeros((60, 2), np.float32)
    with data_error("all examples have one class"):
        predict((nothing, np.zeros(60, int)))
    with data_error("only 5 examples of class 1; expected at least 20"):
        predict((nothing, np.array([0] * 55 + [1] * 5)), blobs(10))


@parametrize("length", [1e-3, 1.0, 300.0])
def test_three_parts_choose_the_penalty_by_dev_at_any_vector_length(length):
    parts = blobs(40, 3, 1), blobs(200, 3, 11), blobs(300, 3, 21)
    train, dev, test = ((x * np.float32(length), y) for x, y in parts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = predict(train, dev, test)
    if length == 1.0:
        best = max(NARROW, key=lambda c: round(fit(c, *train).score(*dev), 4))
        assert found.tolist() == fit(best, *train).predict(test[0]).tolist()


@settings(max_examples=25)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3)), min_size=1))
def test_weighted_detection_equals_repeated_examples(rows):
    predicted, gold, counts = np.array([*rows, (False, True, 1)]).T
    figures = Detection(predicted > 0, gold > 0).figures(counts[None].astype(float))
    often = np.repeat(gold, counts), np.repeat(predicted, counts)
    assert figures["accuracy"][0] == approx(accuracy_score(*often))
    assert figures["f1"][0] == approx(f1_score(*often))


def test_f1_without_gold_and_predicted_members_is_not_a_number():
    no = np.array([False])
    assert np.isnan(Detection(no, no).figures(np.ones((1, 1)))["f1"])


GOOD = ["a fine film", "good", "well done indeed , it is"]
BAD = ["a dull film", "bad", "", "café closed , a pity"]
SST = {"train": "good film\t1\nbad\t0\nfine\t1", "dev": "dull\t0", "test": "a pity\t0"}
TREC = {"train": "NUM\tHow far ?\nHUM\tWho is José ?", "test": "DESC\tWhy ?"}
MRPC = {"train": '1\tit rains a lot\train\n0\the said "no"\tcows', "test": "1\ta b\tb"}


def write(path, *lines, encoding="utf-8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = ("\n".join(lines) + "\n").encode(encoding)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def tables(folder, suffix=".gz"):
    rows = [f"1\t{text}" for text in GOOD] + [f"0\t{text}" for text in BAD]
    for task in ("MR", "CR", "SUBJ", "MPQA"):
        write(folder / f"senteval/{task}.tsv{suffix}", "label\ttext", *rows)
    for part, some in SST.items():
        turned = ["\t".join(row.split("\t")[::-1]) for row in some.splitlines()]
        write(folder / f"senteval/SST2-{part}.tsv{suffix}", "label\ttext", *turned)
    for part, asked in TREC.items():
        write(folder / f"senteval/TREC-{part}.tsv{suffix}", "coarse\ttext", asked)
    for part, pairs in MRPC.items():
        head = "label\tsentence1\tsentence2"
        write(folder / f"pairs/mrpc-{part}.tsv{suffix}", head, pairs)
    return folder


def originals(folder):
    """SentEval's layout."""
    for name in ("MR/rt-polarity.{}", "CR/custrev.{}", "MPQA/mpqa.{}"):
        write(folder / name.format("pos"), *GOOD)
        write(folder / name.format("neg"), *BAD)
    write(folder / "SUBJ/subj.subjective", *GOOD)
    write(folder / "SUBJ/subj.objective", *BAD)
    for part, some in SST.items():
        write(folder / f"SST/binary/sentiment-{part}", some)
    for part, name in (("train", "train_5500"), ("test", "TREC_10")):
        asked = TREC[part].replace("\t", ":x ")
        write(folder / f"TREC/{name}.label", asked, encoding="latin-1")
    for part, pairs in MRPC.items():
        lines = [row.replace("\t", "\t1\t2\t", 1) for row in pairs.splitlines()]
        head = "Quality\t#1 ID\t#2 ID\t#1\t#2"
        write(folder / f"MRPC/msr_paraphrase_{part}.txt", head, *lines)
    return folder


@pytest.fixture
def small(monkeypatch):
    """Files may have any number of rows."""
    monkeypatch.setattr(transfer, "check_size", lambda *_: None)


def seen(folder, name):
    ((task,), _) = find_tasks("transfer", folder, [name])
    assert isinstance(task, ClassTask)
    return [(part.columns, part.classes.tolist()) for part in task.parts]


@pytest.mark.usefixtures("small")
@parametrize("name", transfer.TASKS)
def test_all_layouts_give_the_same_examples(name, tmp_path):
    packed = seen(tables(tmp_path / "packed"), name)
    assert packed == seen(tables(tmp_path / "plain", ""), name)
    assert packed == seen(originals(tmp_path / "own"), name)
    if name == "MR":  # ordered by words and class, a full stop for no text
        (((texts,), classes),) = packed
        assert texts[:5] == [".", "bad", "good", "a dull film", "a fine film"]
        assert texts[5:] == ["café closed , a pity", GOOD[2]]
        assert classes == [0, 0, 1, 0, 1, 0, 1]


def test_damaged_and_missing_files_of_transfer(tmp_path, request):
    folder = tables(tmp_path)
    with data_error(r"SST2-train\.tsv\.gz: 3 rows, expected 67,349"):
        find_tasks("transfer", folder, ["SST2"])
    request.getfixturevalue("small")
    write(folder / "senteval/CR.tsv.gz", "label\ttext", "1\tgood", "2\tbad")
    with data_error(r"CR\.tsv\.gz:3: class '2'; expected 0, 1"):
        find_tasks("transfer", folder, ["CR"])
    for name in ("SST2-dev", "CR"):
        (folder / f"senteval/{name}.tsv.gz").unlink()
    tasks, missing = find_tasks("transfer", folder)
    assert [task.name for task in tasks] == ["MR", "SUBJ", "MPQA", "TREC", "MRPC"]
    assert missing["SST2"].endswith("SST2-dev.tsv.gz")
    with data_error("has no validation split"):
        find_tasks("transfer", folder, ["MR"], "validation")
    with config_error("no task 'GLUE'"):
        find_tasks("transfer", folder, ["GLUE"])
    write(originals(tmp_path / "own") / "SST/binary/sentiment-dev", "no class")
    with data_error(r"sentiment-dev:1: expected a line of SentEval's SST2"):
        find_tasks("transfer", tmp_path / "own", ["SST2"])


NLI = dict(
    values("""
        snli-train | 90
        snli-dev | 63
        snli-test | 30
        mnli-train | 90
        mnli-validation-matched | 24
        mnli-validation-mismatched | 27
        taxinli-mnli | 120
        """)
)


@pytest.fixture
def inference(tmp_path, monkeypatch):
    """All files of the suite nli, small."""
    monkeypatch.setattr(nli, "_ROWS", NLI)
    for name, size in NLI.items():
        labels = itertools.cycle(["entailment", "neutral", "contradiction"])
        rows = [(next(labels), f"{name} {n}", f"so what {n}") for n in range(size)]
        write_table(tmp_path / f"nli/{name}.tsv", "label\tpremise\thypothesis", rows)
    return tmp_path


def hinted(texts):
    """Noise, and a hint of the class, which the last number gives away."""
    vectors = default_rng(0).normal(size=(len(texts), 4))
    for row, text in enumerate(texts):
        vectors[row, int(text.split()[-1]) % 3] += 1.5
    return vectors.astype(np.float32)


def test_a_suite_is_evaluated_and_compared_with_published_scores(inference, tmp_path):
    found, missing = suites.evaluate(hinted, "nli", inference, resamples=0)
    results = {name: score.result for name, score in found.scores["hinted"].items()}
    assert (found.suite, missing) == ("nli", {})
    taxi = sum(crc32(f"taxinli-mnli {row}".encode()) % 4 == 0 for row in range(120))
    sizes = {"MultiNLI": 51, "SNLI": 30, "SNLI-from-dev": 30, "TaxiNLI": taxi}
    assert {name: result.n for name, result in results.items()} == sizes
    assert all(0.4 < result.scores["accuracy"] < 1 for result in results.values())
    page = compare_with_published("nli", found)
    multi, snli = (100 * results[task].scores["accuracy"] for task in [*sizes][:2])
    assert "## Beside AoE, Table 5" in page
    assert f"| **hinted** | {multi:.2f} | {snli:.2f} |" in page
    assert "| AoE, BERT-base | 56.60 | 63.88 | 60.24 |" in page
    # either half of MultiNLI chooses for the other
    ((task,), _) = find_tasks("nli", inference, ["MultiNLI"])
    assert isinstance(task, JoinedTask)
    vectors = aoe_train.tasks.TaskVectors(hinted, [task.texts], separator=" [SEP] ")
    train, dev, test = (part.features(vectors) for part in task.tests["matched"].parts)
    parts = task.measure(vectors).parts
    assert [n for _, n in parts.values()] == [24, 27]
    for name in ("matched", "mismatched"):
        part, n = parts[name]
        is_right = predict(train, dev, test) == test[1]
        assert (n, part.scores()["accuracy"]) == (
            len(is_right),
            approx(is_right.mean()),
        )
        dev, test = test, dev
    (inference / "nli/snli-train.tsv").unlink()
    some, missing = suites.evaluate(hinted, "nli", inference, resamples=0)
    assert "SNLI" in missing
    assert " | – | – |" in compare_with_published("nli", some)
    for suite, error, words in values("""
            sts | DataError | contains none of the tasks
            glue | ConfigError | --suite glue: expected sts, transfer, nli, retrieval
            """):
        with raises(error, match=words):
            suites.evaluate(hinted, suite, tmp_path)
    with config_error("can't be combined with data_dir"):
        evaluate(hinted, tasks=[captions(3)], data_dir=tmp_path)


def test_a_hosted_model_is_evaluated_and_gets_no_other_hosts_key(
    inference, monkeypatch, capsys
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    given = f"--suite nli --task TaxiNLI --data-dir {inference} --no-cache --json"
    with serving() as server:
        command = f"evaluate --model m --endpoint {server.url} {given}"
        app(command.split(), standalone_mode=False)
    assert 0 < json.loads(capsys.readouterr().out)["TaxiNLI"]["accuracy"] < 1
    assert {asked["model"] for asked in server.asked} == {"m"}
    assert any("taxinli-mnli 0\nso what 0" in asked["input"] for asked in server.asked)
    assert {*server.keys} == {None}


@real_data
def test_published_files():
    tasks, missing = find_tasks("transfer", REAL)
    assert ([task.name for task in tasks], missing) == ([*transfer.TASKS], {})
    tasks, _ = find_tasks("nli", REAL, ["SNLI-from-dev", "TaxiNLI"])
    assert [len(task.texts) for task in tasks] == [9842 + 9824, 10071]


def captions(images):
    return CaptionTask(
        "captions", [tuple(f"{image} {n}" for n in range(5)) for image in range(images)]
    )


def scores(task, vectors):
    known = dict(zip(task.texts, vectors, strict=True))

    def encode(texts):
        return np.array([known[text] for text in texts], np.float32)

    return task.measure(aoe_train.tasks.TaskVectors(encode, [task.texts])).scores()


def by_hand(vectors):
    """Image by image: sort all other captions by cosine, and find the four references."""
    unit = vectors.astype(float) / np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = []
    for query in range(0, len(unit), 5):
        cosines = unit @ unit[query]
        own = range(query + 1, query + 5)
        others = [row for row in range(len(unit)) if row != query]
        ranked = sorted(others, key=lambda row: -cosines[row])
        hits = [row in own for row in ranked]
        first = hits.index(True) + 1
        gold = [[float(row in own) for row in others]]
        figures = {f"recall@{k}": sum(hits[:k]) / 4 for k in (1, 5, 10)}
        figures["strict_accuracy"] = all(hits[:4])  # as the paper words it
        figures["ndcg@10"] = ndcg_score(gold, [cosines[others]], k=10)
        figures["mrr@10"] = 1 / first if first <= 10 else 0
        rows.append(figures)
    return {name: np.mean([row[name] for row in rows]) for name in rows[0]}


@table(
    """
    images, noise
    1 | 1.0
    3 | 0.5
    40 | 0.4
    60 | 5.0
    """,
)
def test_retrieval_metrics_equal_those_of_a_sorted_list(images, noise):
    random = default_rng(images)
    vectors = np.repeat(random.normal(size=(images, 16)), 5, axis=0)
    vectors += noise * random.normal(size=(5 * images, 16))
    vectors *= random.uniform(0.1, 10, size=(5 * images, 1))  # lengths don't count
    vectors = vectors.astype(np.float32)
    assert scores(captions(images), vectors) == approx(by_hand(vectors), abs=1e-12)


def test_ties_rank_captions_of_other_images_first():
    vectors = np.repeat(np.eye(6), 5, axis=0)
    vectors[7] = vectors[0]  # one of image 1 is equal to those of image 0
    found = scores(captions(6), vectors)
    assert found["strict_accuracy"] == approx(4 / 6)
    assert found["recall@10"] == approx((1 + 3 / 4 + 4) / 6)
    assert found["mrr@10"] == approx((1 / 2 + 5) / 6)
    assert set(scores(captions(60), np.ones((300, 4))).values()) == {0}


def test_files_of_captions(tmp_path):
    head = "image\tcaption1\tcaption2\tcaption3\tcaption4\tcaption5"
    rows = [f'{n}.jpg\t"{n} 0\t{n} 1\t{n} 2\t{n} 3\t{n} 4' for n in range(1014)]
    for split, name, images in (("test", "test", 1000), ("validation", "val", 1014)):
        write(tmp_path / f"flickr30k/flickr30k-{name}.tsv.gz", head, *rows[:images])
        ((task,), _) = find_tasks("retrieval", tmp_path, split=split)
        assert (len(task.texts), task.texts[5]) == (5 * images, '"1 0')
    for lines, message in (
        ([head, *rows], "1,014 rows, expected 1,000"),
        ([head.replace("5", "6"), *rows], "no column caption5; found image, caption1"),
        ([head, *rows[:999], "999.jpg\ta\tb\t \td\te"], "gz:1001: an empty caption"),
    ):
        write(tmp_path / "flickr30k/flickr30k-test.tsv.gz", *lines)
        with data_error(message):
            find_tasks("retrieval", tmp_path)
