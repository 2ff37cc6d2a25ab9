"""All caches lie in one folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from aoe_train.model.cache_dir import cache_dir


@pytest.mark.parametrize("kind", ["backbones", "mteb", "tokens", "vectors"])
def test_where_a_cache_is(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOE_CACHE", "/caches")
    assert cache_dir(kind) == Path("/caches") / kind
    monkeypatch.delenv("AOE_CACHE")
    assert cache_dir(kind) == Path.home() / ".cache/aoe-toolkit" / kind
