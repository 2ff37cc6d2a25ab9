"""What a recipe's TOML file says: data, scales, the rows of a table and the papers' figures for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from pairkit.app.errors import ConfigError
from pairkit.app.printable import printable
from pairkit.app.settings import Settings, load_settings
from pairkit.dataset.labels import LabelValues

Scale = Literal["smoke", "small", "full"]
Tree = dict[str, Any]

_HOME = Path(__file__).parents[1] / "recipes"
_SMOKE_ROWS = 128
SMOKE_SETTINGS = ("optim.epochs=1", "optim.evaluations=1")
NO_DEV = "none"
_LONGEST = 1000  # characters of a name, a path or a word of a command


def _line(text: str) -> str:
    """A recipe may come from others: what a person agrees to must not look like something else."""
    if printable(text) != text or "\n" in text or "\t" in text:
        raise ValueError("expected one line, without control characters")
    if len(text) > _LONGEST:
        raise ValueError(f"expected at most {_LONGEST} characters")
    return text


Line = Annotated[str, AfterValidator(_line)]


class Source(Settings):
    """What is trained on; {data} stands for --data-dir, {work} for a folder of the recipe's own."""

    train: Line  # a file, a folder or a Hub id
    dev: Line | None = None  # chooses the best weights; by default the validation split, if any; or "none"
    labels: LabelValues | None = None  # what labels count as, a number or "skip", in both
    prepare: tuple[tuple[Line, ...], ...] = ()  # commands of gis and label that make the data first
    rows: int | None = Field(default=None, ge=1)  # so many training rows only, chosen by a fixed seed


class Column(Settings):
    """What every trained model is scored on, one column for each task."""

    suite: Line  # a suite of `aoe evaluate`, or `pairs`
    tasks: tuple[Line, ...] = ()  # tasks of the suite; unset: all
    metric: Line = "spearman"  # the figure shown
    data: Line | None = None  # pairs or a pair dataset, for `pairs` and `gis`; --data-dir by default
    name: Line | None = None  # name of the column where it holds one task; unset: the task's
    split: Literal["test", "dev"] | None = None  # unset: the suite's own
    labels: LabelValues | None = None  # what labels count as, a number or "skip", for `pairs`
    parts: bool = False  # a column for each part of a task as well
    mean: bool = False  # a column for the mean of all tasks as well, as in the papers

    @model_validator(mode="after")
    def _one_name_for_one_task(self) -> Column:
        if self.name is not None and self.mean:
            raise ValueError("a column with a name holds one task, of which there is no mean")
        return self


class AtScale(Settings):
    """How a recipe is run at one scale."""

    backbone: Line  # the model that all rows begin with
    source: Source
    about: str = ""  # where its settings come from
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "fp32"  # the precision in which models are scored
    seeds: tuple[int, ...] = Field(default=(0, 1, 2, 3, 4), min_length=1)  # a run for each
    evaluate: tuple[Column, ...] = Field(min_length=1)
    settings: Tree = Field(default_factory=dict)  # settings over those of the recipe


class RowAtScale(Settings):
    """Where a row differs at one scale."""

    backbone: Line | None = None  # a backbone of its own
    settings: Tree = Field(default_factory=dict)  # settings over those of the row
    options: dict[str, str] = Field(default_factory=dict)  # of the method, over those of the row
    skip: Line | None = None  # why it is left out


class Texts(Settings):
    """Single texts to train on."""

    of: Line | None = None  # another file; unset: the recipe's training rows
    columns: dict[str, str] | None = None  # such as {text = "sentence1"}
    first: int | None = Field(default=None, ge=1)  # only the first so many rows


class Whiten(Texts):
    """Texts by whose vectors a model's are whitened, once it is trained."""

    dim: int | None = Field(default=None, ge=1)  # directions that are kept; unset: all


class Row(Settings):
    """One line of the table."""

    name: Line  # what the table calls it
    about: str = ""  # where its settings and figures come from
    train: bool = True  # false: the backbone as it is
    texts: Texts | None = None  # train on single texts, without labels
    method: Line | None = None  # a method of `papers.methods`; unset: the objective of the settings
    options: dict[str, str] = Field(default_factory=dict)  # of the method
    whiten: Whiten | None = None  # score whitened vectors
    flow: Texts | None = None  # score vectors behind a flow fitted to those of these texts
    backbone: Line | None = None  # a backbone of its own
    settings: Tree = Field(default_factory=dict)  # settings over those of the recipe
    scales: dict[Scale, RowAtScale] = Field(default_factory=dict)
    paper: dict[str, float] = Field(default_factory=dict)  # the published figure of each column, times 100

    @property
    def learns(self) -> bool:
        """Whether anything is trained or fitted that begins at random."""
        return self.train or self.flow is not None

    def at(self, scale: Scale) -> RowAtScale:
        """Where it differs at a scale; at `smoke` as at `small`, unless it is given."""
        likely = self.scales.get("small") if scale == "smoke" else None
        return self.scales.get(scale) or likely or RowAtScale()


class Recipe(Settings):
    """A table that can be run again."""

    title: Line  # title of the table
    paper: Line  # which table of which paper
    about: str  # what the table shows
    # settings of all rows, as in the TOML of `aoe train --config`
    settings: Tree = Field(default_factory=dict)
    runs: tuple[Row, ...] = Field(min_length=1)
    scales: dict[Scale, AtScale]

    @model_validator(mode="after")
    def _names_differ(self) -> Recipe:
        names = [row.name for row in self.runs]
        if len({slug(name) for name in names}) < len(names):
            raise ValueError(f"two runs have one name, or almost; found {', '.join(names)}")
        return self

    def at(self, scale: Scale) -> AtScale:
        """How to run at a scale; an absent `smoke` is `small` with few rows, one seed and one task."""
        if scale in self.scales:
            return self.scales[scale]
        if scale == "smoke" and "small" in self.scales:
            return _smoke(self.scales["small"])
        raise ConfigError(f"{self.title}: has the scales {', '.join(self.scales)}; not {scale}")


def _smoke(small: AtScale) -> AtScale:
    source = small.source.model_copy(update={"rows": min(_SMOKE_ROWS, small.source.rows or _SMOKE_ROWS)})
    first = small.evaluate[0]
    return small.model_copy(
        update={
            "source": source,
            "seeds": small.seeds[:1],
            "evaluate": (first.model_copy(update={"tasks": first.tasks[:1] or first.tasks, "mean": False}),),
        }
    )


def slug(name: str) -> str:
    """A row's name as files and folders bear it."""
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower()).strip("-")


def recipe_names() -> list[str]:
    """The recipes of this folder, in alphabetical order."""
    return sorted(path.stem for path in _HOME.glob("*.toml"))


def is_packaged(name: str) -> bool:
    """Whether a recipe is one of this folder; any other is a file, and may come from others."""
    return name in recipe_names()


def read_recipe(name: str) -> Recipe:
    """A recipe of this folder, by name, or one of your own, by path."""
    path = _HOME / f"{name}.toml" if is_packaged(name) else Path(name)
    if path.suffix != ".toml":
        raise ConfigError(
            f"{name}: no such recipe; there are {', '.join(recipe_names())}, or give a .toml file"
        )
    try:
        return load_settings(Recipe, file=path)
    except ConfigError as error:
        raise error if str(path) in str(error) else ConfigError(f"{path}: {error}") from error
