from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pairkit

ROWS: list[dict[str, Any]] = [
    {"text1": f"editor {number} crashes", "text2": f"saving ends editor {number}", "label": number % 2}
    for number in range(8)
]
ANY: Any = pairkit  # called as no type checker lets one


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ANY.read(ROWS, columns=["text1"]), "columns = "),
        (lambda: ANY.read(ROWS, labels={"same": "one"}), "labels = "),
        (lambda: ANY.read(ROWS, split=3), "split = 3: "),
        (lambda: ANY.report(ROWS, "about", seed="x", progress=False), "seed = 'x': "),
        (lambda: ANY.show(ROWS, row="first"), "row = 'first': "),
        (lambda: ANY.show(ROWS, row=1.5), "row = 1.5: "),
        (lambda: ANY.export(ROWS, None), "out = None: input is not a valid path"),
        (lambda: ANY.write(ROWS, None), "out = None: "),
        (lambda: ANY.merge([ROWS, ROWS], split_sizes="half"), "split_sizes = 'half': "),
        (lambda: ANY.merge([ROWS, ROWS], seed=None), "seed = None: "),
        (lambda: ANY.merge(pd.DataFrame(ROWS)), "nothing to merge; give a list of datasets"),
        (lambda: ANY.split(ROWS, split_sizes=0.5), "split_sizes = 0.5: "),
        (lambda: ANY.split(ROWS, split_sizes=None), "split_sizes = None: "),
        (lambda: ANY.split(ROWS, seed=1.5), "seed = 1.5: "),
    ],
)
def test_errors_name_the_argument(
    call: Callable[[], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(pairkit.ConfigError) as raised:
        call()
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)
    assert not [*tmp_path.iterdir()]


def test_control_codes_in_split_names() -> None:
    assert "\x1b" not in repr(pairkit.read({"\x1b[31mtrain": ROWS}))
