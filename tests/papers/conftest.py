"""The tiny models of the tests of training."""

from tests.aoe_train.conftest import bert, kill_at, llama, minilm, shallow

__all__ = ["bert", "kill_at", "llama", "minilm", "shallow"]
