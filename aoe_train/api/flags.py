"""Parameters that several public functions share, as flags of `aoe`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pairkit.app.errors import ConfigError
from pairkit.app.flag import INPUT, OUTPUT, RUN, Flag

if TYPE_CHECKING:
    import numpy as np

    from aoe_train.model.encoder import Encoder
    from pairkit.dataset.in_memory import Source

MODEL = "Model"
_OF_COLUMN = re.compile(r"(text[12]?|anchor|positive|negative(?:_\d+)?|query|document)=(.*)", re.DOTALL)

Model = Flag("--model -m", metavar="MODEL", panel=INPUT, main=True)
Data = Flag("--data -d", metavar="DATA", panel=INPUT, main=True)
OtherData = Annotated["Source | None", Flag(metavar="DATA", panel=INPUT)]
TextColumn = Flag(metavar="NAME", panel=INPUT)
Index = Flag(metavar="INDEX", positional=True)
OutFile = Flag("--out -o", metavar="FILE", panel=OUTPUT, main=True)
Number = Flag(metavar="N", panel=RUN)
PromptName = Annotated[str | None, Flag(metavar="NAME", panel=MODEL)]
Prompt = Annotated[str | None, Flag(metavar="TEXT", panel=MODEL)]
Layers = Annotated[int | None, Flag(metavar="N", panel=MODEL)]
Precision = Annotated[str | None, Flag(metavar="NAME", panel=RUN)]
RankBy = Annotated[str, Flag(metavar="NAME", panel=RUN)]
Calibration = Annotated["str | Path | np.ndarray | None", Flag(metavar="FILE", panel=OUTPUT)]
Weight = Annotated[float | None, Flag(metavar="X", panel=RUN)]
IndexModel = Annotated["str | Path | Encoder | None", Flag("--model -m", metavar="MODEL", panel=MODEL)]


def named_sources(given: list[str]) -> Any:
    """One source, or several by name; None if nothing was given."""
    from pairkit.dataset.named_sources import named_words  # brings polars, which help does without

    return named_words(given) if given else None


def column_prompts(given: list[str]) -> str | dict[str, str] | None:
    """One prompt for all texts, or `column=prompt` words as a table; None if nothing was given."""
    found = [(text, _OF_COLUMN.fullmatch(text)) for text in given]
    by_column = {match[1]: match[2] for _, match in found if match is not None}
    if len(by_column) == len(found):
        return by_column or None
    if len(found) > 1:
        raise ConfigError(
            f"--prompts {next(text for text, match in found if match is None)}: several prompts; expected"
            " one for each column, such as anchor='query: '"
        )
    return found[0][0]
