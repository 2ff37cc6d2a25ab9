"""Opens a model by name, from an `Encoder` or function, or on a server."""

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
from aoe_train.model.model_folder import cache_dir
from pairkit.base.cli.progress import Listener
from pairkit.base.cli.terminal import say
from pairkit.base.errors import ConfigError

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.settings.train_settings import EncodingPrecision


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
    """Open a model that encodes each text once; see `CachedEmbedder`."""
    embedder = open_model(model, endpoint=endpoint, precision=precision, layers=layers, say=say)
    use_store = cache and embedder.identity
    store = VectorStore(cache_dir("vectors"), embedder.identity) if use_store else None
    return CachedEmbedder(embedder, store, progress=progress, say=say)


def open_model(
    model: str | Encoder | Function,
    *,
    endpoint: Endpoint | None = None,
    precision: EncodingPrecision = "auto",
    layers: int | None = None,
    say: Callable[[str], None] = say,
) -> Embedder:
    """Open a model without a cache."""
    if not isinstance(model, str):
        if not hasattr(model, "tokenizer"):
            if callable(model):
                return FunctionEmbedder(model)
            raise ConfigError(
                f"model = {model!r}: expected a folder, a Hub id, an Encoder (such as a run's `encoder`), or"
                " a function that returns vectors of texts"
            )
        if layers is not None:
            raise ConfigError("layers can't be set for a loaded Encoder; give its folder")
        return LocalEmbedder(cast("Encoder", model), "encoder")
    if endpoint is not None:
        from aoe_train.evaluation.embedders.endpoint import EndpointEmbedder

        if precision != "auto" or layers is not None:
            flag = f"--layers {layers}" if precision == "auto" else f"--precision {precision}"
            raise ConfigError(f"{flag}: can't be set for an endpoint; leave it out")
        return EndpointEmbedder(model, endpoint)
    from aoe_train.model.encoder import Encoder  # imports torch, which an endpoint doesn't need
    from aoe_train.model.precision import slow_precision

    encoder = Encoder.load(model, precision=precision, inference_only=True, layers=layers)
    if slow := slow_precision(precision, encoder.device):
        say(slow)
    return LocalEmbedder(encoder, model)
