"""How well cosines tell duplicates from other pairs, by length; and the loss of masked words."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

# By the longer text's tokens, each bucket from its number on.
BUCKETS = {"all": 0, "<128": 0, "128-255": 128, "256-511": 256, ">=512": 512}


def pair_scores(encode: Any, pairs: list[dict]) -> dict[str, dict[str, float]]:
    """AUC and Spearman (x 100) of the pairs' cosines with their labels, for each bucket of length."""
    texts = list(dict.fromkeys(pair[side] for pair in pairs for side in ("text1", "text2")))
    vectors = dict(zip(texts, np.asarray(encode(texts), np.float64), strict=True))
    cosines = np.array([vectors[pair["text1"]] @ vectors[pair["text2"]] for pair in pairs])
    labels = np.array([pair["label"] for pair in pairs])
    lengths = np.array([pair["length"] for pair in pairs])
    return {name: bucket_scores(cosines[rows], labels[rows]) for name, rows in bucket_rows(lengths).items()}


def bucket_rows(lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Which of the pairs belong to each bucket; all of them to `all`."""
    starts = [start for name, start in BUCKETS.items() if name != "all"]
    ends = [*starts[1:], math.inf]
    inside = [(lengths >= start) & (lengths < end) for start, end in zip(starts, ends, strict=True)]
    return dict(zip(BUCKETS, [np.ones(len(lengths), bool), *inside], strict=True))


def bucket_scores(cosines: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Both figures and the number of pairs; NaN where all labels are alike."""
    from scipy.stats import spearmanr
    from sklearn.metrics import roc_auc_score

    if len(np.unique(labels)) < 2:
        return {"auc": math.nan, "spearman": math.nan, "pairs": len(labels)}
    return {
        "auc": 100 * float(roc_auc_score(labels, cosines)),
        "spearman": 100 * float(spearmanr(cosines, labels).statistic),
        "pairs": len(labels),
    }


def masked_loss(model: Path, texts: Path, *, length: int, text_length: int) -> dict[str, float]:
    """The cross-entropy (nats) of words masked in held-out texts, always the same ones."""
    import torch
    from transformers import AutoTokenizer

    from aoe_train.model.backbones.quiet import quietly
    from papers.ran.corpus import read_texts, tokenize_corpus
    from papers.ran.masked_lm import RanForMaskedLM
    from papers.ran.masking import IGNORED, MaskedSequences, Vocabulary, pad_examples
    from papers.ran.settings import MaskSettings

    tokenizer = AutoTokenizer.from_pretrained(model)
    with quietly():
        network = RanForMaskedLM.from_pretrained(model).eval()
    corpus = tokenize_corpus(read_texts([texts], "text"), tokenizer, length=length, text_length=text_length)
    masked = MaskedSequences(
        corpus, Vocabulary.of(tokenizer), MaskSettings(), seed=0, examples=min(len(corpus), 1000)
    )
    total, seen = 0.0, Counter()
    with torch.inference_mode():
        for start in range(0, len(masked), 16):
            batch = pad_examples([masked[row] for row in range(start, min(start + 16, len(masked)))])
            labels = batch["labels"][batch["labels"] != IGNORED]
            total += float(network(**batch).loss) * len(labels)
            seen.update(labels.tolist())
    count = sum(seen.values())
    entropy = -sum(times / count * math.log(times / count) for times in seen.values())
    return {"loss": total / count, "frequencies": entropy, "labels": count}
