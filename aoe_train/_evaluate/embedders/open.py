"""From what a person names to something that encodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from aoe_train._baselines.own_model import OWN, OwnModel
from aoe_train._baselines.word_vectors import WordVectors
from aoe_train._cache_dir import cache_dir
from aoe_train._evaluate.embedders.cached import CachedEmbedder
from aoe_train._evaluate.embedders.embedder import Embedder, Endpoint
from aoe_train._evaluate.embedders.local import LocalEmbedder
from aoe_train._evaluate.embedders.vector_store import VectorStore
from aoe_train._word_vectors import is_word_vectors
from pairkit.errors import ConfigError
from pairkit.progress import Listener
from pairkit.terminal import say

if TYPE_CHECKING:
    from aoe_train._encoder import Encoder
    from aoe_train._evaluate.embedders.sentence_transformers import SentenceTransformersEmbedder
    from aoe_train._settings import EncodingPrecision


def open_embedder(
    model: str | Encoder,
    *,
    endpoint: Endpoint | None = None,
    precision: EncodingPrecision = "auto",
    layers: int | None = None,
    cache: bool = True,
    progress: bool | Listener = True,
    say: Callable[[str], None] = say,
) -> Embedder:
    """A model to be judged, each of whose texts is encoded once.

    Args:
        model: A folder of ours, of sentence-transformers or of transformers, a Hub id, `minilm`, `smollm2`, a
            model's name at the endpoint, an `Encoder`, a file of word vectors, or a function as
            `python:package.module:function`, whose module is imported: what a person said, and no file.
        endpoint: The server that has it; None: it is here.
        precision: Of weights and computation of a model on this machine.
        layers: Of a model on this machine, the first ones; None for all.
        cache: Keep vectors on disk, and take those that are there.
        progress: Shown on stderr, or told to a function.
        say: Told what is forgotten of the kept vectors, and of a precision that is slow here.

    Raises:
        ConfigError: No such model, no such address, or a precision for an endpoint.
        DataError: A damaged model.
        RemoteError: The Hub could not be reached.
    """
    embedder = open_model(model, endpoint=endpoint, precision=precision, layers=layers, say=say)
    store = VectorStore(cache_dir("vectors"), embedder.identity) if cache else None
    return CachedEmbedder(embedder, store, progress=progress, say=say)


def open_model(
    model: str | Encoder,
    *,
    endpoint: Endpoint | None = None,
    precision: EncodingPrecision = "auto",
    layers: int | None = None,
    say: Callable[[str], None] = say,
) -> Embedder:
    """The same, which encodes whatever it is given, and tells `Read` of it where it has a tokenizer.

    See `open_embedder`.
    """
    if not isinstance(model, str):
        if not hasattr(model, "tokenizer"):
            raise ConfigError(
                f"model = {model!r}: expected a folder, a Hub id or an Encoder, such as a run's `encoder`"
            )
        if layers is not None:
            raise ConfigError("layers: this Encoder is loaded already; give its folder")
        return LocalEmbedder(model, "encoder")
    if endpoint is not None:
        return _open_endpoint(model, endpoint, precision, layers)
    if is_other(model):
        return _open_other(model, precision, layers, say)
    local = _open_local(model, precision, layers)
    from aoe_train._precision import slow_precision  # brings torch, which vectors of others need not

    if slow := slow_precision(precision, local.device):
        say(slow)
    return local


def _open_endpoint(
    model: str, endpoint: Endpoint, precision: EncodingPrecision, layers: int | None
) -> Embedder:
    from aoe_train._evaluate.embedders.endpoint import EndpointEmbedder

    if precision != "auto":
        raise ConfigError(f"--precision {precision}: an endpoint chooses its own; leave it out")
    if layers is not None:
        raise ConfigError(f"--layers {layers}: an endpoint runs all layers; leave it out")
    return EndpointEmbedder(model, endpoint)


def is_other(model: str) -> bool:
    """Whether a name is that of a function or of word vectors: of no folder that could be looked into."""
    return model.startswith(OWN) or is_word_vectors(model)


def _open_other(
    model: str, precision: EncodingPrecision, layers: int | None, say: Callable[[str], None]
) -> Embedder:
    for flag, given in (("--precision", precision != "auto"), ("--layers", layers is not None)):
        if given:
            raise ConfigError(f"{flag}: {model} has none to choose; leave it out")
    return OwnModel(model) if model.startswith(OWN) else WordVectors(Path(model), say)


def _open_local(
    model: str, precision: EncodingPrecision, layers: int | None
) -> LocalEmbedder | SentenceTransformersEmbedder:
    from aoe_train._backbones.load import find_folder
    from aoe_train._encoder import Encoder
    from aoe_train._evaluate.embedders.sentence_transformers import SentenceTransformersEmbedder

    folder = find_folder(model)
    refusal = _why_not_ours(folder)
    if refusal is not None:
        if layers is not None:
            raise ConfigError(f"--layers {layers}: sentence-transformers runs this model ({refusal})")
        return SentenceTransformersEmbedder(folder, model, precision, refusal)
    return LocalEmbedder(Encoder.load(folder, precision=precision, inference_only=True, layers=layers), model)


def _why_not_ours(folder: Path) -> ConfigError | None:
    """What a sentence-transformers folder has that `Encoder` can't compute; None if nothing."""
    from aoe_train._encoder_settings import SETTINGS_FILE
    from aoe_train._interchange import read_sentence_transformers

    if (folder / SETTINGS_FILE).is_file():
        return None
    try:
        read_sentence_transformers(folder)
    except ConfigError as refusal:
        return refusal
    return None
