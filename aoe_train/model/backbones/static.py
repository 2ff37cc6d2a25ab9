"""A static model: a text's vector is the mean of its tokens' vectors, and there is no network.

sentence-transformers calls it StaticEmbedding; `aoe distill` and Model2Vec write such folders. Texts get no
special tokens, and a text without tokens gets a zero vector, as in sentence-transformers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag
from transformers import PreTrainedConfig

from aoe_train.model.device import upload
from aoe_train.model.folder_checks import (
    KINDS,
    check_settings,
    panics_as_errors,
    read_modules,
    read_weights,
)
from aoe_train.model.text_model import PackedBackbone
from pairkit.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from transformers import PreTrainedTokenizerFast

    from aoe_train.settings.train_settings import EncoderSettings

_WEIGHTS = "model.safetensors"
_MAX_NUMBERS = 1 << 30  # of a table after its mapping was applied
_REMEDY = "copy or download the model again"


class StaticTable(PackedBackbone, nn.Module):
    """The vectors of tokens; it can encode, but can't be trained or saved."""

    title = "static model"
    poolings = ("avg",)

    def __init__(self, table: Float[Tensor, "token dim"]) -> None:
        super().__init__()
        tokens, dim = table.shape
        sizes = {"vocab_size": tokens, "hidden_size": dim}
        self.config = PreTrainedConfig.from_dict(sizes)
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
    for checked in {folder, module}:  # one folder, if the path is empty
        check_settings(checked)
    path = module / "tokenizer.json"
    try:
        with panics_as_errors("on its own rules"):
            raw = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises plain Exception
        raise _damaged(path, f"no tokenizer ({error})") from error
    raw.post_processor = None  # it would add special tokens
    table = _read_table(module / _WEIGHTS)
    highest = max(raw.get_vocab(with_added_tokens=True).values(), default=-1)
    if highest >= len(table):
        raise _damaged(
            module / _WEIGHTS,
            f"has vectors of {len(table):,} tokens, but the tokenizer has a token number {highest:,}",
        )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw)  # type: ignore[no-untyped-call]
    return StaticTable(table.to(dtype)), tokenizer


def check_static(settings: EncoderSettings) -> None:
    """Refuse settings that a static model can't have."""
    given = {
        f"pooling {settings.pooling}": settings.pooling not in ("auto", "avg"),
        "include_prompt false": not settings.include_prompt,
        "layers": settings.layers is not None,
        "bidirectional": settings.bidirectional,
    }
    for name, is_given in given.items():
        if is_given:
            raise ConfigError(
                f"encoder.{name}: a static model averages its tokens' vectors; leave it out"
            )


def refuse_static(backbone: object, action: str) -> None:
    """Refuse an action that needs a network."""
    if isinstance(backbone, StaticTable):
        raise ConfigError(
            f"{action}: not possible for a static model, which has no network; use the model that it was"
            " distilled from, and distil the result with `aoe distill`"
        )


def _read_table(path: Path) -> Float[Tensor, "token dim"]:
    """One row per token. In Model2Vec's files tokens may share rows, and have weights."""
    stored = read_weights(path)
    table = stored.get("embedding.weight", stored.get("embeddings"))
    if table is None or table.ndim != 2:
        raise _damaged(path, "contains no table of token vectors")
    if "mapping" in stored:
        table = table[_row_of_token(stored["mapping"], table, path)]
    table = table.float()
    if "weights" in stored:
        weights = stored["weights"]
        if weights.shape != (len(table),):
            problem = f"weights: expected one for each of the {len(table):,} tokens"
            raise _damaged(path, problem)
        table = table * weights[:, None].float()
    return table.contiguous()


def _row_of_token(
    mapping: Tensor, table: Float[Tensor, "row dim"], path: Path
) -> Int[Tensor, " token"]:
    """The row of each token; raises DataError for missing rows, or if the result were too large."""
    rows = mapping.long()
    is_list = rows.ndim == 1 and len(rows) > 0
    if not is_list or int(rows.min()) < 0 or int(rows.max()) >= len(table):
        raise _damaged(path, "mapping: expected the index of a row for each token")
    if len(rows) * table.shape[1] > _MAX_NUMBERS:
        raise _damaged(path, f"mapping: more than {_MAX_NUMBERS:,} numbers in total")
    return rows


def _damaged(path: Path, problem: str) -> DataError:
    return DataError(f"{problem}; {_REMEDY}", path=path)
