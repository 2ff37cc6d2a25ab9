"""What a test set shares with training texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from aoe_train.evaluation.overlap import DIGESTS_FILE, Overlap, digests, overlap, read_digests, write_digests
from aoe_train.evaluation.pairs import PairTask, pair_task
from aoe_train.evaluation.suites import read_sts
from pairkit.app.errors import DataError
from pairkit.dataset.reader import read_pairs
from tests.published import REAL, real_data


def task(*pairs: tuple[str, str]) -> PairTask:
    rows = {"text1": [a for a, _ in pairs], "text2": [b for _, b in pairs], "label": [1.0] * len(pairs)}
    return pair_task("task", pl.DataFrame(rows))


def test_pairs_and_texts_are_counted() -> None:
    found = overlap(task(("a", "b"), ("a", "x"), ("y", "z"), ("B", " a ")), digests(["a", "b", "c"]))
    assert found == Overlap(texts=4, of_texts=7, rows=2, of_rows=4)
    assert str(found) == "trained on 2 of its 4 examples (all their texts) and on 4 of its 7 texts"
    known = digests(["The  Straße\tis\nwet."])  # case and white space make no difference, and all else does
    assert overlap(task(("the strasse is wet.", "the strasse is wet")), known).texts == 1

    class Other:  # a task of single inputs has a row for each
        name, texts = "other", ["a", ("a", "b"), ("b", "c")]

    assert overlap(Other(), digests(["a", "b"])) == Overlap(2, 3, 2, 3)  # type: ignore[arg-type]


def test_the_file_has_the_same_bytes_whatever_the_order(tmp_path: Path) -> None:
    for name, texts in (("one", ["b", "a", "c", "a"]), ("other", ["c", "A", "b"])):
        (tmp_path / name).mkdir()
        write_digests(tmp_path / name, texts)
    assert (tmp_path / "one" / DIGESTS_FILE).read_bytes() == (tmp_path / "other" / DIGESTS_FILE).read_bytes()
    found = read_digests(tmp_path / "one")
    assert found is not None
    assert found.tolist() == sorted({*found.tolist()})
    assert len(found) == 3
    assert read_digests(tmp_path) is None
    (tmp_path / DIGESTS_FILE).write_bytes(b"half")
    with pytest.raises(DataError, match=r"training_texts\.npy: not readable"):
        read_digests(tmp_path)
    np.save(tmp_path / DIGESTS_FILE, np.zeros(3))
    with pytest.raises(DataError, match="no digests of texts"):
        read_digests(tmp_path)


@real_data
def test_the_known_leak_of_stsb_is_found() -> None:
    (train,) = read_pairs(REAL / "stsb" / "stsb-train.tsv").splits.values()
    known = digests([*train["text1"], *train["text2"]])
    tasks, _ = read_sts(REAL)
    found = {each.name: overlap(each, known).rows for each in tasks}
    # these pairs stand in both; here one whose texts stand in two others counts too
    for year, pairs in zip(("12", "13", "14", "15", "16"), (996, 596, 1822, 1102, 197), strict=True):
        assert pairs <= found[f"STS{year}"] <= 1.06 * pairs
    assert found["SICK-R"] == 0
