"""Encode with angle-emb, in batches in the order of the texts, as its own evaluator does."""

from __future__ import annotations

import numpy as np
import torch
from angle_emb import AnglE, __version__
from runner import answer, job, time_encoding


def main() -> None:
    """Load the model and time each batch size."""
    work = job()
    dtype = {"fp32": "float32", "bf16": "bfloat16"}[work["precision"]]
    pooling = work.get("pooling", "avg")
    # angle-emb ignores `torch_dtype` for encoders.
    kind = (
        {"is_llm": True, "torch_dtype": dtype}
        if pooling == "last"
        else {"model_kwargs": {"dtype": dtype}}
    )
    angle = AnglE.from_pretrained(
        work["model"], max_length=work["max_length"], pooling_strategy=pooling, **kind
    )
    angle.backbone.to("cuda" if torch.cuda.is_available() else "cpu")

    def encode(texts: list[str], size: int) -> np.ndarray:
        starts = range(0, len(texts), size)
        return np.concatenate(
            [angle.encode(texts[start : start + size]) for start in starts]
        )

    answer(**time_encoding(encode, work), version=__version__)


if __name__ == "__main__":
    main()
