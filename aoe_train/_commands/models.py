"""What the commands that use a trained model share: the flag that names it, and loading it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from aoe_train._encoder import Encoder
    from aoe_train._evaluate.embedders.embedder import Embedder, Endpoint
    from aoe_train._settings import Precision

Model = Annotated[str, typer.Option("--model", "-m", help="A model's folder, a hub id, or minilm.")]


def load_encoder(model: str, precision: str | None) -> Encoder:
    """A model to encode with, on the accelerator if there is one.

    Raises:
        ConfigError: No such model or precision; see `Encoder.load` for the rest.
    """
    from aoe_train._encoder import Encoder

    return Encoder.load(model, precision=_precision(precision))


def open_model(
    model: str,
    precision: str | None,
    *,
    endpoint: Endpoint | None = None,
    cache: bool = True,
    quiet: bool = False,
) -> Embedder:
    """A model to be judged, here or at an endpoint; see `open_embedder`.

    Raises:
        ConfigError: No such model or precision; see `open_embedder` for the rest.
    """
    from aoe_train._evaluate.embedders.open import open_embedder

    return open_embedder(model, endpoint=endpoint, precision=_precision(precision), cache=cache, quiet=quiet)


def _precision(given: str | None) -> Precision:
    from pydantic import TypeAdapter, ValidationError

    from aoe_train._settings import Precision
    from pairkit.errors import ConfigError

    try:
        numbers: Precision = TypeAdapter(Precision).validate_python(given or "auto")
    except ValidationError as error:
        raise ConfigError(f"--precision {given}: expected auto, fp32, bf16 or fp16") from error
    return numbers
