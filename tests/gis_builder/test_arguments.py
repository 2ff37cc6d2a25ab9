"""A mistake in a call from Python is one line that names the argument, not a traceback from deep inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gis_builder
from pairkit import ConfigError, DataError
from tests.support.github import serve

ANY: Any = gis_builder  # called as no type checker lets one
QUIET = {"token": "any", "api_url": "http://127.0.0.1:9", "progress": False}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ANY.import_tracker(None, "work", progress=False),
            "folder = None: input is not a valid path",
        ),
        (lambda: ANY.pair(None, progress=False), "work = None: "),
        (lambda: ANY.pair("work", None, progress=False), "out = None: "),
        (lambda: ANY.status(5), "work = 5: "),
        (lambda: ANY.explain("work", 58), "issue = 58: "),
        (lambda: ANY.detect("work", settings=5, progress=False), "settings = 5: expected dotted keys"),
        (lambda: ANY.detect("work", settings={5: 5}, progress=False), "settings = {5: 5}: "),
        (lambda: ANY.detect("work", settings=[5], progress=False), "settings = [5]: "),
        (
            lambda: ANY.detect("work", settings="detect.x", progress=False),
            "setting 'detect.x': expected key=value",
        ),
        (lambda: ANY.detect("work", config=5, progress=False), "config = 5: "),
        (lambda: ANY.plan(None, **QUIET), "repos = None: "),
        (lambda: ANY.plan([1], **QUIET), "repos = [1]: "),
        (lambda: ANY.plan(["a/b"], **{**QUIET, "token": 5}), "token = 5: "),
        (lambda: ANY.crawl(["a/b"], "work", archive=3, **QUIET), "archive = 3: "),
    ],
)
def test_a_wrong_argument_is_named(
    call: Callable[[], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ConfigError, DataError)) as raised:
        call()
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_one_hour_of_an_archive_needs_no_list(tmp_path: Path) -> None:
    sample = Path(__file__).parents[2] / "data" / "sample"
    with (
        serve(sample) as server,
        pytest.raises(ConfigError, match=r"hour\.json\.gz: no such file"),
    ):
        gis_builder.crawl(
            "quarryhq/quarry",
            tmp_path,
            archive=str(tmp_path / "hour.json.gz"),
            api_url=server.url,
            token="any",
            progress=False,
        )
