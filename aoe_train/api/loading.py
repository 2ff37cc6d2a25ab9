"""The model that a person names or has at hand, to encode with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from pairkit.app.progress import Listener


def loaded(
    model: str | Path | Encoder,
    precision: str | None,
    show: Listener,
    say: Callable[[str], None],
    device: str | None = None,
    *,
    layers: int | None = None,
) -> Encoder:
    """An encoder as it is; else one that is loaded, for encoding only."""
    from aoe_train.model.encoder import Encoder
    from aoe_train.model.precision import slow_precision
    from aoe_train.settings.training import named_precision
    from pairkit.app.errors import ConfigError
    from pairkit.app.progress import stage

    if isinstance(model, Encoder):
        if layers is not None:
            raise ConfigError("layers: this Encoder is loaded already; use Encoder.load(folder, layers=...)")
        if device is not None:
            raise ConfigError(
                f"device {device}: the Encoder that was given is on {model.device}; leave it out"
            )
        return model
    if not isinstance(model, str | Path):
        raise ConfigError(
            f"model = {model!r}: expected a folder, a Hub id or an Encoder, such as a run's `encoder`"
        )
    wanted = named_precision(precision)
    with stage(f"load {model}", show):
        encoder = Encoder.load(model, device=device, precision=wanted, inference_only=True, layers=layers)
    if slow := slow_precision(wanted, encoder.device):
        say(slow)
    return encoder
