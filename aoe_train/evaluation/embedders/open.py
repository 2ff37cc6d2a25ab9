"""From what a person names to something that encodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from aoe_train.evaluation.embedders.cached import CachedEmbedder, VectorStore
from aoe_train.evaluation.embedders.embedder import (
    Embedder,
    Endpoint,
    Function,
    FunctionEmbedder,
    LocalEmbedder,
)
from aoe_train.model.run_folder import cache_dir
from pairkit.app.errors import ConfigError
from pairkit.app.progress import Listener
from pairkit.app.terminal import say

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.settings.training import EncodingPrecision


def open_embedder(
    model: str | Encoder | Function,
    *,
    endpoint: Endpoint | None = None,
    precision: EncodingPrecision = "auto",
    layers: int | None = None,
    cache: bool = True,
    progress: bool | Listener = True,
    say: Callable[[str], None] = say,
) -> Embedder:
    """A model to be judged, each of whose texts is encoded once."""
    embedder = open_model(model, endpoint=endpoint, precision=precision, layers=layers, say=say)
    known = cache and embedder.identity
    store = VectorStore(cache_dir("vectors"), embedder.identity) if known else None
    return CachedEmbedder(embedder, store, progress=progress, say=say)


def open_model(
    model: str | Encoder | Function,
    *,
    endpoint: Endpoint | None = None,
    precision: EncodingPrecision = "auto",
    layers: int | None = None,
    say: Callable[[str], None] = say,
) -> Embedder:
    """The same, which encodes whatever it is given."""
    if not isinstance(model, str):
        if not hasattr(model, "tokenizer"):
            if callable(model):
                return FunctionEmbedder(model)
            raise ConfigError(
                f"model = {model!r}: expected a folder, a Hub id, an Encoder, such as a run's `encoder`, or"
                " a function from texts to vectors"
            )
        if layers is not None:
            raise ConfigError("layers: this Encoder is loaded already; give its folder")
        return LocalEmbedder(cast("Encoder", model), "encoder")
    if endpoint is not None:
        return _open_endpoint(model, endpoint, precision, layers)
    from aoe_train.model.encoder import Encoder  # brings torch, which vectors of others need not
    from aoe_train.model.precision import slow_precision

    encoder = Encoder.load(model, precision=precision, inference_only=True, layers=layers)
    if slow := slow_precision(precision, encoder.device):
        say(slow)
    return LocalEmbedder(encoder, model)


def _open_endpoint(
    model: str, endpoint: Endpoint, precision: EncodingPrecision, layers: int | None
) -> Embedder:
    from aoe_train.evaluation.embedders.endpoint import EndpointEmbedder

    if precision != "auto":
        raise ConfigError(f"--precision {precision}: an endpoint chooses its own; leave it out")
    if layers is not None:
        raise ConfigError(f"--layers {layers}: an endpoint runs all layers; leave it out")
    return EndpointEmbedder(model, endpoint)
