"""What an epoch's batches will look like, said before any training."""

from __future__ import annotations

import numpy as np

from aoe_train._batches import Batches
from aoe_train._label_mixing import one_label_batches
from aoe_train._records import ABSENT
from aoe_train._tokens import TokenStore


def describe(batches: Batches, store: TokenStore) -> dict[str, float]:
    """The first epoch in numbers, for whole batches of all ranks.

    Returns:
        `steps`; `rows_mean`, `rows_max`, `tokens_mean`, `tokens_max` of a batch, each distinct text counted
        once; `distinct_share`, distinct texts in all texts of a batch; `padding_share`, what of the usual
        tensors, each column padded to its longest text, would be padding; `one_label_batches`, batches from
        which a ranking loss learns nothing; `left_out`, rows that sit out; `truncated_texts`.
    """
    plan, examples, copies = batches.plan(0), batches.examples, batches.copies
    rows = np.array([len(batch) for batch in plan])
    lengths = store.lengths
    tokens, distinct, texts, own, padded = np.array(
        [_sizes(examples.rows[batch], examples.token_counts(lengths, batch), lengths) for batch in plan]
    ).T
    return {
        "steps": len(plan),
        "rows_mean": float(rows.mean()),
        "rows_max": int(rows.max()),
        "tokens_mean": float(tokens.mean() * copies),
        "tokens_max": int(tokens.max() * copies),
        "distinct_share": float(distinct.sum() / texts.sum()),
        "padding_share": float(1 - own.sum() / padded.sum()),
        "one_label_batches": 0 if examples.labels is None else one_label_batches(plan, examples.labels),
        "left_out": batches.left_out,
        "truncated_texts": store.truncated,
    }


def _sizes(columns: np.ndarray, counts: np.ndarray, lengths: np.ndarray) -> tuple[int, int, int, int, int]:
    """Tokens of distinct texts, distinct texts, texts, tokens of all texts, tokens with columns padded."""
    distinct = distinct_texts(columns)
    texts = int(np.count_nonzero(columns != ABSENT))
    return lengths[distinct].sum(), len(distinct), texts, counts.sum(), counts.max(axis=0).sum() * len(counts)


def distinct_texts(columns: np.ndarray) -> np.ndarray:
    """The texts of some rows of `Examples`, each once."""
    return np.unique(columns[columns != ABSENT])
