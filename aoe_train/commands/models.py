"""What the commands that use a trained model share: the flag that names it, and loading it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from aoe_train.encoder import Encoder

Model = Annotated[str, typer.Option("--model", "-m", help="A model's folder, a hub id, or minilm.")]


def load_encoder(model: str, precision: str | None) -> Encoder:
    """A model to encode with, on the accelerator if there is one.

    Raises:
        ConfigError: No such model or precision; see `Encoder.load` for the rest.
    """
    from pydantic import TypeAdapter, ValidationError

    from aoe_train.encoder import Encoder
    from aoe_train.settings import Precision
    from pairkit.errors import ConfigError

    try:
        numbers: Precision = TypeAdapter(Precision).validate_python(precision or "auto")
    except ValidationError as error:
        raise ConfigError(f"--precision {precision}: expected auto, fp32, bf16 or fp16") from error
    return Encoder.load(model, precision=numbers)
