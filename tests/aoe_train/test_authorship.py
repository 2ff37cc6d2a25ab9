"""Who wrote the texts of a dataset, as far as its record says."""

import json
from pathlib import Path

import pytest

from aoe_train.training.load import read_authorship


@pytest.mark.parametrize(
    ("kinds", "author"), [(["wordnet"], "rules"), (["openai", "wordnet"], None), ([], None)]
)
def test_authorship_from_run_json(tmp_path: Path, kinds: list[str], author: str | None) -> None:
    llms = {f"llm {number}": {"kind": kind} for number, kind in enumerate(kinds)}
    (tmp_path / "run.json").write_text(json.dumps({"made_by": "label (aoe-toolkit 0.1.0)", "llms": llms}))
    assert read_authorship(str(tmp_path / "triplet")) == (True, author)
    assert read_authorship("rows.tsv") == (False, None)
