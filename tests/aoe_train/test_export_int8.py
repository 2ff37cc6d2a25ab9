"""Graphs in int8: their files, their vectors, and what is said of their loss."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import aoe_train
from aoe_train.evaluation.pairs import PairTask, pair_task
from aoe_train.exporting import loss as losses
from aoe_train.exporting import onnx as graphs
from aoe_train.exporting.export import Exported, difference, export, probes
from aoe_train.exporting.loss import SAMPLES, Loss, measure
from aoe_train.exporting.onnx import GRAPHS, onnx_encoder
from aoe_train.model.encoder import Encoder
from pairkit.app.errors import ConfigError, DataError

needs_onnx = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, graphs._PACKAGES)),
    reason="onnx, onnxruntime and onnxscript are an extra",
)
VECTORS = {"a": [1.0, 0.0], "bb": [0.0, 1.0], "ccc": [0.8, 0.6]}
TURNED = {"a": [1.0, 0.0], "bb": [0.0, 2.0], "ccc": [0.6, 0.8]}  # cosines with the above: 1, 1, 0.96
PAIRS = pl.DataFrame({"text1": ["a", "a", "bb"], "text2": ["bb", "ccc", "ccc"], "label": [0.0, 2.0, 1.0]})


def encoding(vectors: dict[str, list[float]]) -> Callable[[Sequence[str]], np.ndarray]:
    return lambda texts: np.array([vectors[text] for text in texts], dtype=np.float32)


def task(labels: Sequence[float] = (0, 2, 1)) -> PairTask:
    return pair_task("mine", PAIRS.with_columns(label=pl.Series(labels, dtype=pl.Float64)))


def test_loss_by_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(losses, "_LEAST_AGREEMENT", 0.4)
    found = measure(encoding(VECTORS), encoding(TURNED), task(), path=tmp_path)
    # Cosines of the pairs: 0, 0.8, 0.6 became 0, 0.6, 0.8; their ranks 1, 3, 2 and 1, 2, 3.
    assert found.agreement == pytest.approx(0.5)
    assert (found.spearman, found.spearman_int8) == (pytest.approx(1), pytest.approx(0.5))
    assert found.cosine_least == pytest.approx(0.96)
    assert found.cosine_mean == pytest.approx(2.96 / 3)
    assert str(found) == (
        "int8 on 3 pairs of mine: Spearman with the labels 100.00 in fp32 and 50.00 in int8, Spearman of "
        "their cosines with fp32's 0.5000; cosine of a vector with fp32's 0.9867 (mean), 0.9600 (least)"
    )


def test_too_much_loss_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"0\.5000;.*at least 0\.9: int8 is too coarse.*nothing was written"):
        measure(encoding(VECTORS), encoding(TURNED), task(), path=tmp_path)
    nan = {text: [float("nan")] * 2 for text in VECTORS}
    with pytest.raises(DataError, match="nan"):
        measure(encoding(VECTORS), encoding(nan), task(), path=tmp_path)


def test_labels_that_are_all_alike_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="mine"):
        measure(encoding(VECTORS), encoding(VECTORS), task([1, 1, 1]), path=tmp_path)


def test_sentences_are_compared_without_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vectors = {text: rng.normal(size=4).tolist() for text in SAMPLES}
    found = measure(encoding(vectors), encoding(vectors), None, path=tmp_path)
    assert (found.pairs, found.agreement, found.spearman) == (780, pytest.approx(1), None)
    assert str(found).startswith("int8 on 780 pairs of sample sentences: Spearman of their cosines")


@needs_onnx
def test_int8_beside_the_model(shallow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = exported(shallow, tmp_path, "onnx-int8", monkeypatch)
    assert [path.name for path in (tmp_path / "x/onnx").iterdir()] == ["model_qint8.onnx"]
    encoder = loaded(shallow)
    found = onnx_encoder(tmp_path / "x", file=GRAPHS["onnx-int8"].file)(probes(40))
    assert 1e-6 < difference(found, encoder.encode(probes(40))) < 0.3
    assert done.difference < 1e-4
    card = (tmp_path / "x/README.md").read_text()
    assert 'backend="onnx", model_kwargs={"file_name": "onnx/model_qint8.onnx"}' in card
    assert '{model_file_name: "model_qint8", dtype: "fp32"}' in card


def loaded(folder: Path) -> Encoder:
    return Encoder.load(folder, device="cpu", precision="fp32", pooling="avg", normalize=True, max_length=40)


def exported(source: Path, place: Path, form: Any, monkeypatch: pytest.MonkeyPatch) -> Exported:
    """A model of random weights, whose cosines are all alike, without the limit on their order.

    The card's code is run, and the loss must stand in card and run.json.
    """
    monkeypatch.setattr(losses, "_LEAST_AGREEMENT", -1)
    done = export(loaded(source), place / "x", source=source, form=form)
    card = (place / "x/README.md").read_text()
    run = json.loads((place / "x/run.json").read_text())["export"]
    if GRAPHS[form].int8:
        assert isinstance(done.loss, Loss)
        assert done.loss.cosine_mean > 0.95
        assert f"{done.loss}." in card
        assert run["loss"]["pairs"] == 780
    else:
        assert done.loss is run["loss"] is None
    monkeypatch.chdir(place)
    found: dict[str, Any] = {}
    exec(card.split("```python\n")[2].split("```")[0], found)
    expected = loaded(source).encode(["A man is playing a flute."])
    assert difference(np.asarray(found["vectors"]), expected) < 0.3
    return done


def test_data_measures_int8_only(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--data is what the loss of int8 is measured on"):
        aoe_train.export("minilm", out=tmp_path / "x", data=PAIRS, progress=False)
