"""Captions that retrieve one another, against rankings made by plain loops."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from aoe_train._evaluate import SUITES, Vectors, find_tasks
from aoe_train._evaluate.suites.retrieval import CaptionTask
from pairkit.errors import ConfigError, DataError
from tests.published import REAL, WORDS, real_data

RETRIEVAL = SUITES["retrieval"]()


def task_of(images: int) -> CaptionTask:
    return CaptionTask(
        "captions", [tuple(f"{image} {caption}" for caption in range(5)) for image in range(images)]
    )


def scores(task: CaptionTask, vectors: np.ndarray) -> dict[str, float]:
    """The task's figures for vectors in the order of its texts."""
    known = dict(zip(task.texts, vectors, strict=True))
    made = Vectors(lambda texts: np.array([known[text] for text in texts], np.float32), [task.texts])
    return task.judge(made).whole.scores()


def by_hand(vectors: np.ndarray) -> dict[str, float]:
    """Image by image: sort all other captions by cosine, look where the four references are."""
    unit = vectors.astype(float) / np.linalg.norm(vectors, axis=1, keepdims=True)
    rows: dict[str, list[float]] = {}
    for query in range(0, len(unit), 5):
        cosines = unit @ unit[query]
        references = set(range(query + 1, query + 5))
        others = [row for row in range(len(unit)) if row != query]
        order = sorted(others, key=lambda row: -cosines[row])
        hits = [row in references for row in order]
        first = hits.index(True) + 1
        with_itself = sorted(range(len(unit)), key=lambda row: -cosines[row])[:5]
        figures = {
            "strict_accuracy": set(with_itself) == {query, *references},  # as the paper words it
            **{f"recall@{k}": sum(hits[:k]) / 4 for k in (1, 5, 10)},
            "ndcg@10": ndcg_score([[float(row in references) for row in others]], [cosines[others]], k=10),
            "mrr@10": 1 / first if first <= 10 else 0,
        }
        for name, value in figures.items():
            rows.setdefault(name, []).append(float(value))
    return {name: float(np.mean(values)) for name, values in rows.items()}


@pytest.mark.parametrize(("images", "noise"), [(1, 1.0), (3, 0.5), (40, 0.4), (150, 0.6), (60, 5.0)])
def test_figures_are_those_of_a_sorted_list(images: int, noise: float) -> None:
    random = np.random.default_rng(images)
    vectors = np.repeat(random.normal(size=(images, 16)), 5, axis=0) + noise * random.normal(
        size=(5 * images, 16)
    )
    vectors *= random.uniform(0.1, 10, size=(5 * images, 1))  # lengths don't count
    vectors = vectors.astype(np.float32)
    assert scores(task_of(images), vectors) == pytest.approx(by_hand(vectors), abs=1e-12)


def test_a_perfect_model_finds_all_of_them() -> None:
    found = scores(task_of(20), np.repeat(np.eye(20), 5, axis=0))
    assert found == {
        "strict_accuracy": 1,
        "recall@1": 0.25,
        "recall@5": 1,
        "recall@10": 1,
        "ndcg@10": 1,
        "mrr@10": 1,
    }


def test_a_model_that_tells_nothing_apart_finds_none() -> None:
    for vectors in (np.ones((300, 4)), np.zeros((300, 4))):
        assert set(scores(task_of(60), vectors).values()) == {0}


def test_a_strange_caption_that_is_as_near_goes_first() -> None:
    vectors = np.repeat(np.eye(6), 5, axis=0)
    vectors[7] = vectors[0]  # one of image 1 says the same as those of image 0
    found = scores(task_of(6), vectors)
    # image 0: 1 stranger, then its four; image 1: three of its four, the other one behind all 24 strangers
    assert found["strict_accuracy"] == pytest.approx(4 / 6)
    assert found["recall@1"] == pytest.approx((0 + 5 * 1 / 4) / 6)
    assert found["recall@10"] == pytest.approx((1 + 3 / 4 + 4) / 6)
    assert found["mrr@10"] == pytest.approx((1 / 2 + 5) / 6)


