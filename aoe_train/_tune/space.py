"""Which settings differ from trial to trial, and between what.

| written | drawn |
|---|---|
| `optim.lr=1e-5..1e-3:log` | a number between the two, evenly by its logarithm |
| `objective.margin=0..0.5` | a number between the two; a whole one where both are whole |
| `optim.epochs=1,2,4` | one of these |
| `objective.tau=0.05..0.5:log` | one temperature for all parts |

Where nothing is written, it depends on what the run without flags has chosen:

| setting | drawn |
|---|---|
| `optim.lr` | from a fifth of the chosen one to five times as much, by its logarithm |
| `optim.epochs` | half, once or twice the chosen number; of labelled rows and triplets |
| `optim.batch_size` | 16, 32 or 64, at most a tenth of the rows |
| `objective.tau` | 0.02 to 0.5, by its logarithm |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aoe_train._objectives.settings import Taus
from aoe_train._settings import TrainSettings
from pairkit.config import load_settings, read_toml
from pairkit.errors import ConfigError

Value = str | int | float | bool
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(:log)?", re.ASCII)
_TAU = "objective.tau"  # stands for the temperature of every part
_NOT_SEARCHED = ("data", "log", "card", "seed")


@dataclass(frozen=True, slots=True)
class Dimension:
    """A setting and what it may be: one of `choices`, or a number from `low` to `high`."""

    key: str
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For a record."""
        if self.choices:
            return {"choices": list(self.choices)}
        return {"low": self.low, "high": self.high, "log": self.log, "whole": self.whole}


def parse(texts: Sequence[str]) -> list[Dimension]:
    """What `--search` was given.

    Raises:
        ConfigError: Not of that form, or no setting.
    """
    found = []
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals:
            raise ConfigError(f"--search {text}: expected key=low..high or key=value,value")
        found.append(_dimension(key.strip(), values.strip()))
    return _checked(found)


def read_space(path: Path) -> list[Dimension]:
    """A TOML file of settings, each a range as `--search` takes it or a list of values.

    Raises:
        ConfigError: Not readable, not of that form, or no setting.
    """
    return _checked([_dimension(key, value) for key, value in _flat(read_toml(path))])


def default_space(record: Mapping[str, Any]) -> list[Dimension]:
    """What is searched where nothing is written.

    Args:
        record: Of a run without flags on the same rows.
    """
    optim, rows = record["origin"]["settings"]["optim"], record["rows"]
    lr, epochs, kind = optim["lr"], optim["epochs"], rows["kind"]
    space = [Dimension("optim.lr", low=lr / 5, high=lr * 5, log=True)]
    if kind in ("binary", "graded", "triplet"):
        space.append(
            Dimension("optim.epochs", tuple(dict.fromkeys((max(1.0, epochs / 2), epochs, 2 * epochs))))
        )
    sizes = tuple(size for size in (16, 32, 64) if size <= rows["train"] / 10)
    if len(sizes) > 1:
        space.append(Dimension("optim.batch_size", sizes))
    return [*space, Dimension(_TAU, low=0.02, high=0.5, log=True)]


def assignments(drawn: Mapping[str, Value]) -> dict[str, Value]:
    """Settings by their dotted keys; `objective.tau` becomes those of all parts."""
    given = {key: value for key, value in drawn.items() if key != _TAU}
    if _TAU in drawn:
        given |= {f"{_TAU}.{name}": drawn[_TAU] for name in Taus.model_fields}
    return given


def _dimension(key: str, values: object) -> Dimension:
    if isinstance(values, list):
        choices = tuple(values)
    elif isinstance(values, str) and (match := _RANGE.fullmatch(values)):
        low, high, log = float(match[1]), float(match[2]), bool(match[3])
        if not low < high or (log and low <= 0):
            raise ConfigError(f"--search {key}={values}: expected low..high, above 0 for :log")
        whole = not re.search(r"[.eE]", match[1] + match[2])
        return Dimension(key, low=low, high=high, log=log, whole=whole)
    else:
        choices = tuple(_value(part.strip()) for part in str(values).split(","))
    if not choices or not all(isinstance(choice, Value) for choice in choices):
        raise ConfigError(f"--search {key}={values}: expected low..high or value,value")
    return Dimension(key, tuple(dict.fromkeys(choices)))


def _value(text: str) -> Value:
    if re.fullmatch(r"[-+]?\d+", text, re.ASCII):
        return int(text)
    if re.fullmatch(_NUMBER, text, re.ASCII):
        return float(text)
    return {"true": True, "false": False}.get(text, text)


def _flat(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, object]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield above + key, value


def _checked(space: list[Dimension]) -> list[Dimension]:
    """Each with a setting that takes its bounds or values, and no two of one setting."""
    for number, dimension in enumerate(space):
        if dimension.key in [other.key for other in space[:number]]:
            raise ConfigError(f"--search {dimension.key}: given twice; leave one out")
        if dimension.key.partition(".")[0] in _NOT_SEARCHED:
            raise ConfigError(f"--search {dimension.key}: is none of what can be searched")
        ends = (
            (int(dimension.low), int(dimension.high)) if dimension.whole else (dimension.low, dimension.high)
        )
        for value in dimension.choices or ends:
            load_settings(TrainSettings, flags=assignments({dimension.key: value}))
    return space
