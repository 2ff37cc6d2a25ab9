"""What an encoder is set to: as its folder says, and as its backbone decides where that says nothing.

A model folder of ours has `aoe.json`; of others what sentence-transformers keeps in it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aoe_train._backbones.decoder import default_pooling
from aoe_train._backbones.static import StaticTable, check_static
from aoe_train._flow import Flow, read_flow, write_flow
from aoe_train._heads import Heads, fresh_heads, own_places, read_heads, write_heads
from aoe_train._interchange import dense_folders, read_sentence_transformers
from aoe_train._model_folder.files import read_object
from aoe_train._ngrams import NGrams, read_ngrams, write_ngrams
from aoe_train._packing.run import position_offset
from aoe_train._prompts import DEFAULT
from aoe_train._settings import EncoderSettings
from pairkit.config import load_settings
from pairkit.errors import ConfigError, DataError
from pairkit.files import write_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SETTINGS_FILE = "aoe.json"
_FORMAT = 1
_LONGEST = 512  # tokens, where neither model nor tokenizer knows a limit


def store_settings(folder: Path, settings: EncoderSettings) -> None:
    """Write `aoe.json` into a model folder."""
    write_json(folder / SETTINGS_FILE, {"format": _FORMAT, **settings.model_dump()})


def stored_settings(folder: Path) -> dict[str, Any]:
    """What a model's folder says of how its model encodes, by name.

    Raises:
        ConfigError: See `read_sentence_transformers`.
        DataError: The folder's `aoe.json` is damaged, or of another release.
    """
    path = folder / SETTINGS_FILE
    if not path.is_file():
        return read_sentence_transformers(folder)
    stored = read_object(path)
    if stored.pop("format", None) != _FORMAT:
        raise DataError(f"not format {_FORMAT}: made by another release of aoe-toolkit", path=path)
    if (words := stored.pop("prompt", None)) is not None:  # of a folder from before prompts had names
        stored |= {"prompts": {DEFAULT: words}, "default_prompt_name": DEFAULT}
    try:
        return load_settings(EncoderSettings, below=stored).model_dump()
    except ConfigError as error:
        raise DataError(f"{error}; copy the model again", path=path) from error


class Layers(NamedTuple):
    """What a model has around its pooling.

    Attributes:
        ngrams: Filters before it.
        heads: Dense layers behind it.
        flow: An invertible map behind these.
    """

    ngrams: NGrams | None = None
    heads: Heads | None = None
    flow: Flow | None = None

    def with_fresh(self, settings: EncoderSettings, dim: int) -> Layers:
        """The same, and what the settings ask for besides, drawn with torch's generator.

        Raises:
            ConfigError: They ask for a flow.
        """
        if settings.flow is not None and self.flow is None:
            raise ConfigError("encoder.flow: is fitted to vectors by `aoe export --flow`; leave it out here")
        ngrams = NGrams(settings.ngrams, dim) if self.ngrams is None and settings.ngrams else self.ngrams
        heads = fresh_heads(settings.dense, dim) if self.heads is None and settings.dense else self.heads
        return Layers(ngrams, heads, self.flow)


def stored_layers(
    folder: Path, stored: Mapping[str, Any], settings: EncoderSettings, backbone: PreTrainedModel
) -> Layers:
    """The layers that a model's folder has around its pooling.

    Args:
        folder: The model's.
        stored: What it says of how its model encodes.
        settings: What is wanted; layers that are there can't be others.
        backbone: Gives the vectors that go in.

    Raises:
        ConfigError, DataError: Others are wanted, or they can't be read.
    """
    ngrams = heads = flow = None
    dim = int(backbone.config.hidden_size)
    had = EncoderSettings(
        ngrams=stored.get("ngrams", ()), dense=stored.get("dense", ()), flow=stored.get("flow")
    )
    for name, differ in (
        ("ngrams", had.ngrams and had.ngrams != settings.ngrams),
        ("dense", had.dense and had.dense != settings.dense),
        ("flow", had.flow and had.flow != settings.flow),
    ):
        if differ:
            raise ConfigError(f"{folder}: has {name} layers of its own; leave encoder.{name} out")
    if had.ngrams:
        ngrams = read_ngrams(folder, had.ngrams, dim)
    if had.dense:
        own = (folder / SETTINGS_FILE).is_file()
        places = [folder / place for place in own_places(len(had.dense))] if own else dense_folders(folder)
        heads = read_heads(places, had.dense, dim)
    if had.flow is not None:
        flow = read_flow(folder, had.flow, dim if heads is None else heads.dim)
    return Layers(ngrams, heads, flow)


def store_layers(folder: Path, layers: Layers) -> None:
    """Write the layers around the pooling into a model's folder."""
    if layers.ngrams is not None:
        write_ngrams(folder, layers.ngrams)
    if layers.heads is not None:
        write_heads(folder, layers.heads)
    if layers.flow is not None:
        write_flow(folder, layers.flow)


def resolved(settings: EncoderSettings, backbone: PreTrainedModel) -> EncoderSettings:
    """The settings with pooling and length decided, which the backbone can do; a static model has no length.

    Raises:
        ConfigError: It can't.
    """
    if isinstance(backbone, StaticTable):
        check_static(settings)
        return settings.model_copy(update={"pooling": "avg"})
    recurrent = hasattr(backbone, "forward_packed")
    pooling: str = settings.pooling
    if pooling == "auto":
        pooling = "cells" if recurrent else default_pooling(backbone)
    if pooling == "cells" and not recurrent:
        raise ConfigError("pooling cells: only a Recurrent Attention Network has them; use avg or cls")
    if pooling == "first-last-avg" and recurrent:
        raise ConfigError("pooling first-last-avg: a Recurrent Attention Network gives its last layer only")
    if pooling == "cells" and not settings.include_prompt:
        raise ConfigError(
            "include_prompt is false, but cells hold prompt and text together; use another pooling"
        )
    if settings.ngrams and pooling == "cells":
        raise ConfigError("encoder.ngrams: filters read tokens, which the pooling cells does not; take avg")
    if len(settings.ngrams) > int(backbone.config.hidden_size):
        raise ConfigError(f"encoder.ngrams: more than a token's {backbone.config.hidden_size} numbers")
    limit = _limit(backbone)
    if settings.max_length is not None and limit is not None and settings.max_length > limit:
        raise ConfigError(f"max_length {settings.max_length}: this backbone reads {limit} tokens at most")
    return settings.model_copy(
        update={"pooling": pooling, "max_length": settings.max_length or min(limit or _LONGEST, _LONGEST)}
    )


def _limit(backbone: PreTrainedModel) -> int | None:
    """The most tokens that the backbone has positions for; None where it has no such limit."""
    positions = getattr(backbone.config, "max_position_embeddings", None)
    return None if positions is None else int(positions) - position_offset(backbone)
