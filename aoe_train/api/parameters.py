"""Flags, loading and notes that several public functions share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pairkit.base.cli.flag import INPUT, OUTPUT, RUN, Flag
from pairkit.base.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

    from aoe_train.model.encoder import Encoder
    from pairkit.base.cli.progress import Listener
    from pairkit.dataset.reading.in_memory import Source

MODEL = "Model"
_COLUMN_PROMPT = re.compile(r"(text[12]?|anchor|positive|negative(?:_\d+)?|query|document)=(.*)", re.DOTALL)

Model = Flag("-m", metavar="MODEL", panel=INPUT, main=True)
Data = Flag("-d", metavar="DATA", panel=INPUT, main=True)
OtherData = Annotated["Source | None", Flag(metavar="DATA", panel=INPUT)]
Index = Flag(metavar="INDEX", positional=True)
OutFile = Flag("-o", metavar="FILE", panel=OUTPUT, main=True)
Number = Flag(metavar="N", panel=RUN)
PromptName = Annotated[str | None, Flag(metavar="NAME", panel=MODEL)]
Prompt = Annotated[str | None, Flag(metavar="TEXT", panel=MODEL)]
Layers = Annotated[int | None, Flag(metavar="N", panel=MODEL)]
Precision = Annotated[str | None, Flag(metavar="NAME", panel=RUN)]
RankBy = Annotated[str, Flag(metavar="NAME", panel=RUN)]
Calibration = Annotated["str | Path | np.ndarray | None", Flag(metavar="FILE", panel=OUTPUT)]
Weight = Annotated[float | None, Flag(metavar="X", panel=RUN)]
IndexModel = Annotated["str | Path | Encoder | None", Flag("-m", metavar="MODEL", panel=MODEL)]


def named_sources(given: list[str]) -> Any:
    """One source, or several by name; None without any."""
    from pairkit.dataset.reading.named_sources import named_words  # imports polars, too slow for --help

    return named_words(given) if given else None


def one_or_several(names: list[str]) -> Any:
    """A name, a list of several, or None without any."""
    return names if len(names) > 1 else next(iter(names), None)


def column_prompts(given: list[str]) -> str | dict[str, str] | None:
    """One prompt for all texts, or a mapping from `column=prompt` items; None without any."""
    matches = [(text, _COLUMN_PROMPT.fullmatch(text)) for text in given]
    by_column = {match[1]: match[2] for _, match in matches if match is not None}
    if len(by_column) == len(matches):
        return by_column or None
    if len(matches) > 1:
        raise ConfigError(
            f"--prompts {next(text for text, match in matches if match is None)}: one of several prompts"
            " without a column; expected each as COLUMN=PROMPT, such as anchor='query: '"
        )
    return given[0]


def loaded(
    model: str | Path | Encoder,
    precision: str | None,
    show: Listener,
    say: Callable[[str], None],
    device: str | None = None,
    *,
    layers: int | None = None,
) -> Encoder:
    """The encoder itself, or one loaded for inference."""
    from aoe_train.model.encoder import Encoder
    from aoe_train.model.precision import slow_precision
    from aoe_train.settings.train_settings import named_precision
    from pairkit.base.cli.progress import stage

    if isinstance(model, Encoder):
        if layers is not None:
            raise ConfigError(
                "layers: can't cut an Encoder that is already loaded; use Encoder.load(folder, layers=...)"
            )
        if device is not None:
            raise ConfigError(f"device {device}: the Encoder is already on {model.device}; leave device out")
        return model
    if not isinstance(model, str | Path):
        raise ConfigError(
            f"model = {model!r}: expected a folder, a Hub id or an Encoder (a run has one as `encoder`)"
        )
    checked = named_precision(precision)
    with stage(f"load {model}", show):
        encoder = Encoder.load(model, device=device, precision=checked, inference_only=True, layers=layers)
    if warning := slow_precision(checked, encoder.device):
        say(warning)
    return encoder


def notes(progress: bool | Listener) -> Callable[[str], None]:
    """A function that prints notes to stderr if progress is shown there."""
    from pairkit.base.cli.terminal import say

    return lambda message: say(message, quiet=progress is not True)
