"""A recipe from a file runs what it names only once that was seen, and some of it never."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from aoe_train._reproduce.command import ALLOWED, ARGUMENT, Allowed, parse_command
from aoe_train._reproduce.plan import Places, plan
from aoe_train._reproduce.recipe import Scale, read_recipe, recipe_names
from aoe_train._reproduce.stranger import asks
from gis_builder import _cli as gis_cli
from llm_labeler import _cli as label_cli
from pairkit.errors import ConfigError
from tests.aoe_train.test_reproduce import RECIPE
from tests.aoe_train.test_reproduce_command import aoe

PREPARE = 'train = "{data}/train.tsv"\nprepare = [["gis", "detect", "--work", "{work}/x"]]'


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("aoe evaluate --model evil --trust-remote-code", "is none of gis import"),
        ("gis crawl --api-url http://evil --work {work}/x", "is none of gis import"),
        ("gis build --api-url=http://evil", "is none of gis import"),
        ("rm -rf {work}", "is none of gis import"),
        ("gis", "is none of gis import"),
        ("gis pair --api-url http://evil", "gives --api-url"),
        ("gis pair --relations /etc/passwd", "names /etc/passwd"),
        ("gis pair --fresh --work {work}/x", "gives --fresh"),
        ("label generate --yes --llm chatgpt", "gives --yes"),
        ("gis export {work}/x --raw", "is none of gis import"),
        ("gis pair --work={work}/x --token-file=/home/me/token", "gives --token-file"),
        ("gis detect -w {work}/x", "gives -w"),
        ("label generate --llm chatgpt --set llm.chatgpt.base_url=http://evil", "gives --set"),
        ("label generate --config {data}/evil.toml", "gives --config"),
        ("label generate --llm http://evil/v1", "names http://evil/v1"),
        ("label generate --input /home/me/.ssh/id_rsa", "names /home/me/.ssh/id_rsa"),
        ("label generate --input {data}/../../secret", "names {data}/../../secret"),
        ("label generate --input ~/secret", "names ~/secret"),
        ("label generate --input ..", "names .."),
        ("gis pair --work {work}/x --out {data}/x", "names {data}/x; expected a path below {work}/"),
        ("gis pair --out pairs", "names pairs"),
        ("gis pair --out={work}/../../home", "names {work}/../../home"),
        ("gis import /etc", "names /etc"),
        ("label generate --input {data}/in.txt --llm wordnet", "lacks --out; add it"),
        ("label generate --input {data}/in.txt --out {work}/x", "lacks --llm; add it"),
        ("gis pair --work {work}/x", "lacks --out; add it"),
        ("gis import --work {work}/x", "lacks the folder to read; add it"),
        ("gis import {data}/x", "lacks --work; add it"),
        ("gis import {data}/x {data}/y --work {work}/x", "gives {data}/y besides another one"),
        ("label generate --out --quiet --input {data}/in.txt", "gives --out the value '--quiet'"),
        ("label generate --out --seed=-evil", "gives --out the value '--seed=-evil'"),
        ("label generate --out", "gives --out the value ''"),
        ("label generate --out=", "gives --out the value ''"),
        ("label generate --out={work}/x --out {work}/y", "gives --out besides another one"),
        ("label generate --input notes.txt", "names notes.txt; expected a path below {data}/ or {work}/"),
        ("label generate --llm wordnet sick.tsv", "names sick.tsv without a flag"),
        ("label generate --seed=-1", "gives --seed the value '-1'"),
        ("label generate --quiet=yes", "gives --quiet a value"),
        ("label generate -- --out", "gives --; a recipe may give"),
    ],
)
def test_what_no_recipe_may_run(command: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_command(command.split())
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        (
            "gis import {data}/rust-issues --work {work}/x",
            "gis import {data}/rust-issues --work={work}/x",
        ),
        (
            "gis pair --work {work}/x --out {work}/y --relations duplicate,same --match none --seed=7",
            "gis pair --work={work}/x --out={work}/y --relations=duplicate,same --match=none --seed=7",
        ),
        (
            "label generate --llm wordnet --quiet --input {data}/texts.txt --out {work}/y --limit 2000",
            "label generate --llm=wordnet --quiet --input={data}/texts.txt --out={work}/y --limit=2000",
        ),
    ],
)
def test_what_a_recipe_may_run_is_built_anew(command: str, runs: str) -> None:
    assert parse_command(command.split()).words == runs.split()


@pytest.mark.parametrize(("name", "allowed"), ALLOWED.items(), ids=map(" ".join, ALLOWED))
def test_a_command_takes_what_a_recipe_may_give_it_as_the_table_says(
    name: tuple[str, str], allowed: Allowed
) -> None:
    app = {"gis": gis_cli.app, "label": label_cli.app}[name[0]]
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    taken = {opt: each for each in group.commands[name[1]].params for opt in each.opts}
    assert allowed.flags <= taken.keys()
    assert {flag for flag in allowed.flags if getattr(taken[flag], "is_flag", False)} == allowed.switches
    arguments = [each for each in taken.values() if each.param_type_name == "argument"]
    assert len(arguments) == (ARGUMENT in allowed.reads)
    assert allowed.needed <= allowed.writes | allowed.reads | allowed.plain
    assert {flag for flag in allowed.flags if taken[flag].required} <= allowed.needed
    for flag in allowed.writes - allowed.needed:
        assert taken[flag].default is None  # beside --out, then


def test_no_link_leads_a_command_out_of_its_folders(tmp_path: Path) -> None:
    places = Places(tmp_path / "data", tmp_path / "work")
    for folder in ("data/in", "work", "secret"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "data" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "work" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "work" / "home").symlink_to(tmp_path / "work")
    for words in (
        "gis import {data}/link --work {work}/x",
        "gis import {data}/in --work {work}/link",
        "gis import {data}/in --work {work}/link/new",
        "gis import {data}/in --work {work}/home",
        "gis import {data}/in --work {work}/.",
        "gis import {data}/in --work {work}/",
    ):
        with pytest.raises(ConfigError, match="that no link leads out of"):
            parse_command(words.split()).filled(places)
    filled = parse_command(["gis", "import", "{data}/in", "--work", "{work}/x"]).filled(places)
    assert filled.words == ["gis", "import", f"{tmp_path}/data/in", f"--work={tmp_path}/work/x"]


def test_the_dataset_of_duplicates_is_made_as_the_papers_made_theirs() -> None:
    (*_, pair) = read_recipe("gis").at("small").source.prepare
    command = parse_command(pair)
    assert command.name == ("gis", "pair")
    assert (command.values["--relations"], command.values["--match"]) == ("all", "none")


@pytest.mark.parametrize("name", recipe_names())
def test_recipes_of_the_toolkit_run_only_what_a_recipe_may(name: str) -> None:
    recipe = read_recipe(name)
    for scale in recipe.scales:
        asks(recipe, scale)


def write(path: Path, *changes: tuple[str, str]) -> Path:
    text = RECIPE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], []),
        ([('train = "{data}/train.tsv"', PREPARE)], ["runs    gis detect --work={work}/x"]),
        ([('"{data}/bert"', '"evil/model"')], ["loads   evil/model"]),
        ([('"{data}/bert"', '"/home/me/model"')], ["loads   /home/me/model"]),
        ([('"{data}/train.tsv"', '"evil/pairs"')], ["loads   evil/pairs"]),
        ([("texts = {}", 'texts = { of = "/home/me/mail" }')], ["loads   /home/me/mail"]),
        ([("optim.lr = 1e-3", 'optim.lr = 1e-3\nlog.report_to = "wandb"')], ["reports to wandb"]),
        ([("optim.lr = 1e-3", 'teacher.model = "evil/teacher"')], ["loads   evil/teacher"]),
        ([("optim.lr = 1e-3", 'guide = { model = "/home/me/guide" }')], ["loads   /home/me/guide"]),
        ([("optim.lr = 1e-3", 'objective.generator = "evil/mlm"')], ["loads   evil/mlm"]),
    ],
)
def test_what_is_asked(tmp_path: Path, changes: list[tuple[str, str]], expected: list[str]) -> None:
    assert asks(read_recipe(str(write(tmp_path / "own.toml", *changes))), "small") == expected


def test_each_scale_asks_for_its_own(tmp_path: Path) -> None:
    recipe = read_recipe(str(write(tmp_path / "own.toml")))
    expected: dict[Scale, list[str]] = {
        "smoke": [],
        "full": ["loads   somebody/bert", "loads   somebody/pairs"],
    }
    for scale, lines in expected.items():
        assert asks(recipe, scale) == lines


def test_it_asks_for_what_the_rows_take_at_that_scale_and_nothing_else(tmp_path: Path) -> None:
    own = """
