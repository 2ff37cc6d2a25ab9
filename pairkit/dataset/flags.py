"""Parameters that public functions of several packages share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pairkit.base.cli.flag import INPUT, OUTPUT, RUN, Flag, columns_given
from pairkit.base.errors import ConfigError

if TYPE_CHECKING:
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.reading.in_memory import Source


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--split-sizes {text}: expected three numbers, such as 0.8,0.1,0.1") from None


Dataset = Annotated["Source", Flag(metavar="DATASET", positional=True)]
Columns = Annotated[Mapping[str, str] | None, Flag(metavar="A=B,…", panel=INPUT, read=columns_given)]
Labels = Annotated["Mapping[str, Meaning] | str | None", Flag(metavar="LABEL=N,…", panel=INPUT)]
LabelRange = Annotated[tuple[float, float] | str | None, Flag(metavar="LOW,HIGH", panel=INPUT)]
BAD_ROWS = Flag(metavar="NAME", panel=INPUT)
BadRows = Annotated[str, BAD_ROWS]
SplitSizes = Flag(metavar="A,B,C", main=True, read=_numbers)
Out = Flag("-o", metavar="DIR", panel=OUTPUT, main=True)
OutNeeded = replace(Out, required=True)
Dropped = Annotated[str | Path | None, Flag(metavar="FILE", panel=OUTPUT)]
Fresh = Annotated[bool, Flag(panel=OUTPUT)]
Seed = Flag(metavar="N", panel=RUN)
Config = Annotated[str | Path | None, Flag("-c", metavar="FILE", panel=RUN)]
SettingsGiven = Annotated[
    Mapping[str, Any] | Iterable[str] | None, Flag(long="--set", metavar="KEY=VALUE", panel=RUN, repeat=True)
]
