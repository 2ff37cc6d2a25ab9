from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pairkit.base.system.records_on_disk import RecordsOnDisk, Scratch, scratch_file


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    with scratch_file(tmp_path / "work") as scratch:
        yield scratch


def test_reading_between_additions(scratch: Scratch) -> None:
    records = RecordsOnDisk(scratch, str)
    records.extend(["a", "ü" * 20_000])
    assert records[1] == "ü" * 20_000
    records.extend(["", "c"])
    assert [records[place] for place in range(len(records))] == ["a", "ü" * 20_000, "", "c"]
