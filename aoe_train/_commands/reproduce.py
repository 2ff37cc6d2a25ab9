"""`aoe reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from pairkit.errors import ConfigError
from pairkit.printable import printable
from pairkit.result_table import ResultTable
from pairkit.terminal import next_step, print_json, say
from pairkit.terminal import out as stdout

if TYPE_CHECKING:
    from aoe_train import Runs


@app.command(
    epilog=examples(
        "aoe reproduce --list",
        "aoe reproduce stsb --scale small --data-dir data --out results",
        "aoe reproduce stsb --data-dir data --out results --only AoE --seeds 0,1",
        "aoe reproduce nli --scale full --data-dir data --out results --dry-run",
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
        o.INPUT("--scale", "small: two cores; full: a GPU and a network; smoke: 128 rows, one seed.", "NAME"),
    ] = "small",
    data_dir: Annotated[
        Path | None, o.INPUT("--data-dir", "The folder with the data, such as stsb/ and nli/.", "DIR")
    ] = None,
    only: Annotated[list[str] | None, o.INPUT("--only", "Only this row; repeatable.", "ROW")] = None,
    seeds: Annotated[
        str | None, o.INPUT("--seeds", "Such as 0,1,2. [default: the recipe's five]", "N,…")
    ] = None,
    show_list: Annotated[bool, o.RUN("--list", "List the recipes and stop.")] = False,
    dry_run: Annotated[bool, o.RUN("--dry-run", "List the runs and settings, and stop.")] = False,
    yes: Annotated[bool, o.RUN("--yes", "Run the commands of a recipe's file without asking.")] = False,
    sets: o.Sets = None,
    fresh: o.Fresh = False,
    out: Annotated[Path, o.OUTPUT("--out -o", "The folder for records and tables.", "DIR")] = Path("results"),
    keep_models: Annotated[bool, o.OUTPUT("--keep-models", "Keep the trained models.")] = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Make a table of the papers again, with your figures beside theirs. Run it again to continue.

    Each recipe and scale has a folder below --out, with table.md, figures.json and a record of each run. With
    --set it has another one. A run that fails does not stop the others.
    """
    import aoe_train

    if show_list:
        _show_recipes(json=json, quiet=quiet)
        return
    if recipe is None:
        raise ConfigError("name a recipe; `aoe reproduce --list` lists them")
    if dry_run:
        planned = aoe_train.runs(
            recipe,
            scale=scale,
            data_dir=data_dir,
            out=out,
            seeds=_numbers(seeds),
            only=only or (),
            settings=sets or (),
        )
        _show_runs(planned, json=json)
        return
    found = aoe_train.reproduce(
        recipe,
        scale=scale,
        data_dir=data_dir,
        out=out,
        seeds=_numbers(seeds),
        only=only or (),
        settings=sets or (),
        fresh=fresh,
        keep_models=keep_models,
        yes=lambda lines: _agreed(lines, yes=yes),
        progress=not quiet,
    )
    if json:
        print_json(found.to_dict())
        return
    from rich.markdown import Markdown

    stdout.print(Markdown(printable(found.to_markdown())))
    next_step("see the table again", ["cat", found.out / "table.md"], quiet=quiet)


def _agreed(lines: Sequence[str], *, yes: bool) -> bool:
    for line in lines:
        say(line)
    if yes or not sys.stdin.isatty():
        return yes
    say("Continue? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _numbers(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in (text or "").split(",") if part.strip())
    except ValueError:
        raise ConfigError(f"--seeds {text}: expected numbers, such as 0,1,2") from None


def _show_recipes(*, json: bool, quiet: bool) -> None:
    import aoe_train

    recipes = aoe_train.recipes()
    if json:
        print_json({name: {"title": each.title, "paper": each.paper} for name, each in recipes.items()})
        return
    shown = ResultTable("recipe", "what", "of", "scales", left=("what", "of", "scales"))
    for name, each in recipes.items():
        shown.add_row(name, each.title, each.paper, ", ".join(each.scales))
    stdout.print(shown)
    next_step("run one", "aoe reproduce stsb --data-dir DATA --out results", quiet=quiet)


def _show_runs(planned: Runs, *, json: bool) -> None:
    if json:
        print_json(planned.to_dict())
        return
    for run in planned.runs:
        changed = run.settings.model_dump_json(exclude_unset=True) if run.train else "as it is"
        stdout.print(f"{run.row}, seed {run.seed}: {run.backbone}, {changed}", markup=False)
    for row, reason in planned.left_out.items():
        say(f"left out {row}: {reason}")
