"""The format of a recipe: data, scales, the rows of a table and the published scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pairkit.base.errors import ConfigError
from pairkit.base.printable import printable
from pairkit.base.settings import Settings, load_settings
from pairkit.dataset.labels import LabelValues
from papers.suites.published import published_row

Scale = Literal["smoke", "small", "full"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
Tree = dict[str, Any]

_FOLDER = Path(__file__).parents[1] / "recipes"
_SMOKE_ROWS = 128
# The task of each suite that scale `smoke` evaluates.
_SMOKE_TASK = {
    "sts": ("STS-B",),
    "transfer": ("TREC",),
    "nli": ("SNLI-from-dev",),
}
SMOKE_SETTINGS = ("optim.epochs=1", "optim.evaluations=1")
NO_DEV = "none"
_MAX_CHARACTERS = 1000  # of a name, a path or an argument

_as_list = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)


def _line(text: str) -> str:
    """Check that a string of an untrusted recipe is shown as it is when the user confirms it."""
    if printable(text) != text or "\n" in text or "\t" in text:
        raise ValueError("expected one line, without control characters")
    if len(text) > _MAX_CHARACTERS:
        raise ValueError(f"expected at most {_MAX_CHARACTERS} characters")
    return text


Line = Annotated[str, AfterValidator(_line)]
Lines = Annotated[tuple[Line, ...], _as_list]


def _published(row: str) -> str:
    """Check that the papers have such a row."""
    try:
        published_row(row)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    return row


class Source(Settings):
    """Training data. In its strings {data} is --data-dir and {work} a folder of the recipe."""

    train: Lines = Field(min_length=1)  # files, folders or Hub ids; several are joined
    # Dev set; unset: the validation split, if any; "none": no dev set.
    dev: Line | None = None
    labels: LabelValues | None = None  # value of each label in both: a number or "skip"
    # Commands of gis and label that make the data.
    prepare: tuple[tuple[Line, ...], ...] = ()
    # Size of a random sample of the training rows; unset: all.
    rows: int | None = Field(default=None, ge=1)


class Column(Settings):
    """A test set that every model is scored on: one column per task."""

    suite: Line  # a suite of `aoe evaluate` or `papers evaluate`, `pairs` or `mteb`
    tasks: tuple[Line, ...] = ()  # tasks of the suite; unset: all
    metric: Line = "spearman"  # metric that the table shows
    # Pairs or a pair dataset, for `pairs` and `gis`; unset: --data-dir.
    data: Line | None = None
    # Name of the column, if it has one task; unset: the task's name.
    name: Line | None = None
    split: Literal["test", "validation"] | None = None  # unset: the suite's default
    # Value of each label, a number or "skip", for `pairs`.
    labels: LabelValues | None = None
    parts: bool = False  # add a column for each part of a task
    mean: bool = False  # add a column for the mean of all tasks

    @model_validator(mode="after")
    def _one_name_for_one_task(self) -> Column:
        if self.name is not None and self.mean:
            raise ValueError(
                "a column with a name has one task and no mean; remove one of both"
            )
        return self


class AtScale(Settings):
    """A recipe at one scale."""

    backbone: Line  # backbone of all rows without their own
    source: Source
    about: str = ""  # how its settings were chosen
    precision: Precision = "fp32"  # precision of the evaluation
    # Each row has one run per seed.
    seeds: tuple[int, ...] = Field(default=(0, 1, 2, 3, 4), min_length=1)
    evaluate: tuple[Column, ...] = Field(min_length=1)
    settings: Tree = Field(default_factory=dict)  # override those of the recipe


class RowAtScale(Settings):
    """Changes of a row at one scale."""

    backbone: Line | None = None
    # Precision of the evaluation; unset: that of the scale.
    precision: Precision | None = None
    settings: Tree = Field(default_factory=dict)  # override those of the row
    options: dict[str, str] = Field(default_factory=dict)  # override those of the row
    data: Lines = ()  # training data, such as {data}/a.tsv; unset: that of the scale
    labels: LabelValues | None = None  # value of each label in `data`
    skip: Line | None = None  # reason to skip the row


class Texts(Settings):
    """Single texts."""

    of: Line | None = None  # file; unset: the recipe's training rows
    columns: dict[str, str] | None = None  # such as {text = "sentence1"}
    first: int | None = Field(default=None, ge=1)  # use only the first rows


class Whiten(Texts):
    """Texts that the whitening is fitted to."""

    dim: int | None = Field(default=None, ge=1)  # directions to keep; unset: all


class Row(Settings):
    """One row of the table."""

    name: Line
    # How its settings were chosen and where its published scores come from.
    about: str = ""
    train: bool = True  # false: score the untrained backbone
    texts: Texts | None = None  # train on single texts, without labels
    # A method of `papers.methods`; unset: the objective of the settings.
    method: Line | None = None
    options: dict[str, str] = Field(default_factory=dict)  # arguments of the method
    whiten: Whiten | None = None  # score whitened vectors
    # Score the output of a flow that is fitted to these texts.
    flow: Texts | None = None
    backbone: Line | None = None  # unset: that of the scale, with its encoder settings
    seed: int | None = None  # train each run with this seed; unset: each with its own
    settings: Tree = Field(default_factory=dict)  # override those of the recipe
    scales: dict[Scale, RowAtScale] = Field(default_factory=dict)
    # published score in each column, times 100; or rows of the papers, such as "AoE, Table 1: USE"
    paper: Annotated[
        dict[str, float] | tuple[Annotated[str, AfterValidator(_published)], ...],
        _as_list,
    ] = ()

    @property
    def published(self) -> dict[str, float]:
        """The published score in each column."""
        if isinstance(self.paper, dict):
            return self.paper
        return {
            column: score
            for row in self.paper
            for column, score in published_row(row).items()
        }

    @property
    def learns(self) -> bool:
        """Whether the scores depend on the seed."""
        return self.train or self.flow is not None

    def at(self, scale: Scale) -> RowAtScale:
        """The changes at a scale; `smoke` defaults to `small`."""
        small = self.scales.get("small") if scale == "smoke" else None
        return self.scales.get(scale) or small or RowAtScale()


class Recipe(Settings):
    """A table of a paper."""

    title: Line
    paper: Line  # paper and number of the table
    about: str  # what the table shows
    # Test the difference of each row from this row, over the seeds.
    compare: Line | None = None
    # Settings of all rows, as in `aoe train --config`.
    settings: Tree = Field(default_factory=dict)
    runs: tuple[Row, ...] = Field(min_length=1)
    scales: dict[Scale, AtScale]

    @model_validator(mode="after")
    def _names_differ(self) -> Recipe:
        names = [row.name for row in self.runs]
        if len({slug(name) for name in names}) < len(names):
            raise ValueError(
                f"two runs have the same or similar names; found {', '.join(names)}"
            )
        if self.compare not in (None, *names):
            raise ValueError(
                f"compare: no row {self.compare!r}; expected {', '.join(names)}"
            )
        return self

    def at(self, scale: Scale) -> AtScale:
        """The recipe at a scale; the default of `smoke` is `small` with few rows, one seed and one task."""
        if scale in self.scales:
            return self.scales[scale]
        if scale == "smoke" and "small" in self.scales:
            return _smoke(self.scales["small"])
        raise ConfigError(
            f"{self.title}: no scale {scale}; expected {', '.join(self.scales)}"
        )


def _smoke(small: AtScale) -> AtScale:
    rows = min(_SMOKE_ROWS, small.source.rows or _SMOKE_ROWS)
    first = small.evaluate[0]
    tasks = first.tasks[:1] or _SMOKE_TASK.get(first.suite, ())
    changes = {
        "source": small.source.model_copy(update={"rows": rows}),
        "seeds": small.seeds[:1],
        "evaluate": (first.model_copy(update={"tasks": tasks, "mean": False}),),
    }
    return small.model_copy(update=changes)


def slug(name: str) -> str:
    """A row's name in file names."""
    letters = (letter if letter.isalnum() else "-" for letter in name.lower())
    return "".join(letters).strip("-")


def recipe_names() -> list[str]:
    """The names of this repository's recipes, in alphabetical order."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def is_packaged(name: str) -> bool:
    """Whether a recipe is from this repository; any other file is untrusted."""
    return name in recipe_names()


def read_recipe(name: str) -> Recipe:
    """A recipe of this repository, by name, or any other, by path."""
    path = _FOLDER / f"{name}.toml" if is_packaged(name) else Path(name)
    if path.suffix != ".toml":
        raise ConfigError(
            f"{name}: no such recipe; expected {', '.join(recipe_names())} or a .toml file"
        )
    try:
        return load_settings(Recipe, config=path)
    except ConfigError as error:
        if str(path) in str(error):
            raise
        raise ConfigError(f"{path}: {error}") from error


def reproduced_rows() -> dict[str, list[str]]:
    """The rows of recipes by the published rows that they reproduce at scale `full`."""
    reproduced: dict[str, list[str]] = {}
    for name in recipe_names():
        for row in read_recipe(name).runs:
            if row.at("full").skip is not None or isinstance(row.paper, dict):
                continue
            for published in row.paper:
                reproduced.setdefault(published, []).append(f"{name}: {row.name}")
    return reproduced
