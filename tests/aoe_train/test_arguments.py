"""Wrong arguments give a one-line error that names them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import aoe_train
from pairkit import ConfigError, DataError

ANY: Any = aoe_train  # called as no type checker lets one
HOW: dict[str, Any] = {"batch_size": 2, "progress": False}
ROWS = [{"text1": "a man", "text2": f"a dog {word}", "label": place % 2} for place, word in enumerate("abcd")]


@pytest.mark.parametrize("texts", [None, 5, {"a man"}, (text for text in ["a man"])])
def test_encode_accepts_only_texts(texts, bert):
    encoder = aoe_train.Encoder.load(bert)
    with pytest.raises(DataError, match="expected a text, or a list of texts; found"):
        encoder.encode(texts)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ANY.encode(["a man"], model=None, progress=False), "model = None: expected a folder"),
        (lambda: ANY.evaluate(ROWS[0], data=ROWS, progress=False), "model = {"),
        (lambda: ANY.evaluate([], data=ROWS, progress=False), "no model to evaluate"),
        (lambda: ANY.evaluate("m", data=ROWS, seed="x", progress=False), "seed = 'x': "),
        (lambda: ANY.evaluate("m", data=ROWS, resamples="x", progress=False), "resamples = 'x': "),
        (lambda: ANY.evaluate("m", data=ROWS, suite=3, progress=False), "suite=3: expected sts"),
        (lambda: ANY.train(ROWS, out=None, progress=False), "out = None: "),
        (lambda: ANY.train(ROWS, out="m", backbone=None, progress=False), "backbone = None: "),
    ],
)
def test_errors_name_the_wrong_argument(call, message):
    with pytest.raises(ConfigError) as raised:
        call()
    assert str(raised.value).startswith(message)


def test_plan_refuses_unknown_arguments():
    with pytest.raises(TypeError, match="unexpected keyword argument 'batchsize'"):
        ANY.plan(ROWS, batchsize=2)
    with pytest.raises(ConfigError) as raised:
        aoe_train.losses.AngleLoss(torch.nn.Identity(), tau=0)  # type: ignore[arg-type]
    assert str(raised.value).startswith("setting 'tau.angle' = 0: ")
    assert "\n" not in str(raised.value)


WRONG_INPUTS = r"""
import sys
import aoe_train
from pairkit import PairkitError

good = "pairs.tsv"
for call, told in {
    lambda: aoe_train.train("empty.tsv"): "empty.tsv: is empty (0 bytes)",
    lambda: aoe_train.plan("empty.tsv"): "empty.tsv: is empty (0 bytes)",
    lambda: aoe_train.train("nowhere.tsv"): "nowhere.tsv: no such file",
    lambda: aoe_train.train(good, dev_data="nowhere.tsv"): "nowhere.tsv: no such file",
    lambda: aoe_train.train(good, accept_on="empty.tsv"): "empty.tsv: is empty (0 bytes)",
    lambda: aoe_train.train(good, accept_on="nowhere.tsv"): "nowhere.tsv: no such file",
    lambda: aoe_train.train("splits", columns="label=nothing"): "nothing",  # its empty split is not read
    lambda: aoe_train.train(good, columns="label=nothing"): "nothing",
    lambda: aoe_train.train(good, backbone="minilmm"): "minilmm: no such folder or packaged model",
    lambda: aoe_train.train(good, backbone="./m"): "./m: no such folder",
    lambda: aoe_train.train(good, backbone="folder"): "folder: no config.json",
    lambda: aoe_train.train(good, teacher="MiniLM"): "did you mean minilm?",
    lambda: aoe_train.train(good, out="pairs.tsv"): "pairs.tsv: ",
    lambda: aoe_train.evaluate("smollm", data=good): "did you mean smollm2?",
    lambda: aoe_train.evaluate("minilm", against="minillm", data=good): "did you mean minilm?",
}.items():
    try:
        call()
    except PairkitError as error:
        assert told in str(error), error
    else:
        raise AssertionError(told)
assert "torch" not in sys.modules
"""


def test_inputs_are_checked_before_torch_is_imported(tmp_path):
    (tmp_path / "empty.tsv").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "pairs.tsv").write_text("text1\ttext2\tlabel\na man\ta dog\t1\na cat\ta car\t0\n")
    (tmp_path / "splits").mkdir()
    (tmp_path / "splits" / "test.tsv").touch()
    shutil.copy(tmp_path / "pairs.tsv", tmp_path / "splits" / "train.tsv")
    how = {"env": {**os.environ, "PYTHONPATH": str(Path(aoe_train.__file__).parents[1])}, "cwd": tmp_path}
    done = subprocess.run([sys.executable, "-c", WRONG_INPUTS], **how, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_error_in_a_custom_loss_gets_a_note_on_its_arguments(bert, tmp_path):
    def own(vectors: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.mse_loss(vectors[:, 0] @ vectors[:, 1], labels[:, None, None])

    with pytest.raises(RuntimeError) as raised:
        aoe_train.train(ROWS, backbone=bert, out=tmp_path / "m", objective=own, **HOW)
    (note,) = raised.value.__notes__
    assert "own: called with vectors (row, column, dim) of shape (2, 2, " in note
    assert "and labels (2,); expected one number" in note
