"""`aoe reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from pairkit.errors import ConfigError
from pairkit.printable import printable
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json, say

if TYPE_CHECKING:
    from aoe_train._reproduce.recipe import Recipe, Scale
    from aoe_train._reproduce.reproduce import Wanted


@app.command(
    epilog=examples(
        "aoe reproduce --list",
        "aoe reproduce stsb --scale small --data-dir data --out results",
        "aoe reproduce stsb --scale small --data-dir data --out results --only AoE --seeds 0,1",
        "aoe reproduce nli --scale full --data-dir data --out results --dry-run",
    )
)
def reproduce(
    recipe: Annotated[
        str | None, typer.Argument(help="A recipe's name, see --list, or a TOML file of your own.")
    ] = None,
    *,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            help="small: a real encoder on two cores; full: the papers' setting, for a GPU and network;"
            " smoke: small with 128 rows and one seed, to see that all is in place.",
        ),
    ] = "small",
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="Holds stsb/, sts/, sick/, nli/ …, or what is needed.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for records and table.")] = Path("results"),
    seeds: Annotated[
        str | None, typer.Option("--seeds", help="Such as 0,1,2. [default: the recipe's five]")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Only this row; repeatable.")] = None,
    sets: o.Sets = None,
    fresh: o.Fresh = False,
    keep_models: Annotated[bool, typer.Option("--keep-models", help="Keep the trained models.")] = False,
    show_list: Annotated[bool, typer.Option("--list", help="List the recipes and stop.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the runs and their settings, and stop.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Run what a recipe of a file asks for, without being asked.")
    ] = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Run a table of the papers again, and see your figures beside theirs. Kill it and run it again to go on.

    A recipe at a scale has a folder below --out, with table.md, figures.json and a record of each run; with
    --set it has another one. A run that fails does not stop the others.
    """
    from aoe_train._reproduce.recipe import is_packaged, read_recipe

    if show_list:
        _show_recipes(json=json)
        return
    if recipe is None:
        raise ConfigError("name a recipe; `aoe reproduce --list` lists them")
    found = read_recipe(recipe)
    if scale not in ("smoke", "small", "full"):
        raise ConfigError(f"--scale {scale}: expected smoke, small or full")
    chosen = cast("Scale", scale)
    from aoe_train._reproduce.reproduce import TABLE, Wanted
    from aoe_train._reproduce.reproduce import reproduce as use_case

    wanted = Wanted(
        chosen,
        data_dir,
        _folder(out, f"{Path(recipe).stem}-{scale}", sets or ()),
        seeds=_numbers(seeds),
        only=tuple(only or ()),
        assignments=tuple(sets or ()),
        keep=keep_models,
        fresh=fresh,
    )
    if dry_run:
        _show_runs(found, wanted, json=json)
        return
    if not is_packaged(recipe):
        _confirm(recipe, found, chosen, yes=yes)
    result = use_case(found, wanted, say=partial(say, quiet=quiet), quiet=quiet)
    if json:
        print_json({"out": str(wanted.out), **result})
    else:
        from rich.markdown import Markdown

        stdout.print(Markdown(printable((wanted.out / TABLE).read_text(encoding="utf-8"))))
        say(f"{wanted.out / TABLE}", quiet=quiet)


def _confirm(name: str, recipe: Recipe, scale: Scale, *, yes: bool) -> None:
    """Show what a recipe of a file would do beyond training on --data-dir, and ask."""
    from aoe_train._reproduce.stranger import asks

    lines = asks(recipe, scale)
    if not lines:
        return
    say(f"{name} is no recipe of the toolkit; it")
    for line in lines:
        say(f"  {line}")
    if not yes and not _agreed():
        raise ConfigError(f"{name}: nothing was run; read the lines above, and give --yes if you want them")


def _agreed() -> bool:
    if not sys.stdin.isatty():
        return False
    say("Go on? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _folder(out: Path, name: str, sets: Sequence[str]) -> Path:
    """A recipe with other settings is another table."""
    from hashlib import sha256

    return out / (f"{name}-{sha256(repr(sets).encode()).hexdigest()[:8]}" if sets else name)


def _numbers(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in (text or "").split(",") if part.strip())
    except ValueError:
        raise ConfigError(f"--seeds {text}: expected numbers, such as 0,1,2") from None


def _show_recipes(*, json: bool) -> None:
    from aoe_train._reproduce.recipe import read_recipe, recipe_names

    recipes = {name: read_recipe(name) for name in recipe_names()}
    if json:
        print_json({name: {"title": each.title, "paper": each.paper} for name, each in recipes.items()})
        return
    from rich.table import Table

    table = Table(box=None)
    for heading in ("recipe", "what", "of", "scales"):
        table.add_column(heading)
    for name, each in recipes.items():
        table.add_row(name, each.title, each.paper, ", ".join(each.scales))
    stdout.print(table)


def _show_runs(recipe: Recipe, wanted: Wanted, *, json: bool) -> None:
    from aoe_train._reproduce.reproduce import planned

    runs, skipped = planned(recipe, wanted)
    if json:
        plan = [
            {
                "row": run.row,
                "seed": run.seed,
                "backbone": run.backbone,
                "settings": run.settings.model_dump(mode="json") if run.train else None,
            }
            for run in runs
        ]
        print_json({"runs": plan, "left_out": skipped})
        return
    for run in runs:
        changed = run.settings.model_dump_json(exclude_unset=True) if run.train else "as it is"
        stdout.print(f"{run.row}, seed {run.seed}: {run.backbone}, {changed}", markup=False)
    for row, reason in skipped.items():
        say(f"left out {row}: {reason}")
