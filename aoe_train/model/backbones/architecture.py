"""Which of transformers' classes reads a folder: of a T5 the encoder alone, of all else what it chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aoe_train.model.folder.files import read_object

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PretrainedConfig, PreTrainedModel

_ENCODERS = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel", "umt5": "UMT5EncoderModel"}


def model_class(folder: Path) -> Any:
    """The class whose `from_pretrained` reads the model in `folder`, whose files may be read."""
    import transformers

    told = read_object(folder / "config.json")
    kind = None if "auto_map" in told else told.get("model_type")
    return getattr(transformers, _ENCODERS.get(str(kind), "AutoModel"))


def network(config: PretrainedConfig) -> PreTrainedModel:
    """A network as `config` says, with weights that mean nothing."""
    import transformers

    if (name := _ENCODERS.get(config.model_type)) is not None:
        model: PreTrainedModel = getattr(transformers, name)(config)
        return model
    return transformers.AutoModel.from_config(config, trust_remote_code=False)  # type: ignore[no-any-return, no-untyped-call]


def join_embeddings(backbone: Any) -> None:
    """Let a T5 have one embedding, where transformers makes two layers of one weight; in place."""
    if type(backbone).__name__ in _ENCODERS.values():
        backbone.encoder.embed_tokens = backbone.get_input_embeddings()