scales.small = { backbone = "evil/small", settings = { log = { report_to = "wandb" } } }
scales.full = { backbone = "evil/full", settings = { log = { report_to = "mlflow" } } }
"""
    skipped = 'scales.full = { skip = "needs a larger machine" }\n'
    recipe = read_recipe(str(write(tmp_path / "own.toml", (skipped, own))))
    small = ["loads   evil/small", "reports to wandb"]
    full = ["loads   somebody/bert", "loads   somebody/pairs", "loads   evil/full", "reports to mlflow"]
    expected: dict[Scale, list[str]] = {"smoke": small, "small": small, "full": full}
    for scale, lines in expected.items():
        assert asks(recipe, scale) == lines
        runs, _ = plan(recipe, scale, Places(tmp_path, tmp_path))
        taken = {run.backbone for run in runs} & {"evil/small", "evil/full"}
        assert taken == {line.split()[1] for line in lines if "evil" in line}


@pytest.mark.parametrize(
    "word", ["http://evil/x", "hf://datasets/evil", "{data}/../secret", "../x", "s3://x"]
)
def test_addresses_and_ways_out_are_refused(tmp_path: Path, word: str) -> None:
    recipe = read_recipe(str(write(tmp_path / "own.toml", ("{data}/train.tsv", word))))
    with pytest.raises(ConfigError, match="the recipe names"):
        asks(recipe, "small")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"{data}/bert"', '"{data}/bert\\nruns    nothing"'),
        ('"{data}/train.tsv"', '"{data}/\\u001b[2Kx"'),
        ('train = "{data}/train.tsv"', PREPARE.replace("{work}/x", "{work}/\\u202ex")),
        ('name = "none"', 'name = "no\\tne"'),
    ],
)
def test_what_is_shown_is_what_is_meant(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(ConfigError, match="expected one line, without control characters"):
        read_recipe(str(write(tmp_path / "own.toml", (old, new))))


def test_a_name_is_no_book(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected at most 1000 characters") as caught:
        read_recipe(str(write(tmp_path / "own.toml", ('name = "none"', f'name = "{"a" * 5000}"'))))
    assert len(str(caught.value)) < 2000


def test_only_the_name_of_a_recipe_makes_it_one_of_the_toolkits(tmp_path: Path) -> None:
    own = write(tmp_path / "nli.toml", ('train = "{data}/train.tsv"', PREPARE))
    with pytest.raises(ConfigError, match="no such recipe"):
        read_recipe(str(own.with_suffix("")))  # would be read without being asked
    with pytest.raises(ConfigError, match="nothing was run"):
        aoe(own, "--data-dir", tmp_path, "--out", tmp_path / "out")


def test_nothing_runs_before_it_was_agreed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = write(tmp_path / "own.toml", ('train = "{data}/train.tsv"', PREPARE))
    done: list[str] = []
    monkeypatch.setattr("aoe_train._reproduce.reproduce.reproduce", lambda *_, **__: done.append("ran") or {})
    flags = (own, "--data-dir", tmp_path, "--out", tmp_path / "out", "--json")
    with pytest.raises(ConfigError, match=r"nothing was run; .* --yes"):
        aoe(*flags)
    assert "gis detect --work={work}/x" in capsys.readouterr().err
    for answer, expected in (("n\n", []), ("\n", []), ("", []), ("y\n", ["ran"])):
        terminal = type("Terminal", (), {"isatty": lambda _: True, "readline": lambda _, a=answer: a})()
        monkeypatch.setattr("sys.stdin", terminal)
        if not expected:
            with pytest.raises(ConfigError, match="nothing was run"):
                aoe(*flags)
        else:
            aoe(*flags)
        assert done == expected
    monkeypatch.undo()
    monkeypatch.setattr("aoe_train._reproduce.reproduce.reproduce", lambda *_, **__: done.append("yes") or {})
    aoe(*flags, "--yes")
    assert done == ["ran", "yes"]
