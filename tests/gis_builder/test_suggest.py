"""`gis suggest`: invalid requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import gis_builder
from pairkit import ConfigError, DataError
from tests.conftest import command_line

from .conftest import issue, write_tracker

SUN = "acme/sun"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sun")
    write_tracker(root / "dump", SUN, issues=[issue(SUN, 1, title="...", body="edit:"), issue(SUN, 4)])
    gis_builder.import_tracker(root / "dump", root / "work", progress=False)
    return root / "work"


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"issue": 1, "top": 0}, ConfigError, "top 0: expected 1 to 50"),
        ({"issue": 999}, DataError, "acme/sun#999: no such issue"),
        ({"issue": 1}, DataError, "acme/sun#1: its text has no words to search for"),
        ({"issue": "SUN-4"}, ConfigError, "expected a number or the key of a ticket of acme/sun"),
        ({"issue": 4}, ConfigError, "aoe search: .*no index.json"),
    ],
)
def test_invalid_requests(
    work: Path, tmp_path: Path, given: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        gis_builder.suggest(SUN, work=work, index=tmp_path / "none", **given)


def test_the_command_needs_an_index() -> None:
    assert (
        CliRunner().invoke(command_line("gis_builder"), ["suggest", "--repo", SUN, "--issue", "4"]).exit_code
        == 2
    )
