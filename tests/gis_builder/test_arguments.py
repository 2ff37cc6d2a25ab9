"""Invalid arguments and settings are named in a one-line message."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gis_builder
from pairkit import ConfigError, DataError

ANY: Any = gis_builder  # for calls with wrong types
QUIET: Any = {"token": "any", "api_url": "http://127.0.0.1:9", "progress": False}


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
        (
            lambda: ANY.detect("work", settings=5, progress=False),
            "settings = 5: expected a mapping of dotted keys",
        ),
        (lambda: ANY.detect("work", settings={5: 5}, progress=False), "settings = 5: "),
        (lambda: ANY.detect("work", settings=[5], progress=False), "settings = 5: "),
        (
            lambda: ANY.detect("work", settings="detect.x", progress=False),
            "setting 'detect.x': expected key=value",
        ),
        (lambda: ANY.detect("work", config=5, progress=False), "config = 5: "),
        (lambda: ANY.plan(None, **QUIET), "repos = None: "),
        (lambda: ANY.plan([1], **QUIET), "repos = 1: "),
        (lambda: ANY.plan(["a/b"], **{**QUIET, "token": 5}), "token = 5: "),
    ],
)
def test_an_invalid_argument_is_named(
    call: Callable[[], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ConfigError, DataError)) as raised:
        call()
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "api.github.com", "http://", "http://[::bad", "http://x:99999", "http://x:port"]
)
def test_invalid_api_urls(url: str) -> None:
    with pytest.raises(ConfigError, match="expected a server's root"):
        gis_builder.plan("a/b", **{**QUIET, "api_url": url})


def test_a_password_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        gis_builder.plan("a/b", **{**QUIET, "api_url": "https://user:hunter2@host/api/v3"})
    assert "hunter2" not in str(caught.value)
    assert "api_url" in str(caught.value)
