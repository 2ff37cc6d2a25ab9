"""A model as far as its vectors depend on it, in values that tell it from another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aoe_train.encoder import Encoder


def model_origin(encoder: Encoder) -> dict[str, Any]:
    """Hashes of weights and tokenizer, the settings, and where and in which numbers it computes."""
    from aoe_train.origin import hash_tokenizer, hash_weights

    return {
        "weights": hash_weights(encoder.model),
        "tokenizer": hash_tokenizer(encoder.tokenizer),
        "settings": encoder.settings.model_dump(mode="json"),
        "precision": str(next(encoder.model.parameters()).dtype).removeprefix("torch."),
        "device": encoder.device.type,
    }
