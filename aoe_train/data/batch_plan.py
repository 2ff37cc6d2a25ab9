"""What an epoch's batches will look like, said before any training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aoe_train.data.batches import Batches, one_label_batches
from aoe_train.model.tokens.tokens import TokenStore
from aoe_train.records import ABSENT


def describe(batches: Batches, store: TokenStore) -> dict[str, float]:
    """The first epoch in numbers, for whole batches of all ranks."""
    return describe_all([(batches.plan(0), batches, store)], left_out=batches.left_out)


def describe_all(
    datasets: Sequence[tuple[Sequence[np.ndarray], Batches, TokenStore]], *, left_out: int
) -> dict[str, float]:
    """The same for several datasets: some batches of each, what dealt them, and their texts."""
    tables, one_label = [], 0
    for plan, batches, store in datasets:
        examples, copies = batches.examples, batches.copies
        lengths = store.lengths
        tables += [
            (
                len(batch),
                copies,
                *_sizes(examples.rows[batch], examples.token_counts(lengths, batch), lengths),
            )
            for batch in plan
        ]
        if examples.labels is not None:
            one_label += one_label_batches([np.asarray(batch) for batch in plan], examples.labels)
    rows, copied, tokens, distinct, texts, own, padded = np.array(tables).T
    return {
        "steps": len(tables),
        "rows_mean": float(rows.mean()),
        "rows_max": int(rows.max()),
        "tokens_mean": float((tokens * copied).mean()),
        "tokens_max": int((tokens * copied).max()),
        "distinct_share": float(distinct.sum() / texts.sum()),
        "padding_share": float(1 - own.sum() / padded.sum()),
        "one_label_batches": one_label,
        "left_out": left_out,
        "truncated_texts": sum(store.truncated for _, _, store in datasets),
    }


def _sizes(columns: np.ndarray, counts: np.ndarray, lengths: np.ndarray) -> tuple[int, int, int, int, int]:
    """Tokens of distinct texts, distinct texts, texts, tokens of all texts, tokens with columns padded."""
    distinct = distinct_texts(columns)
    texts = int(np.count_nonzero(columns != ABSENT))
    return lengths[distinct].sum(), len(distinct), texts, counts.sum(), counts.max(axis=0).sum() * len(counts)


def distinct_texts(columns: np.ndarray) -> np.ndarray:
    """The texts of some rows of `Examples`, each once."""
    return np.unique(columns[columns != ABSENT])
