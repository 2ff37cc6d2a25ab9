"""What an encoder is set to: as its folder says, and as its backbone decides where that says nothing.

A model folder of ours has `aoe.json`; of others what sentence-transformers keeps in it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train.model.backbones.decoder import default_pooling
from aoe_train.model.backbones.static import StaticTable, check_static
from aoe_train.model.dense_layers import DenseLayers, own_places, read_dense_layers
from aoe_train.model.folder_checks import read_object
from aoe_train.model.interchange import dense_folders, read_sentence_transformers
from aoe_train.model.packing.run import position_offset
from aoe_train.settings.prompts import DEFAULT
from aoe_train.settings.training import EncoderSettings
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.settings import load_settings
from pairkit.system.files import write_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SETTINGS_FILE = "aoe.json"
_FORMAT = 1
_LONGEST = 512  # tokens, where neither model nor tokenizer knows a limit


def store_settings(folder: Path, settings: EncoderSettings) -> None:
    """Write `aoe.json` into a model folder."""
    write_json(folder / SETTINGS_FILE, {"format": _FORMAT, **settings.model_dump()})


def stored_settings(folder: Path) -> dict[str, Any]:
    """What a model's folder says of how its model encodes, by name."""
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


def stored_heads(
    folder: Path, stored: Mapping[str, Any], settings: EncoderSettings, backbone: PreTrainedModel
) -> DenseLayers | None:
    """The dense layers that a model's folder has behind its pooling."""
    had = EncoderSettings(dense=stored.get("dense", ())).dense
    if not had:
        return None
    if had != settings.dense:
        raise ConfigError(f"{folder}: has dense layers of its own; leave encoder.dense out")
    own = (folder / SETTINGS_FILE).is_file()
    places = [folder / place for place in own_places(len(had))] if own else dense_folders(folder)
    return read_dense_layers(places, had, int(backbone.config.hidden_size))


def resolved(settings: EncoderSettings, backbone: PreTrainedModel) -> EncoderSettings:
    """The settings with pooling and length resolved for the backbone; a static model has no length."""
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