def test_the_order_of_images_makes_no_difference() -> None:
    random = np.random.default_rng(0)
    vectors = np.repeat(random.normal(size=(50, 8)), 5, axis=0) + random.normal(size=(250, 8))
    vectors[100:105] = vectors[35:40]  # an image twice
    swapped = vectors.reshape(50, 5, 8)[random.permutation(50)].reshape(250, 8)
    assert scores(task_of(50), vectors) == pytest.approx(scores(task_of(50), swapped))


def captions(
    path: Path, rows: list[str], head: str = "image\t" + "\t".join(f"caption{n}" for n in range(1, 6))
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(("\n".join([head, *rows]) + "\n").encode()))


def rows(images: int) -> list[str]:
    return ["\t".join([f"{image}.jpg", *(f'"{image} {n}' for n in range(5))]) for image in range(images)]


def test_both_splits_with_their_published_numbers(tmp_path: Path) -> None:
    captions(tmp_path / "flickr30k/flickr30k-test.tsv.gz", rows(1000))
    captions(tmp_path / "flickr30k/flickr30k-val.tsv.gz", rows(1014))
    for split, images in (("test", 1000), ("dev", 1014)):
        (task,), missing = find_tasks(RETRIEVAL, tmp_path, split=split)
        assert (task.name, len(task.texts), task.texts[5], missing) == ("Flickr30k", 5 * images, '"1 0', {})
    captions(tmp_path / "flickr30k/flickr30k-test.tsv.gz", rows(1014))
    with pytest.raises(DataError, match=r"flickr30k-test\.tsv\.gz: 1,014 rows, but 1,000 are published"):
        find_tasks(RETRIEVAL, tmp_path)


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "flickr30k/flickr30k-test.tsv.gz"
    captions(path, rows(1000), head="image\tcaption1\tcaption2\tcaption3\tcaption4\tcaption6")
    with pytest.raises(DataError, match="no column caption5"):
        find_tasks(RETRIEVAL, tmp_path)
    captions(path, [*rows(999), "999.jpg\ta\tb\t \td\te"])
    with pytest.raises(DataError, match=r"gz:1001: an empty caption"):
        find_tasks(RETRIEVAL, tmp_path)
    with pytest.raises(DataError, match="none of the tasks is here"):
        find_tasks(RETRIEVAL, tmp_path / "flickr30k")


def test_without_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ConfigError, match=r"pip install 'aoe-toolkit\[eval\]'"):
        scores(task_of(2), np.ones((10, 2)))
    with pytest.raises(ConfigError, match=r"pip install 'aoe-toolkit\[eval\]'"):  # before any text is read
        SUITES["retrieval"]()


def test_minilm_on_captions_of_our_own(minilm: Path) -> None:
    from aoe_train._encoder import Encoder

    told = (
        "a {} with a {}",
        "the {} holds one {}",
        "{} and {}",
        "a {} , a {} , and nothing else",
        "{} near a {}",
    )
    scenes = [(WORDS[row % 12], WORDS[24 + (row * 5 + row // 12) % 12]) for row in range(40)]
    task = CaptionTask("captions", [tuple(form.format(*scene) for form in told) for scene in scenes])
    vectors = Encoder.load(minilm, precision="fp32").encode(list(task.texts))
    found = scores(task, vectors)
    assert found == pytest.approx(by_hand(vectors), abs=1e-6)
    assert found["recall@10"] > 0.5


@pytest.mark.slow
@real_data
def test_minilm_is_where_it_was_measured(minilm: Path) -> None:
    from aoe_train._encoder import Encoder

    tasks, _ = find_tasks(RETRIEVAL, REAL)
    found = tasks[0].judge(Vectors(Encoder.load(minilm).encode, [tasks[0].texts])).whole.scores()
    assert found["strict_accuracy"] == pytest.approx(0.120, abs=0.002)
    assert found["ndcg@10"] == pytest.approx(0.6488, abs=0.002)
