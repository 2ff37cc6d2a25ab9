"""How much arithmetic a BERT-like encoder must do for some texts, padding not counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer


def token_lengths(texts: list[str], model: Path, max_length: int) -> np.ndarray:
    """Tokens of each text after truncation, with special tokens."""
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    return np.array([len(encoding.ids) for encoding in tokenizer.encode_batch(texts)])


def forward_flops(lengths: np.ndarray, model: Path) -> float:
    """FLOPs of the matrix products of a forward pass, with attention by length squared."""
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    dim, inner = config["hidden_size"], config["intermediate_size"]
    tokens, squares = lengths.sum(), (lengths.astype(float) ** 2).sum()
    per_layer = 2 * tokens * (4 * dim * dim + 2 * dim * inner) + 4 * squares * dim
    return float(config["num_hidden_layers"] * per_layer)


def describe(lengths: np.ndarray, max_length: int) -> str:
    """A description: quartiles of the lengths, and the number of truncated texts."""
    low, middle, high = np.percentile(lengths, [25, 50, 75])
    cut = 100 * (lengths == max_length).mean()
    return (
        f"{len(lengths):,} texts, tokens: quartiles {low:.0f} {middle:.0f} {high:.0f}, "
        f"mean {lengths.mean():.0f}, {cut:.0f} % at the limit of {max_length}"
    )
