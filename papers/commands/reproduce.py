"""`python -m papers reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from pairkit.app.errors import ConfigError
from pairkit.app.printable import printable
from pairkit.app.result_table import ResultTable
from pairkit.app.terminal import next_step, print_json, say
from pairkit.app.terminal import out as stdout
from papers.app import app, examples


def _option(name: str, words: str, metavar: str | None = None) -> Any:
    return typer.Option(*name.split(), help=words, metavar=metavar)


@app.command(
    epilog=examples(
        "python -m papers reproduce --list",
        "python -m papers reproduce stsb --scale small --data-dir data --out results",
        "python -m papers reproduce stsb --data-dir data --out results --only AoE --seeds 0,1",
    )
)
def reproduce(
    recipe: Annotated[
        str | None,
        typer.Argument(
            metavar="[RECIPE]", help="The name of a recipe (see --list), or a TOML file of your own."
        ),
    ] = None,
    *,
    scale: Annotated[
        str,
        _option("--scale", "small: two cores; full: a GPU and a network; smoke: 128 rows, one seed.", "NAME"),
    ] = "small",
    data_dir: Annotated[
        Path | None, _option("--data-dir", "The folder with the data, such as stsb/ and nli/.", "DIR")
    ] = None,
    only: Annotated[list[str] | None, _option("--only", "Only this row; repeatable.", "ROW")] = None,
    seeds: Annotated[
        str | None, _option("--seeds", "Such as 0,1,2. [default: the recipe's five]", "N,…")
    ] = None,
    sets: Annotated[
        list[str] | None,
        _option("--set", "One setting, such as objective.tau.angle=0.05; repeatable.", "KEY=VALUE"),
    ] = None,
    show_list: Annotated[bool, _option("--list", "List the recipes and stop.")] = False,
    dry_run: Annotated[bool, _option("--dry-run", "List the runs and settings, and stop.")] = False,
    yes: Annotated[bool, _option("--yes", "Run the commands of a recipe's file without asking.")] = False,
    fresh: Annotated[bool, _option("--fresh", "Begin anew; replace what another run left.")] = False,
    out: Annotated[Path, _option("--out -o", "The folder for records and tables.", "DIR")] = Path("results"),
    keep_models: Annotated[bool, _option("--keep-models", "Keep the trained models.")] = False,
    json: Annotated[bool, _option("--json", "End with one JSON object on stdout.")] = False,
    quiet: Annotated[bool, _option("--quiet -q", "No notes on stderr.")] = False,
) -> None:
    """Make a table of the papers again, with your figures beside theirs. Run it again to continue.

    Each recipe and scale has a folder below --out, with table.md, figures.json and a record of each run. With
    --set it has another one. A run that fails does not stop the others.
    """
    from papers.reproduce.consent import asks
    from papers.reproduce.recipe import Scale, is_packaged, read_recipe
    from papers.reproduce.reproduce import TABLE, Wanted, folder_of, planned
    from papers.reproduce.reproduce import reproduce as use_case

    if show_list:
        _show_recipes(json=json)
        return
    if recipe is None:
        raise ConfigError("name a recipe; `python -m papers reproduce --list` lists them")
    if scale not in get_args(Scale):
        raise ConfigError(f"--scale {scale}: expected {', '.join(get_args(Scale))}")
    at = cast("Scale", scale)
    found, assignments = read_recipe(recipe), tuple(sets or ())
    wanted = Wanted(
        at,
        data_dir,
        folder_of(recipe, at, assignments, out),
        seeds=_numbers(seeds),
        only=tuple(only or ()),
        assignments=assignments,
        keep=keep_models,
        fresh=fresh,
    )
    if dry_run:
        runs, left_out = planned(found, wanted)
        for run in runs:
            shown = run.settings if run.train else "as it is"
            stdout.print(f"{run.row}, seed {run.seed}: {run.backbone}, {shown}", markup=False)
        for row, reason in left_out.items():
            say(f"left out {row}: {reason}")
        return
    if not is_packaged(recipe):
        _confirm(recipe, asks(found, at), yes=yes)
    told = use_case(found, wanted, say=lambda words: say(words, quiet=quiet))
    if json:
        print_json({"out": str(wanted.out), **told})
        return
    from rich.markdown import Markdown

    stdout.print(Markdown(printable((wanted.out / TABLE).read_text(encoding="utf-8"))))
    next_step("see the table again", ["cat", wanted.out / TABLE], quiet=quiet)


def _confirm(name: str, lines: Sequence[str], *, yes: bool) -> None:
    """Have what a recipe of others would do agreed to."""
    if not lines:
        return
    for line in (f"{name} is not one of our recipes; it", *(f"  {line}" for line in lines)):
        say(line)
    if not yes and sys.stdin.isatty():
        say("Continue? [y/N]")
        yes = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not yes:
        raise ConfigError(f"{name}: nothing was run; read the lines above, and give --yes if you want them")


def _numbers(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in (text or "").split(",") if part.strip())
    except ValueError:
        raise ConfigError(f"--seeds {text}: expected numbers, such as 0,1,2") from None


def _show_recipes(*, json: bool) -> None:
    from papers.reproduce.recipe import read_recipe, recipe_names

    recipes = {name: read_recipe(name) for name in recipe_names()}
    if json:
        print_json({name: {"title": each.title, "paper": each.paper} for name, each in recipes.items()})
        return
    shown = ResultTable("recipe", "what", "of", "scales", left=("what", "of", "scales"))
    for name, each in recipes.items():
        shown.add_row(name, each.title, each.paper, ", ".join(each.scales))
    stdout.print(shown)
