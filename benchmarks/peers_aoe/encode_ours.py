"""Encode with `Encoder.load(model).encode(texts)`; it makes its own batches."""

from __future__ import annotations

from runner import answer, job, time_encoding

from aoe_train import Encoder


def main() -> None:
    """Load the model and time it."""
    work = job()
    encoder = Encoder.load(
        work["model"],
        precision=work["precision"],
        max_length=work["max_length"],
        pooling=work.get("pooling"),
    )
    answer(**time_encoding(lambda texts, _size: encoder.encode(texts), work))


if __name__ == "__main__":
    main()
