"""`aoe reproduce` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aoe_train._reproduce.recipe import recipe_names
from pairkit.errors import ConfigError
from tests.aoe_train.test_reproduce import RECIPE


def aoe(*arguments: object) -> None:
    """Run the command in this process; errors come as they are raised."""
    from aoe_train._cli import app

    app(["reproduce", *map(str, arguments)], standalone_mode=False)


def test_recipes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    aoe("--list", "--json")
    assert list(json.loads(capsys.readouterr().out)) == recipe_names()
    aoe("--list")
    assert "stsb" in capsys.readouterr().out


def test_a_dry_run_tells_each_run_and_trains_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    recipe = tmp_path / "own.toml"
    recipe.write_text(RECIPE)
    aoe(recipe, "--data-dir", tmp_path, "--out", tmp_path / "out", "--dry-run", "--json")
    told = json.loads(capsys.readouterr().out)
    assert [run["row"] for run in told["runs"]] == ["none", "CoSENT", "SimCSE", "CoSENT", "SimCSE"]
    assert told["runs"][1]["settings"]["optim"]["lr"] == 1e-3
    aoe(recipe, "--scale", "full", "--out", tmp_path / "out", "--dry-run")
    printed = capsys.readouterr()
    assert "CoSENT, seed 0: somebody/bert" in printed.out
    assert "left out SimCSE: needs a larger machine" in printed.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "name a recipe; `aoe reproduce --list` lists them"),
        (("stsb", "--scale", "huge"), "--scale huge: expected smoke, small or full"),
        (("stsb", "--seeds", "one"), "--seeds one: expected numbers"),
        (("nothing",), "nothing: no such recipe"),
        (("stsb",), "needs --data-dir"),
    ],
)
def test_bad_flags_are_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        aoe(*arguments)
    assert says in str(caught.value)
