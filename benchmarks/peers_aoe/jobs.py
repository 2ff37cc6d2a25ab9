"""A training as its peers are given it: the same rows, length, steps and rate, and each one's losses."""

from __future__ import annotations


def peer_training(who: str, **given: object) -> dict:
    """The job of sentence-transformers or angle-emb."""
    equal = {**given, "warmup": 0, "seed": 0, "score": {}}
    if who == "sentence-transformers":
        return {**equal, "loss": "angle"}
    weights = {f"{part}_w": 1.0 for part in ("cosine", "ibn", "angle")}
    return {**equal, "loss": weights, "filter_duplicate": False}
