"""Folders in BEIR's layout."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

import aoe_train
import pairkit
from pairkit import DataError

DOCUMENTS, QUERIES = 130, 9


def write(folder: Path, rows: list[str], split: str = "test") -> Path:
    """A folder of texts that are numbers; query q3 has the id of a document."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    documents = [
        {"_id": f"d{n}", "title": f"{n}" if n % 2 else "", "text": f"of {n}"} for n in range(DOCUMENTS)
    ]
    queries = [{"_id": "d7" if n == 3 else f"q{n}", "text": f"query {n}"} for n in range(QUERIES)]
    for name, objects in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in objects))
    (folder / "qrels" / f"{split}.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    return folder


def encode(texts: list[str]) -> np.ndarray:
    return np.array([np.random.default_rng([*text.encode()]).normal(size=6) for text in texts], np.float32)


def scores(folder: Path, **more: Any) -> dict[str, float]:
    found = aoe_train.evaluate(encode, data=folder, resamples=0, progress=False, **more)
    (figures,) = found.to_dict().values()
    return figures


def test_metrics_equal_those_of_a_sorted_list(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    gains = {
        f"q{n}": {f"d{d}": int(random.integers(0, 4)) for d in random.choice(130, 12, replace=False)}
        for n in range(8)
    }
    gains["d7"] = gains.pop("q3") | {"d7": 3}
    rows = [f"{query}\t{document}\t{gain}" for query, of in gains.items() for document, gain in of.items()]
    folder = write(tmp_path, rows)
    corpus = [f"{n} of {n}" if n % 2 else f"of {n}" for n in range(DOCUMENTS)]
    vectors = encode(corpus).astype(float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    expected: dict[str, list[float]] = {"ndcg@10": [], "mrr@10": [], "recall@10": [], "recall@100": []}
    for query, of in gains.items():
        kept = [n for n in range(DOCUMENTS) if f"d{n}" != query]
        cosines = vectors[kept] @ encode([f"query {3 if query == 'd7' else query[1:]}"])[0]
        gain = np.array([of.get(f"d{n}", 0) for n in kept])
        ranked = gain[np.argsort(-cosines)]
        relevant = sum(value > 0 for value in of.values())
        ideal_with_own = ndcg_score([[*gain, of.get(query, 0)]], [[*cosines, -9]], k=10)
        expected["ndcg@10"].append(ideal_with_own)
        expected["mrr@10"].append(next((1 / rank for rank, value in enumerate(ranked[:10], 1) if value), 0))
        for depth in (10, 100):
            expected[f"recall@{depth}"].append((ranked[:depth] > 0).sum() / relevant)
    found = scores(folder)
    assert {name: found[name] for name in expected} == pytest.approx(
        {n: np.mean(v) for n, v in expected.items()}
    )
    assert found["n"] == len(gains)


def test_relevant_documents_are_pairs(tmp_path: Path) -> None:
    folder = write(tmp_path, ["q0\td5\t1", "q0\td6\t0", "q2\td4\t2"], "dev")
    splits = pairkit.read(write(folder, ["d7\td7\t1"], "train")).splits
    texts = {split: rows.select("text1", "text2").rows() for split, rows in splits.items()}
    assert texts == {
        "train": [("query 3", "7 of 7")],
        "validation": [("query 0", "5 of 5"), ("query 2", "of 4")],
    }


def test_ties_count_against_relevant_documents(tmp_path: Path) -> None:
    folder = write(tmp_path, ["q0\td5\t1"])
    found = aoe_train.evaluate(
        lambda texts: np.ones((len(texts), 2)), data=folder, resamples=0, progress=False
    )
    assert found.to_dict()[folder.name]["recall@100"] == 0


def test_splits_and_unusable_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path, ["q0\td5\t1", "q0\tx\t1", "x\td5\t1", "q1\td1\t0"], "dev")
    aoe_train.evaluate(encode, data=folder, split="validation", resamples=0)
    assert "left out 2 judgements of unknown queries or documents" in capsys.readouterr().err
    for rows, split, message in (
        (["q0\td5\t1"], "test", "no judgements of test, found validation; choose with split="),
        (["q0\td5\tyes"], "validation", r"dev\.tsv:2: expected a number as score"),
        (["q0\tx\t1"], "validation", "no relevant document of a query"),
    ):
        write(folder, rows, "dev")
        with pytest.raises(DataError, match=message):
            scores(folder, split=split)
    with pytest.raises(DataError, match=r"dev\.tsv:2: no query or document with the id q0 or x; remove"):
        pairkit.read(folder)
    (folder / "corpus.jsonl").write_text('{"id": "a", "text": "b"}\n')
    with pytest.raises(DataError, match=r"corpus\.jsonl: no column _id; expected _id and text"):
        scores(folder, split="validation")
