"""Encode with `Encoder.load("minilm").encode(texts)`; it makes its own batches."""

from __future__ import annotations

from runner import answer, job, time_encoding

from aoe_train import Encoder


def main() -> None:
    """Load the model and time it."""
    work = job()
    encoder = Encoder.load("minilm", precision=work["precision"], max_length=work["max_length"])
    answer(**time_encoding(lambda texts, _size: encoder.encode(texts), work))


if __name__ == "__main__":
    main()
