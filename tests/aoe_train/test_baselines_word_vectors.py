"""Average word vectors: both forms of file by hand, and files that are none."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import aoe_train
from aoe_train._baselines.word_vectors import WordVectors, read_word_vectors
from aoe_train._evaluate.embedders.open import open_embedder
from pairkit.errors import ConfigError, DataError

GLOVE = "the 1 0\ncat 0 2\n's 4 4\nU.S 1 1\n. . 9 9\ndon't -1 3\nThe 5 5\ncat 7 7\n"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_mean_of_the_words_that_there_are(tmp_path: Path):
    said: list[str] = []
    model = WordVectors(write(tmp_path / "glove.txt", GLOVE), said.append)
    texts = ["the cat", "The CAT", "the cat's zebra", "don't", "zebra", ""]
    expected = np.array([[0.5, 1], [2.5, 3.5], [5 / 3, 2], [-1, 3], [0, 0], [0, 0]])
    assert model.encode(texts) == pytest.approx(expected)
    assert said == ["glove.txt: 2 of 10 words have no vector; 2 of 6 texts have no word that has one"]
    assert model.encode(["cat"], "the {text} the") == pytest.approx(np.array([[2 / 3, 2 / 3]]))
    assert len(said) == 1


@pytest.mark.parametrize("first", ["", "8 2\n"])
@pytest.mark.parametrize("ends", ["\n", " \n", "\r\n"])
def test_both_forms_of_file_are_read(first: str, ends: str, tmp_path: Path):
    text = (first + GLOVE).replace("\n", ends)
    vectors, places = read_word_vectors(write(tmp_path / "w.vec", text))
    assert vectors.shape == (7, 2)
    assert {word: vectors[place].tolist() for word, place in places.items()} == {
        "the": [1, 0],
        "cat": [0, 2],
        "'s": [4, 4],
        "U.S": [1, 1],
        ". .": [9, 9],
        "don't": [-1, 3],
        "The": [5, 5],
    }


def test_packed_files_are_read(tmp_path: Path):
    (tmp_path / "w.txt.gz").write_bytes(gzip.compress(GLOVE.encode()))
    assert read_word_vectors(tmp_path / "w.txt.gz")[0].shape == (7, 2)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("the 1 2\ncat 1\n", 2),
        ("the 1 2\ncat 1 x\n", 2),
        ("the 1 2\ncat 1 nan\n", 2),
        ("the 1 2\n 1 2\n", 2),
        ("A sentence of words.\n", 1),
        ("word\n", 1),
        ("2 0\nthe\n", 2),
        ("1 99999\nthe 1\n", 2),
    ],
)
def test_what_is_no_file_of_word_vectors_is_named_by_its_row(text: str, row: int, tmp_path: Path):
    with pytest.raises(DataError, match=f"w.txt:{row}: expected a word and"):
        read_word_vectors(write(tmp_path / "w.txt", text))


def test_an_empty_file_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="no word vectors"):
        read_word_vectors(write(tmp_path / "w.txt", ""))


def test_it_is_judged_as_any_model(tmp_path: Path):
    path = write(tmp_path / "glove.txt", "red 1 0\nblue 0 1\ncar 1 1\nboat 1 0.5\n")
    rows = [("red", "boat", 5), ("red", "car", 3), ("red", "blue", 0)]
    pairs = write(
        tmp_path / "pairs.tsv", "text1\ttext2\tscore\n" + "".join(f"{a}\t{b}\t{s}\n" for a, b, s in rows)
    )
    found = aoe_train.evaluate(str(path), data=pairs, draws=0, progress=False)
    (scores,) = found.to_dict().values()
    assert scores["spearman"] == pytest.approx(1)
    for flag in ({"precision": "bf16"}, {"layers": 2}):
        with pytest.raises(ConfigError, match="has none to choose"):
            open_embedder(str(path), **flag)  # type: ignore[arg-type]
