"""The tiny models of the tests of training, and messages as in the shell."""

from collections.abc import Iterator

import pytest

from pairkit.base.errors import shell
from tests.aoe_train.conftest import bert, kill_at, llama, minilm, out, shallow

__all__ = ["bert", "kill_at", "llama", "minilm", "out", "shallow"]


@pytest.fixture(autouse=True)
def _in_the_shell() -> Iterator[None]:
    with shell():
        yield
