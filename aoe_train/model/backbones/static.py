"""A static model: a vector for each token, and a text's vector is their mean. There is no network to run.

It is what sentence-transformers calls a StaticEmbedding, in the folders of `aoe distill` and of Model2Vec.
Texts get no special tokens; one without any token has the vector 0, as it has there.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from huggingface_hub.dataclasses import strict
from torch import nn
from torch.nn.functional import embedding_bag
from transformers import PreTrainedConfig

from aoe_train.model.folder_checks import KINDS, check_modules, check_settings, read_modules
from pairkit.app.errors import ConfigError, DataError

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor
    from transformers import PreTrainedTokenizerFast

    from aoe_train.settings.training import EncoderSettings

_WEIGHTS = "model.safetensors"
_MOST_NUMBERS = 1 << 30  # of a table of which a folder keeps a part
_REMEDY = "copy or download the model again"


@strict
class StaticConfig(PreTrainedConfig):  # type: ignore[no-untyped-call]
    """The table's sizes."""

    model_type = "static"

    vocab_size: int = 1
    hidden_size: int = 1


class StaticTable(nn.Module):
    """The tokens' vectors, which can be encoded with and neither trained nor saved."""

    def __init__(self, table: Float[Tensor, "token dim"]) -> None:
        super().__init__()
        tokens, dim = table.shape
        self.config = StaticConfig(vocab_size=tokens, hidden_size=dim)
        self.embedding = nn.Embedding(tokens, dim, _weight=table)

    def pooled(
        self, input_ids: Int[Tensor, " token"], tokens: Int[Tensor, " text"]
    ) -> Float[Tensor, "text dim"]:
        """The mean of each text's tokens, float32; `tokens` says how many come first, then next."""
        starts = torch.cumsum(tokens, 0) - tokens
        found: Tensor = embedding_bag(input_ids, self.embedding.weight, starts, mode="mean")
        return found.float()


def is_static(folder: Path) -> bool:
    """Whether a model's folder, whose files may be read, holds a static model."""
    modules = read_modules(folder)
    return bool(modules) and KINDS.get(modules[0].type) == "StaticEmbedding"


class StaticModel(NamedTuple):
    """A table and the tokenizer whose tokens it is of."""

    table: StaticTable
    tokenizer: PreTrainedTokenizerFast


def read_static(folder: Path, dtype: torch.dtype) -> StaticModel:
    """What a static model's folder holds."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    part = folder / check_modules(folder)[0].path
    for place in {folder, part}:
        check_settings(place)
    try:
        raw = Tokenizer.from_file(str(part / "tokenizer.json"))
    except Exception as error:  # tokenizers has no errors of its own
        raise DataError(f"no tokenizer ({error}); {_REMEDY}", path=part / "tokenizer.json") from error
    raw.post_processor = None  # it would put special tokens around a text
    table = _table(part / _WEIGHTS)
    highest = max(raw.get_vocab(with_added_tokens=True).values(), default=-1)
    if highest >= len(table):
        raise DataError(
            f"vectors of {len(table):,} tokens, and the tokenizer has a token number {highest:,}; {_REMEDY}",
            path=part / _WEIGHTS,
        )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw)  # type: ignore[no-untyped-call]
    return StaticModel(StaticTable(table.to(dtype)), tokenizer)


def check_static(settings: EncoderSettings) -> None:
    """See that settings ask for no more than a mean."""
    asked: dict[str, bool] = {
        f"pooling {settings.pooling}": settings.pooling not in ("auto", "avg"),
        "include_prompt false": not settings.include_prompt,
        "layers": settings.layers is not None,
        "bidirectional": settings.bidirectional,
    }
    for name, given in asked.items():
        if given:
            raise ConfigError(f"encoder.{name}: a static model takes the mean of its tokens; leave it out")


def refuse_static(backbone: Any, doing: str) -> None:
    """Refuse what takes a network."""
    if isinstance(backbone, StaticTable):
        raise ConfigError(
            f"{doing}: not of a static model, which is a table of vectors without a network; take the model"
            " that it was distilled from, and `aoe distill` the result"
        )


def _table(path: Path) -> Float[Tensor, "token dim"]:
    """One row for each token. Model2Vec may keep fewer rows, each for several tokens, and tokens' weights."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        stored = load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"no weights ({error}); {_REMEDY}", path=path) from error
    table = stored.get("embedding.weight", stored.get("embeddings"))
    if table is None or table.ndim != 2:
        raise DataError(f"holds no table of tokens' vectors; {_REMEDY}", path=path)
    rows, weights = stored.get("mapping"), stored.get("weights")
    if rows is not None:
        rows = rows.long()
        if rows.ndim != 1 or not len(rows) or int(rows.min()) < 0 or int(rows.max()) >= len(table):
            raise DataError(f"mapping: expected a row of the table for each token; {_REMEDY}", path=path)
        if len(rows) * table.shape[1] > _MOST_NUMBERS:
            raise DataError(f"mapping: more than {_MOST_NUMBERS:,} numbers in all; {_REMEDY}", path=path)
        table = table[rows]
    table = table.float()
    if weights is not None:
        if weights.shape != (len(table),):
            raise DataError(f"weights: expected one for each of {len(table):,} tokens; {_REMEDY}", path=path)
        table = table * weights[:, None].float()
    return table.contiguous()
