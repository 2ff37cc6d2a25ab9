from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pairkit.app.errors import ConfigError
from pairkit.system.records_on_disk import RecordsOnDisk, Scratch, scratch_file


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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_full_disk(tmp_path: Path) -> None:
    full = Path("/dev/full").open("w+b")  # noqa: SIM115 - what it holds can't be written when it is closed
    with pytest.raises(ConfigError, match=f"{tmp_path}: can't be written .No space left"):
        RecordsOnDisk(Scratch(tmp_path, full), str).extend(["a"])
    with pytest.raises(OSError, match="No space left"):
        full.close()
