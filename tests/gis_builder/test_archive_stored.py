"""What a run over GH Archive keeps on disk: texts and pairs, and by numbers alone what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder._archive.left_out import LeftOut
from gis_builder._archive.pairs import PairsOnDisk
from gis_builder._archive.texts import TextsOnDisk
from gis_builder._dataset import drop_counts, reasons_of, row_order, write_dropped
from gis_builder._records import DroppedPair, Evidence, Grounds, IssueRef, IssueText, Pair, Relation
from gis_builder._ref_table import RefTable
from pairkit.records_on_disk import Scratch, scratch_file

from .pair_material import ref

REFS = st.builds(IssueRef, st.sampled_from(["a/b", "o/n"]), st.integers(1, 30))


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    with scratch_file(tmp_path / "work") as scratch:
        yield scratch


def test_texts_come_in_the_order_in_which_they_were_added(scratch: Scratch) -> None:
    table = RefTable([ref(1), ref(2), ref(3)])
    texts = TextsOnDisk(scratch, table)
    later, earlier = IssueText(ref(3), "three\nlines", "2015"), IssueText(ref(1), "one", "2014")
    texts.extend([later])
    texts.extend([IssueText(ref(1), "one", "2014")])
    assert list(texts) == ["three\nlines", "one"]
    assert texts.issues.tolist() == [2, 0]
    assert texts.usable.tolist() == [True, False, True]
    assert texts.of([ref(1), ref(3), ref(1)]) == {
        ref(1): IssueText(ref(1), "one", earlier.created_at),
        ref(3): later,
    }


def test_pairs_come_back_whole_and_in_the_order_of_rows(scratch: Scratch) -> None:
    grounds = Grounds(Relation.SAME, "closed", 0.9, Evidence("label", "https://x", None, "2015"))
    pairs = [Pair(ref(n), ref(n + 1), n % 2, f"o/n#{n}", grounds) for n in range(9, 0, -1)]
    table = RefTable(ref(n) for n in range(1, 11))
    stored = PairsOnDisk(scratch, table, seed=3)
    stored.extend(pairs[:4])
    stored.extend(pairs[4:])
    everything = np.arange(len(stored))
    assert stored.at(stored.in_row_order(everything)) == sorted(pairs, key=row_order(3))
    assert stored.at(stored.in_order(everything)) == sorted(pairs, key=lambda p: (p.first, p.second))
    assert stored.positive.tolist() == [bool(pair.label) for pair in pairs]


@given(
    st.dictionaries(REFS, st.sampled_from(["empty", "bot_author"]), max_size=8),
    st.lists(st.builds(DroppedPair, REFS, REFS, st.sampled_from([0, 1]), st.sampled_from("abc")), max_size=9),
)
def test_what_was_left_out_is_told_as_a_build_tells_it(
    tmp_path_factory: pytest.TempPathFactory, rejected: dict[IssueRef, str], dropped: list[DroppedPair]
) -> None:
    left_out = LeftOut(RefTable([*rejected, *(end for drop in dropped for end in drop[:2])]))
    left_out.add_pairs(dropped[:2])
    left_out.add_issues(rejected.items())
    left_out.add_pairs(iter(dropped[2:]))
    path = tmp_path_factory.mktemp("dropped") / "dropped.parquet"
    write_dropped(path, rejected, dropped)
    assert left_out.table().equals(pl.read_parquet(path))
    assert drop_counts(left_out.reasons(), {}) == drop_counts(reasons_of(rejected, dropped), {})
