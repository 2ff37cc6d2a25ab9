"""A static model: a text's vector is the mean of its tokens' vectors, and there is no network.

sentence-transformers calls it StaticEmbedding; `aoe distill` and Model2Vec write such folders. Texts get no
special tokens, and a text without tokens gets a zero vector, as in sentence-transformers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn.functional import embedding_bag
from transformers import PreTrainedConfig

from aoe_train.model.device import upload
from aoe_train.model.folder_checks import (
    KINDS,
    check_settings,
    panics_as_errors,
    read_modules,
)
from aoe_train.model.text_model import PackedBackbone
from pairkit.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from transformers import PreTrainedTokenizerFast

    from aoe_train.settings.train_settings import EncoderSettings

_WEIGHTS = "model.safetensors"
# The largest size of a table after its mapping is applied.
_MAX_NUMBERS = 1 << 30
_REMEDY = "copy or download the model again"


@strict
class StaticConfig(PreTrainedConfig):  # type: ignore[no-untyped-call]
    """The size of the table."""

    model_type = "static"

    vocab_size: int = 1
    hidden_size: int = 1


class StaticTable(PackedBackbone, nn.Module):
    """The vectors of tokens; it can encode, but can't be trained or saved."""

    title = "static model"
    poolings = ("avg",)

    def __init__(self, table: Float[Tensor, "token dim"]) -> None:
        super().__init__()
        tokens, dim = table.shape
        self.config = StaticConfig(vocab_size=tokens, hidden_size=dim)
        self.embedding = nn.Embedding(tokens, dim, _weight=table)

    def packed_vectors(
        self,
        input_ids: Int[Tensor, " token"],
        lengths: Int[np.ndarray, " text"],
        pooling: str,
    ) -> Float[Tensor, "text dim"]:
        """The mean of each text's tokens; there are no hidden states."""
        del pooling
        starts = upload(np.cumsum(lengths) - lengths, input_ids.device)
        means: Tensor = embedding_bag(
            input_ids, self.embedding.weight, starts, mode="mean"
        )
        return means.float()


def is_static(folder: Path) -> bool:
    """Whether a model folder contains a static model."""
    modules = read_modules(folder)
    return bool(modules) and KINDS.get(modules[0].type) == "StaticEmbedding"


def read_static(
    folder: Path, dtype: torch.dtype
) -> tuple[StaticTable, PreTrainedTokenizerFast]:
    """The table and tokenizer of a static model."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    first, *_ = read_modules(folder)
    module = folder / first.path
    for checked in {folder, module}:
        check_settings(checked)
    path = module / "tokenizer.json"
    try:
        with panics_as_errors("on its own rules"):
            raw = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises plain Exception
        raise DataError(f"no tokenizer ({error}); {_REMEDY}", path=path) from error
    raw.post_processor = None  # it would add special tokens
    table = _read_table(module / _WEIGHTS)
    highest = max(raw.get_vocab(with_added_tokens=True).values(), default=-1)
    if highest >= len(table):
        raise DataError(
            f"has vectors of {len(table):,} tokens, but the tokenizer has a token number {highest:,};"
            f" {_REMEDY}",
            path=module / _WEIGHTS,
        )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw)  # type: ignore[no-untyped-call]
    return StaticTable(table.to(dtype)), tokenizer


def check_static(settings: EncoderSettings) -> None:
    """Refuse settings that a static model can't have."""
    unsupported: dict[str, bool] = {
        f"pooling {settings.pooling}": settings.pooling not in ("auto", "avg"),
        "include_prompt false": not settings.include_prompt,
        "layers": settings.layers is not None,
        "bidirectional": settings.bidirectional,
    }
    for name, is_set in unsupported.items():
        if is_set:
            raise ConfigError(
                f"encoder.{name}: a static model averages its tokens' vectors; leave it out"
            )


def refuse_static(backbone: Any, action: str) -> None:
    """Refuse an action that needs a network."""
    if isinstance(backbone, StaticTable):
        raise ConfigError(
            f"{action}: not possible for a static model, which has no network; use the model that it was"
            " distilled from, and distil the result with `aoe distill`"
        )


def _read_table(path: Path) -> Float[Tensor, "token dim"]:
    """One row per token. In Model2Vec's files tokens may share rows, and have weights."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    def refuse(problem: str) -> NoReturn:
        raise DataError(f"{problem}; {_REMEDY}", path=path)

    try:
        stored = load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"no weights ({error}); {_REMEDY}", path=path) from error
    table = stored.get("embedding.weight", stored.get("embeddings"))
    if table is None or table.ndim != 2:
        refuse("contains no table of token vectors")
    rows = stored.get("mapping")
    if rows is not None:
        rows = rows.long()
        is_list = rows.ndim == 1 and len(rows) > 0
        if not is_list or int(rows.min()) < 0 or int(rows.max()) >= len(table):
            refuse("mapping: expected the index of a row for each token")
        if len(rows) * table.shape[1] > _MAX_NUMBERS:
            refuse(f"mapping: more than {_MAX_NUMBERS:,} numbers in total")
        table = table[rows]
    table = table.float()
    weights = stored.get("weights")
    if weights is not None:
        if weights.shape != (len(table),):
            refuse(f"weights: expected one for each of the {len(table):,} tokens")
        table = table * weights[:, None].float()
    return table.contiguous()
