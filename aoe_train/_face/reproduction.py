"""The papers' tables, run again, as `aoe reproduce` does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from aoe_train._reproduce.plan import Run
    from aoe_train._reproduce.recipe import Recipe, Scale
    from aoe_train._reproduce.reproduce import Wanted
    from pairkit.progress import Listener

_SCALES = ("smoke", "small", "full")


@dataclass(frozen=True, repr=False)
class Reproduced:
    """A table of a paper, run again.

    Attributes:
        out: The folder with table.md, figures.json and a record of each run.
        found: What figures.json holds.
    """

    out: Path
    found: Mapping[str, Any]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row each: name, seeds, and for each column mean, deviation and published figure, times 100."""
        return list(self.found["rows"])

    def to_markdown(self) -> str:
        """The table, with a heading and what it rests on."""
        from aoe_train._reproduce.reproduce import TABLE

        return (self.out / TABLE).read_text(encoding="utf-8")

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe reproduce --json`."""
        return {"out": str(self.out), **self.found}

    def __repr__(self) -> str:
        return self.to_markdown()

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


@dataclass(frozen=True)
class Runs:
    """What `reproduce` would run.

    Attributes:
        runs: Each training or scoring, in order.
        left_out: Rows that are not run at this scale, with the reason.
    """

    runs: list[Run]
    left_out: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe reproduce --dry-run --json`."""
        runs = [
            {
                "row": run.row,
                "seed": run.seed,
                "backbone": run.backbone,
                "settings": run.settings.model_dump(mode="json") if run.train else None,
            }
            for run in self.runs
        ]
        return {"runs": runs, "left_out": self.left_out}


def recipes() -> dict[str, Recipe]:
    """The recipes that come with the toolkit, by name: `title`, `paper`, `scales`, `runs`.

    Example:
        >>> import aoe_train
        >>> aoe_train.recipes()["stsb"].title
        'STS-B in-domain: AoE against its baselines'
    """
    from aoe_train._reproduce.recipe import read_recipe, recipe_names

    return {name: read_recipe(name) for name in recipe_names()}


def reproduce(
    recipe: str | Path,
    *,
    scale: str = "small",
    data_dir: str | Path | None = None,
    out: str | Path = "results",
    seeds: Sequence[int] = (),
    only: Sequence[str] = (),
    settings: Sequence[str] | Mapping[str, Any] = (),
    fresh: bool = False,
    keep_models: bool = False,
    yes: bool | Callable[[Sequence[str]], bool] = False,
    progress: bool | Listener = True,
) -> Reproduced:
    """Make a table of the papers again; the same call continues what was stopped.

    A recipe at a scale has a folder below `out`; with `settings` it has another one. A run that fails does
    not stop the others.

    Args:
        recipe: A recipe's name, see `recipes`, or a TOML file of your own.
        scale: small: a real encoder on two cores; full: the papers' setting, for a GPU and network; smoke:
            small with 128 rows and one seed.
        data_dir: Holds stsb/, sts/, sick/, nli/ …, or what is needed.
        out: Folder for records and table.
        seeds: By default the recipe's five.
        only: Only these rows.
        settings: `section.key=value` words, or dotted keys to values, over what the recipe says.
        fresh: Begin anew.
        keep_models: Keep the trained models.
        yes: Run what a recipe of a file asks for beyond training on `data_dir`; or a function that is shown
            the lines that say what, and answers whether to.
        progress: Shown on stderr, or not, or told to a function.

    Raises:
        ConfigError: Unusable settings, a recipe without such a scale, another process at work there, or no
            consent.
        DataError: Data that is not there or not as expected.
        RemoteError: The Hub could not be asked.
    """
    from aoe_train._face.notes import notes
    from aoe_train._reproduce.recipe import is_packaged
    from aoe_train._reproduce.reproduce import reproduce as use_case

    found, wanted = _wanted(
        recipe, scale, data_dir, out, seeds, only, settings, fresh=fresh, keep_models=keep_models
    )
    if not is_packaged(str(recipe)):
        _confirm(str(recipe), found, wanted.scale, yes)
    return Reproduced(wanted.out, use_case(found, wanted, say=notes(progress), progress=progress))


def runs(
    recipe: str | Path,
    *,
    scale: str = "small",
    data_dir: str | Path | None = None,
    out: str | Path = "results",
    seeds: Sequence[int] = (),
    only: Sequence[str] = (),
    settings: Sequence[str] | Mapping[str, Any] = (),
) -> Runs:
    """The runs that `reproduce` would do, with their settings; nothing is run.

    Raises:
        ConfigError: See `reproduce`.
    """
    from aoe_train._reproduce.reproduce import planned

    found, wanted = _wanted(recipe, scale, data_dir, out, seeds, only, settings)
    return Runs(*planned(found, wanted))


def _wanted(
    recipe: str | Path,
    scale: str,
    data_dir: str | Path | None,
    out: str | Path,
    seeds: Sequence[int],
    only: Sequence[str],
    settings: Sequence[str] | Mapping[str, Any],
    *,
    fresh: bool = False,
    keep_models: bool = False,
) -> tuple[Recipe, Wanted]:
    from hashlib import sha256

    from aoe_train._reproduce.recipe import read_recipe
    from aoe_train._reproduce.reproduce import Wanted
    from pairkit.errors import ConfigError

    found = read_recipe(str(recipe))
    if scale not in _SCALES:
        raise ConfigError(f"--scale {scale}: expected smoke, small or full")
    words = _words(settings)
    name = f"{Path(recipe).stem}-{scale}"
    if words:  # a recipe with other settings is another table
        name = f"{name}-{sha256(repr(words).encode()).hexdigest()[:8]}"
    wanted = Wanted(
        cast("Scale", scale),
        None if data_dir is None else Path(data_dir),
        Path(out) / name,
        seeds=tuple(seeds),
        only=tuple(only),
        assignments=tuple(words),
        keep=keep_models,
        fresh=fresh,
    )
    return found, wanted


def _words(settings: Sequence[str] | Mapping[str, Any]) -> list[str]:
    """As on the command line; JSON's words for values are TOML's."""
    from json import dumps

    if isinstance(settings, Mapping):
        return [f"{key}={dumps(value, ensure_ascii=False)}" for key, value in settings.items()]
    return list(settings)


def _confirm(name: str, recipe: Recipe, scale: Scale, yes: bool | Callable[[Sequence[str]], bool]) -> None:
    """Have what a recipe of a file would do beyond training on `data_dir` agreed to."""
    from aoe_train._reproduce.stranger import asks
    from pairkit.errors import ConfigError

    lines = asks(recipe, scale)
    if not lines:
        return
    if callable(yes):
        agreed, shown = yes([f"{name} is no recipe of the toolkit; it", *(f"  {line}" for line in lines)]), ""
    else:
        agreed, shown = yes, f" ({'; '.join(' '.join(line.split()) for line in lines)})"
    if not agreed:
        told = "read the lines above" if not shown else f"read what it does{shown}"
        raise ConfigError(f"{name}: nothing was run; {told}, and give --yes if you want them")
