"""`aoe figures`, from pairs and a real, small model to pictures."""

from __future__ import annotations

import json
import random
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel
from typer.testing import CliRunner

from aoe_train import _cli  # noqa: F401 - registers the commands
from aoe_train._commands.app import app
from aoe_train._encoder import Encoder
from aoe_train._evaluate.correlation import spearman
from aoe_train._figures.folder import check_folder
from aoe_train._figures.make import Request
from aoe_train._similarity import pair_similarities
from pairkit.errors import ConfigError, DataError
from tests.aoe_train.test_figures_curves import write as write_run
from tests.aoe_train.tiny import WORDS, wordpiece
from tests.published import REAL, graded_pairs, real_data, write_table

SMALL = ("--above", "0.5", "--perplexity", "5")


def aoe(*arguments: str | Path) -> str:
    """What a command prints on stdout; its error is raised."""
    done = CliRunner().invoke(app, ["figures", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty graded pairs; one text would be a formula to matplotlib, one holds what its font lacks."""
    choose = random.Random(0)
    texts = [" ".join(choose.choices(WORDS, k=6)) for _ in range(78)] + ["$x^{2$ costs $5", "語\x1b[2J file"]
    rows = [
        f"{n % 11 / 2}\t{one}\t{two}"
        for n, (one, two) in enumerate(zip(texts[::2], texts[1::2], strict=True))
    ]
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    path.write_text("\n".join(["score\tsentence1\tsentence2", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def drawn(
    bert: Path, pairs: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, object]]:
    """The folder with figures of a model, and what the command printed."""
    out = tmp_path_factory.mktemp("out") / "figures"
    return out, json.loads(aoe("--model", bert, "--data", pairs, "--out", out, *SMALL, "--json"))


def test_each_figure_is_there_as_png_and_svg(drawn: tuple[Path, dict[str, object]]) -> None:
    out, printed = drawn
    names = [f"{name}.{suffix}" for name in ("densities", "halves-bert") for suffix in ("png", "svg")]
    assert sorted(files(out)) == sorted([*names, "figures.json"])
    assert printed["files"] == names
    for name, data in files(out).items():
        if name.endswith(".svg"):
            ElementTree.fromstring(data)
            assert b"<dc:date>" not in data
        elif name.endswith(".png"):
            assert data.startswith(b"\x89PNG")


def test_the_numbers_are_those_of_the_vectors(
    drawn: tuple[Path, dict[str, object]], bert: Path, pairs: Path
) -> None:
    out, printed = drawn
    record = json.loads((out / "figures.json").read_text())
    rows = [line.split("\t") for line in pairs.read_text().splitlines()[1:]]
    encoder = Encoder.load(bert, precision="fp32")
    vectors = encoder.encode([text for row in rows for text in row[1:]])
    cosines = pair_similarities(vectors, np.arange(80).reshape(-1, 2), "cosine")
    expected = spearman(cosines, np.array([float(row[0]) for row in rows]))
    panel = record["densities"]["models"]["bert"]
    assert panel["spearman"] == pytest.approx(expected, rel=1e-5)
    assert panel["saturated"] == pytest.approx((np.abs(cosines) > 0.95).mean())
    halves = record["halves"]["bert"]
    apart = np.linalg.norm(vectors[::2, 16:] - vectors[1::2, 16:], axis=1)[halves["numbers"]]
    assert halves["original"]["imaginary"]["values"] == pytest.approx(apart, rel=1e-4)
    assert halves["original"]["imaginary"]["mean"] == pytest.approx(apart.mean(), rel=1e-4)
    assert printed["halves"]["bert"]["original"]["avg_im"] == halves["original"]["imaginary"]["mean"]  # type: ignore[index]


def test_the_same_bytes_again_in_place_of_what_was_there(
    drawn: tuple[Path, dict[str, object]], bert: Path, pairs: Path
) -> None:
    out, _ = drawn
    before = files(out)
    aoe("--model", bert, "--data", pairs, "--out", out, *SMALL, "-q")
    assert files(out) == before


def test_curves_need_no_pairs_and_a_folder_of_other_things_is_kept(tmp_path: Path) -> None:
    models = [write_run(tmp_path / name) for name in ("one", "two")]
    out = tmp_path / "figures"
    flags = ("--model", models[0], "--model", models[1], "--kind", "curves", "--out")
    assert aoe(*flags, out).split() == [str(out / "curves.png"), str(out / "curves.svg")]
    assert list(json.loads((out / "figures.json").read_text())["curves"]) == ["one", "two"]
    (out / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"figures: holds notes\.txt, which is no part of a set of figures"):
        aoe(*flags, out)
    with pytest.raises(ConfigError, match="a set of figures needs a folder of its own"):
        aoe(*flags, "..")
    with pytest.raises(ConfigError, match="is a file"):
        aoe(*flags, out / "notes.txt")


@pytest.mark.parametrize("name", ["notes.txt", "halves-.txt", "halves-a.png.bak", "densities", "Curves.png"])
def test_a_strangers_record_makes_no_figure_of_a_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    (tmp_path / "curves.png").touch()
    record = {"files": ["curves.png", name, "../secret", {"a": 1}, None]}
    (tmp_path / "figures.json").write_text(json.dumps(record))
    with pytest.raises(ConfigError, match=f"holds {name}, which is no part of a set of figures"):
        check_folder(tmp_path)
    (tmp_path / name).unlink()
    check_folder(tmp_path)
    (tmp_path / "halves-mine.png").touch()  # which the record does not name
    with pytest.raises(ConfigError, match=r"holds halves-mine\.png"):
        check_folder(tmp_path)


def test_models_of_one_name_are_told_apart_by_their_folders() -> None:
    assert Request(["runs/a/model", "runs/b/model/"], "d").titles == {
        "a/model": "runs/a/model",
        "b/model": "runs/b/model/",
    }
    assert Request(["minilm", "runs/a"], "d").titles == {"minilm": "minilm", "a": "runs/a"}


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--kind", "bars", "--data", "d"), "--kind bars: expected densities, halves, curves or all"),
        (("--kind", "halves"), "--kind halves needs --data"),
        (("--kind", "curves"), r"no folder with a run\.json of `aoe train`"),
        (("--model", "minilm", "--data", "d"), "a model is given twice"),
        (("--saturation", "1", "--data", "d"), "--saturation 1: expected more than 0 and less than 1"),
        (("--split", "train", "--data", "d"), "--split train: expected test or dev"),
        (("--data", "nowhere.tsv"), r"nowhere\.tsv: no such file"),
    ],
)
def test_it_refuses(tmp_path: Path, flags: tuple[str, ...], says: str) -> None:
    with pytest.raises((ConfigError, DataError), match=says):
        aoe("--model", "minilm", "--out", tmp_path / "figures", *flags)
    assert not list(tmp_path.iterdir())


def test_an_odd_dimension_has_densities_but_no_halves(pairs: Path, tmp_path: Path) -> None:
    tokenizer, odd = wordpiece(), tmp_path / "odd"
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=9,
        num_hidden_layers=1,
        num_attention_heads=3,
        intermediate_size=16,
        max_position_embeddings=64,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(odd)
    tokenizer.save_pretrained(odd)
    flags = ("--model", odd, "--data", pairs, "--out", tmp_path / "figures", *SMALL, "--kind")
    with pytest.raises(ConfigError, match="odd: its vectors have 9 numbers, an odd dimension"):
        aoe(*flags, "halves")
    aoe(*flags, "densities")
    drawn = json.loads(aoe(*flags, "all", "--json"))
    assert drawn["files"] == ["densities.png", "densities.svg"]
    assert "an odd dimension" in drawn["left_out"]["halves of odd"]


def test_of_all_figures_those_are_drawn_that_can_be(bert: Path, pairs: Path, tmp_path: Path) -> None:
    trained, out = write_run(tmp_path / "trained"), tmp_path / "figures"
    drawn = json.loads(aoe("--model", trained, "--out", out, "--json"))
    assert drawn["files"] == ["curves.png", "curves.svg"]
    assert drawn["left_out"] == {"densities and halves": "they need --data, pairs with gold scores"}
    few = ("--above", "0.999", "--model", bert, "--data", pairs, "--out", out, "--json")
    drawn = json.loads(aoe(*few))
    assert "densities.png" in drawn["files"]
    assert "t-SNE at perplexity 30 needs" in drawn["left_out"]["halves of bert"]
    assert "no folder with a run.json" in drawn["left_out"]["curves of bert"]
    with pytest.raises(DataError, match="t-SNE at perplexity"):
        aoe(*few, "--kind", "halves")
    with pytest.raises(ConfigError, match=r"nothing can be drawn: .*run\.json.*they need --data"):
        aoe("--model", bert, "--out", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_without_matplotlib_it_says_what_to_install(
    bert: Path, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"a figure needs matplotlib.*pip install 'aoe-toolkit\[figures\]'"):
        aoe("--model", bert, "--data", pairs, "--out", tmp_path / "figures")


@pytest.mark.slow
def test_a_real_model_on_pairs_of_our_own(tmp_path: Path) -> None:
    rows = list(graded_pairs(60, 7))
    data = write_table(tmp_path / "own.tsv", "score\tsentence1\tsentence2", rows)
    printed = json.loads(
        aoe("--model", "minilm", "--data", data, "--out", tmp_path / "f", *SMALL, "--json", "-q")
    )
    vectors = Encoder.load("minilm", precision="fp32").encode([text for _, *pair in rows for text in pair])
    cosines = pair_similarities(vectors, np.arange(120).reshape(-1, 2), "cosine")
    expected = spearman(cosines, np.array([score for score, *_ in rows]))
    assert printed["densities"]["minilm"]["spearman"] == pytest.approx(expected, abs=1e-4)
    assert expected > 0.5


@pytest.mark.slow
@real_data
def test_a_real_model_on_real_pairs(tmp_path: Path) -> None:
    flags = ("--data", REAL / "stsb" / "stsb-test.tsv", "--out", tmp_path / "figures", "--json", "-q")
    printed = json.loads(aoe("--model", "minilm", *flags))
    assert printed["densities"]["minilm"]["spearman"] == pytest.approx(0.8203, abs=1e-4)
    assert printed["halves"]["minilm"]["pairs"] == 124
