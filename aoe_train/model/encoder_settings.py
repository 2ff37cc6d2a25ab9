"""An encoder's settings: read from the model folder, and completed with defaults that suit the backbone.

aoe-toolkit writes `aoe.json` into its model folders; other folders are read as sentence-transformers models.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train.model.backbones.decoder import default_pooling
from aoe_train.model.backbones.static import StaticTable, check_static
from aoe_train.model.dense_layers import DenseLayers, dense_names, read_dense_layers
from aoe_train.model.folder_checks import read_object
from aoe_train.model.interchange import dense_folders, read_sentence_transformers
from aoe_train.model.packing.packed_run import position_offset
from aoe_train.model.text_model import PackedBackbone
from aoe_train.settings.prompt_settings import DEFAULT
from aoe_train.settings.train_settings import EncoderSettings
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.settings import load_settings
from pairkit.base.system.files import write_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SETTINGS_FILE = "aoe.json"
_FORMAT = 1
_MAX_LENGTH = 512  # tokens, unless the model or its tokenizer sets a lower limit


def store_settings(folder: Path, settings: EncoderSettings) -> None:
    """Write `aoe.json` into a model folder."""
    write_json(folder / SETTINGS_FILE, {"format": _FORMAT, **settings.model_dump()})


def stored_settings(folder: Path) -> dict[str, Any]:
    """The settings in a model folder, by name."""
    path = folder / SETTINGS_FILE
    if not path.is_file():
        return read_sentence_transformers(folder)
    stored = read_object(path)
    if stored.pop("format", None) != _FORMAT:
        raise DataError(f"not format {_FORMAT}; use the release of aoe-toolkit that wrote it", path=path)
    if (words := stored.pop("prompt", None)) is not None:  # older folders have one prompt without a name
        stored |= {"prompts": {DEFAULT: words}, "default_prompt_name": DEFAULT}
    try:
        return load_settings(EncoderSettings, below=stored).model_dump()
    except ConfigError as error:
        raise DataError(f"{error}; copy the model again", path=path) from error


def stored_dense_layers(
    folder: Path, stored: Mapping[str, Any], settings: EncoderSettings, backbone: PreTrainedModel
) -> DenseLayers | None:
    """The dense layers in a model folder."""
    layers = EncoderSettings(dense=stored.get("dense", ())).dense
    if not layers:
        return None
    if layers != settings.dense:
        raise ConfigError(f"{folder}: has its own dense layers; leave encoder.dense out")
    is_ours = (folder / SETTINGS_FILE).is_file()
    folders = [folder / name for name in dense_names(len(layers))] if is_ours else dense_folders(folder)
    return read_dense_layers(folders, layers, int(backbone.config.hidden_size))


def resolved(settings: EncoderSettings, backbone: PreTrainedModel) -> EncoderSettings:
    """The settings with pooling and maximum length chosen for the backbone."""
    if isinstance(backbone, StaticTable):
        check_static(settings)
        return settings.model_copy(update={"pooling": "avg"})
    packed = backbone if isinstance(backbone, PackedBackbone) else None
    pooling: str = settings.pooling
    if pooling == "auto":
        pooling = default_pooling(backbone) if packed is None else packed.poolings[0]
    if packed is not None and pooling not in packed.poolings:
        raise ConfigError(f"pooling {pooling}: expected {', '.join(packed.poolings)} for a {packed.title}")
    if packed is None and pooling == "cells":
        raise ConfigError("pooling cells: only a Recurrent Attention Network has cells; use avg or cls")
    if pooling == "cells" and not settings.include_prompt:
        raise ConfigError("include_prompt is false, but cells mix prompt and text; use another pooling")
    positions = getattr(backbone.config, "max_position_embeddings", None)
    limit = None if positions is None else int(positions) - position_offset(backbone)
    if settings.max_length is not None and limit is not None and settings.max_length > limit:
        raise ConfigError(f"max_length {settings.max_length}: this backbone reads at most {limit} tokens")
    max_length = settings.max_length or min(limit or _MAX_LENGTH, _MAX_LENGTH)
    return settings.model_copy(update={"pooling": pooling, "max_length": max_length})
