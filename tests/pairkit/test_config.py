from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from pairkit import ConfigError
from pairkit.base.settings import Settings, load_settings, merge


class Inner(Settings):
    seed: int = 42
    name: str = "a"


class Server(Settings):
    kind: str
    api_key_env: str = Field(default="", max_length=9)


class Outer(Settings):
    inner: Inner = Inner()
    ratio: float = Field(default=1.0, ge=0)
    servers: dict[str, Server] = Field(default_factory=dict)


TABLE = {"seed": "inner.seed", "ratio": "ratio"}


def test_layers(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("ratio = 2.0\n[inner]\nseed = 1\nname = 'file'\n")
    none = dict.fromkeys(TABLE)
    words = ["inner.seed=2", "inner.name=plain text"]
    merged = merge(Outer, TABLE, none | {"seed": 3}, config=file, settings=words)
    assert merged == Outer(inner=Inner(seed=3, name="plain text"), ratio=2.0)
    assert merge(Outer, TABLE, none, config=str(file), settings={"inner.seed": 2}).inner.seed == 2
    with pytest.raises(ConfigError, match=r"inner\.seed"):
        merge(Outer, TABLE, none | {"seed": "seven"})


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["inner.sed=3"], r"unknown setting 'inner.sed'; known here: name, seed"),
        (["sed=3"], r"unknown setting 'sed'; known here: inner, ratio, servers"),
        (["ratio=-1"], r"setting 'ratio' = -1: input should be greater than or equal to 0"),
        (["inner.seed=x"], r"setting 'inner.seed' = 'x': input should be a valid integer"),
        (["inner"], r"expected key=value"),
        (["ratio=1", "ratio.x=2"], r"ratio is a value, not a section"),
    ],
)
def test_invalid_values(assignments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_settings(Outer, assignments=assignments)


KEY = "gsk_Ab1cD2eF3gH4"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"servers.x": {"api_key": KEY}}, "setting 'servers.x.kind': field required; unknown setting"),
        ({"servers.x": KEY}, "setting 'servers.x': input should be a valid dictionary"),
        ({"servers": [KEY]}, "setting 'servers': input should be a valid dictionary"),
        ({"servers.x": {"kind": "a", "api_key_env": KEY}}, "setting 'servers.x.api_key_env': string should"),
        ({"inner.kye": KEY}, "unknown setting 'inner.kye'; known here"),
        ({1: KEY}, "settings = 1: input should be a valid string"),
        ([f"servers.x.api_key: {KEY}"], "setting 'servers.x.api_key': expected key=value"),
        ([5, KEY], "settings = 5: input should be a valid string"),
    ],
)
def test_errors_show_no_other_values_and_no_keys(settings: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        merge(Outer, {}, {}, settings=settings)
    assert str(caught.value).startswith(message)
    assert KEY not in str(caught.value)


def test_invalid_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such configuration file"):
        load_settings(Outer, file=tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("a = = 1")
    with pytest.raises(ConfigError, match="not readable as TOML"):
        load_settings(Outer, file=bad)
