"""`python -m papers`, from a checkout. Each command imports its modules only when it runs."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from pairkit.base.cli.commands import application, examples
from pairkit.base.cli.result_table import ResultTable
from pairkit.base.cli.terminal import next_step, print_json, say
from pairkit.base.cli.terminal import out as stdout
from pairkit.base.cli.terminal import run as run_command_line
from pairkit.base.errors import ConfigError
from pairkit.base.printable import printable

app = application(
    "python -m papers", "Reproduce tables and figures of the AnglE and AoE papers."
)


def _option(names: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(*names.split(), help=text, metavar=metavar)


_DATA_DIR = _option("--data-dir", "Folder with the public datasets.", "DIR")
Json = Annotated[
    bool, _option("--json", "Print the result as one JSON object on stdout.")
]
Quiet = Annotated[
    bool, _option("--quiet -q", "Print no progress and no notes on stderr.")
]
ModelFolder = Annotated[Path, _option("--out -o", "Folder for the model.", "DIR")]
Fresh = Annotated[
    bool, _option("--fresh", "Discard the results of an earlier run and start again.")
]


@app.command(
    epilog=examples(
        "python -m papers convert rannet-base --vocab rannet-base/vocab.txt --out ran --heads 12"
    )
)
def convert(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="CHECKPOINT",
            help="TensorFlow checkpoint: its folder or path prefix.",
        ),
    ],
    *,
    vocab: Annotated[
        Path, _option("--vocab", "Its vocab.txt or tokenizer folder.", "PATH")
    ],
    out: ModelFolder,
    heads: Annotated[
        int | None,
        _option(
            "--heads", "Number of attention heads. [default: from its config.json]", "N"
        ),
    ] = None,
    cased: Annotated[bool, _option("--cased", "The vocabulary is cased.")] = False,
    quiet: Quiet = False,
) -> None:
    """Convert a published RAN checkpoint to a model folder for `aoe train --backbone`."""
    from papers.ran.convert import convert as run

    model = run(checkpoint, vocab, out, heads=heads, cased=cased)
    parameters = sum(weight.numel() for weight in model.parameters())
    stdout.print(f"{out}: {parameters:,} parameters")
    _suggest_training(out, quiet=quiet)


@app.command(
    epilog=examples(
        "python -m papers data --data-dir data",
        "python -m papers data --data-dir data --suite sts",
    )
)
def data(
    data_dir: Annotated[Path, _DATA_DIR],
    *,
    suite: Annotated[
        list[str] | None,
        _option(
            "--suite",
            "sts, transfer, nli or retrieval; repeatable. [default: all]",
            "NAME",
        ),
    ] = None,
) -> None:
    """Download the public test sets. Their terms of use are those of their sources."""
    from papers.suites.download import download

    for name in suite or ("sts", "transfer", "nli", "retrieval"):
        say(f"{name}: downloading")
        download(name, data_dir)


@app.command(
    epilog=examples(
        "python -m papers evaluate --model minilm --suite transfer --data-dir data --markdown minilm.md",
        "python -m papers evaluate -m M --suite nli --task TaxiNLI --data-dir data",
        "python -m papers evaluate -m text-embedding-3-large --endpoint https://api.openai.com/v1 --suite sts"
        " --data-dir data",
    )
)
def evaluate(
    model: Annotated[
        str, _option("--model -m", "Model, as for `aoe evaluate`.", "MODEL")
    ],
    suite: Annotated[
        str, _option("--suite", "sts, transfer, nli or retrieval.", "NAME")
    ],
    data_dir: Annotated[Path, _DATA_DIR],
    *,
    task: Annotated[
        list[str] | None, _option("--task", "Run only this task; repeatable.", "NAME")
    ] = None,
    split: Annotated[str, _option("--split", "test or validation.", "NAME")] = "test",
    against: Annotated[
        str | None,
        _option(
            "--against", "Second model, to test the difference between both.", "MODEL"
        ),
    ] = None,
    endpoint: Annotated[
        str | None,
        _option(
            "--endpoint",
            "Server with OpenAI's /embeddings that serves the model.",
            "URL",
        ),
    ] = None,
    api_key_env: Annotated[
        str | None,
        _option(
            "--api-key-env",
            "Environment variable with the endpoint's key. [default: OPENAI_API_KEY at OpenAI]",
            "NAME",
        ),
    ] = None,
    resamples: Annotated[
        int, _option("--resamples", "Bootstrap resamples; 0 for none.", "N")
    ] = 1000,
    cache: Annotated[
        bool, _option("--cache/--no-cache", "Cache vectors on disk.")
    ] = True,
    markdown: Annotated[
        Path | None,
        _option(
            "--markdown", "Write Markdown tables with the published scores.", "FILE"
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate a model on a suite of the papers and compare its scores with the published ones."""
    from pairkit.base.system.files import write_text
    from papers import suites
    from papers.suites.evaluate import compare_with_published

    evaluation, missing = suites.evaluate(
        model,
        suite,
        data_dir,
        tasks=task or (),
        split=split,
        against=against,
        endpoint=endpoint,
        api_key_env=api_key_env,
        resamples=resamples,
        cache=cache,
        progress=not quiet,
    )
    for name, reason in missing.items():
        say(f"skipped {name}: {reason}", quiet=quiet or suite == "sts")
    if markdown is not None:
        write_text(markdown, compare_with_published(suite, evaluation))
    if json:
        print_json(evaluation.to_dict())
        return
    for table in evaluation.tables():
        stdout.print(table)


@app.command(
    epilog=examples(
        "python -m papers figures --model minilm --data stsb-test.tsv --out figures",
        "python -m papers figures -m M -d stsb-test.tsv --kind halves --zone cosine --above 0.9 -o figures",
        "python -m papers figures -m M -m M2 --kind curves --out figures",
        "python -m papers figures --data gis --kind pairs --out figures",
    )
)
def figures(
    out: Annotated[
        Path,
        _option("--out -o", "Output folder; its earlier figures are replaced.", "DIR"),
    ],
    *,
    model: Annotated[
        list[str] | None,
        _option("--model -m", "Model, as for `aoe encode`; repeatable.", "MODEL"),
    ] = None,
    data: Annotated[
        str | None,
        _option("--data -d", "Pairs with gold scores; not needed for curves.", "DATA"),
    ] = None,
    split: Annotated[
        str | None, _option("--split", "Split of the dataset. [default: test]", "NAME")
    ] = None,
    kind: Annotated[
        str, _option("--kind", "densities, halves, curves, pairs or all.", "KIND")
    ] = "all",
    saturation: Annotated[
        float,
        _option(
            "--saturation",
            "densities: a pair is saturated if |cosine| exceeds this.",
            "X",
        ),
    ] = 0.95,
    zone: Annotated[
        str,
        _option(
            "--zone",
            "halves: select pairs by gold (as in the paper), cosine, or all.",
            "ZONE",
        ),
    ] = "gold",
    above: Annotated[
        float,
        _option(
            "--above",
            "halves: lower bound of the zone, as a share of the maximum.",
            "X",
        ),
    ] = 0.95,
    most: Annotated[
        int,
        typer.Option(
            help="halves: maximum number of pairs, drawn by --seed.", metavar="N", min=5
        ),
    ] = 2_000,
    perplexity: Annotated[
        float, _option("--perplexity", "halves: perplexity of t-SNE.", "X")
    ] = 30.0,
    seed: Annotated[int, _option("--seed", "Random seed.", "N")] = 42,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw the papers' figures for any model, as PNG and SVG, and write their numbers to figures.json.

    densities: cosines by gold score, one panel per model. halves: real and imaginary halves of the vectors of
    pairs in the saturation zone, as t-SNE planes and distances. curves: the loss, its parts and the dev
    metric by step, for models of `aoe train`. pairs: lengths by split, n-gram overlap by label and rows by
    source of the data, as the paper draws GIS; no model needed. With --kind all, a figure that can't be
    drawn is skipped with a note.
    """
    from papers.figures.halves import Zone
    from papers.figures.make import Request, make_figures

    request = Request(
        model or (),
        data,
        split,
        kind,
        saturation,
        Zone(zone, above, most, perplexity, seed),
    )
    record = make_figures(request, out, lambda message: say(message, quiet=quiet))
    if json:
        print_json(
            {"out": str(out), "files": record["files"], "left_out": record["left_out"]}
        )
        return
    for name in record["files"]:
        stdout.print(str(out / name))


@app.command(
    epilog=examples(
        "python -m papers pretrain --texts texts.txt --tokenizer vocab.txt --out ran",
        "python -m papers pretrain --texts a.txt.gz --init-from bert -o ran --set steps=20000",
    )
)
def pretrain(
    texts: Annotated[
        list[Path],
        _option(
            "--texts",
            "File with one text per line, or a table with a text column; repeatable.",
            "FILE",
        ),
    ],
    out: ModelFolder,
    *,
    tokenizer: Annotated[
        Path | None,
        _option("--tokenizer", "Tokenizer folder or WordPiece vocab.txt.", "PATH"),
    ] = None,
    init_from: Annotated[
        Path | None,
        _option(
            "--init-from", "Encoder whose token embeddings and tokenizer to use.", "DIR"
        ),
    ] = None,
    config: Annotated[
        Path | None, _option("--config -c", "Settings in TOML.", "FILE")
    ] = None,
    sets: Annotated[
        list[str] | None,
        _option(
            "--set",
            "One setting, such as lr=1e-3 or sizes.dim=384; repeatable.",
            "KEY=VALUE",
        ),
    ] = None,
    fresh: Fresh = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Pre-train a Recurrent Attention Network on plain texts (whole-word MLM). Run it again to continue.

    `papers/ran/settings.py` lists all settings.
    """
    from pairkit.base.settings import load_settings
    from papers.ran.pretrain import pretrain as run
    from papers.ran.settings import PretrainSettings

    flags = {
        "texts": texts,
        "out": out,
        "tokenizer": tokenizer,
        "init_from": init_from,
        "fresh": fresh or None,
    }
    settings = load_settings(PretrainSettings, flags, config=config, settings=sets)
    result = run(settings, progress=not quiet)
    if json:
        print_json(result)
        return
    stdout.print(str(out))
    say(
        f"loss: {result['loss_first']:.3f} at the start, {result['loss_last']:.3f} at the end",
        quiet=quiet,
    )
    _suggest_training(out, quiet=quiet)


def _suggest_training(backbone: Path, *, quiet: bool) -> None:
    command: list[str | Path] = [
        "aoe",
        "train",
        "--data",
        "PAIRS",
        "--backbone",
        backbone,
        "--out",
        "MODEL",
    ]
    next_step("train it on pairs", command, quiet=quiet)


@app.command(epilog=examples("python -m papers tables"))
def tables(*, json: Json = False) -> None:
    """List the rows of the papers' tables: the recipe that reproduces each, or the reason why none does."""
    from papers.reproduce.recipe import reproduced_rows
    from papers.suites.published import PUBLISHED

    reproduced = reproduced_rows()
    columns = "table", "row", "recipe: its row, or why there is none"
    listed = ResultTable(*columns, left=columns[1:])
    found: dict[str, dict[str, str]] = {}
    for source, table in PUBLISHED.items():
        found[source] = {**table.reasons}
        for row, scores in table.rows.items():
            same = scores if isinstance(scores, str) else f"{source}: {row}"
            recipes = reproduced.get(f"{source}: {row}") or reproduced.get(same)
            found[source].setdefault(
                row, "; ".join(recipes) if recipes else f"see {same}"
            )
        for row, where in found[source].items():
            listed.add_row(source, row, where)
    if json:
        print_json(found)
        return
    stdout.print(listed)


@app.command(
    epilog=examples(
        "python -m papers reproduce --list",
        "python -m papers reproduce stsb --scale small --data-dir data --out results",
        "python -m papers reproduce stsb --data-dir data --out results --only AoE --seeds 0,1",
        "python -m papers reproduce nli --scale full --data-dir data --out results --workers 8",
    )
)
def reproduce(
    recipe: Annotated[
        str | None,
        typer.Argument(
            metavar="[RECIPE]", help="Name of a recipe (see --list) or a TOML file."
        ),
    ] = None,
    *,
    scale: Annotated[
        str,
        _option(
            "--scale",
            "small: two cores; full: GPU and network; smoke: 128 rows, one seed.",
            "NAME",
        ),
    ] = "small",
    data_dir: Annotated[Path | None, _DATA_DIR] = None,
    only: Annotated[
        list[str] | None, _option("--only", "Run only this row; repeatable.", "ROW")
    ] = None,
    seeds: Annotated[
        str | None,
        _option("--seeds", "Seeds, such as 0,1,2. [default: the recipe's]", "N,…"),
    ] = None,
    sets: Annotated[
        list[str] | None,
        _option(
            "--set",
            "One setting, such as objective.tau.angle=0.05; repeatable.",
            "KEY=VALUE",
        ),
    ] = None,
    show_list: Annotated[bool, _option("--list", "List the recipes and stop.")] = False,
    dry_run: Annotated[
        bool, _option("--dry-run", "List the runs with their settings and stop.")
    ] = False,
    yes: Annotated[
        bool, _option("--yes", "Run the commands of a TOML file without confirmation.")
    ] = False,
    fresh: Fresh = False,
    out: Annotated[
        Path, _option("--out -o", "Folder for records and tables.", "DIR")
    ] = Path("results"),
    keep_models: Annotated[
        bool, _option("--keep-models", "Keep the trained models.")
    ] = False,
    workers: Annotated[
        int,
        typer.Option(
            help="Processes that share the runs; with GPUs, one each.",
            metavar="N",
            min=1,
        ),
    ] = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce a table of the papers and show your scores beside theirs. Run it again to continue.

    Each recipe and scale has a folder in --out with table.md, figures.json and a record per run; runs with
    --set have a folder of their own. If a run fails, the remaining runs continue. Processes with the same
    --out share the runs, such as those of --workers.
    """
    from papers.reproduce.plan import list_actions
    from papers.reproduce.recipe import Scale, is_packaged, read_recipe
    from papers.reproduce.reproduce import TABLE, Options, output_folder, plan_runs
    from papers.reproduce.reproduce import reproduce as run

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            "torchrun would multiply the batch of each run; start without it, with --workers N"
        )
    if show_list:
        _show_recipes(json=json)
        return
    if recipe is None:
        raise ConfigError(
            "name a recipe; `python -m papers reproduce --list` lists them"
        )
    if scale not in get_args(Scale):
        raise ConfigError(f"--scale {scale}: expected {', '.join(get_args(Scale))}")
    at_scale = cast("Scale", scale)
    loaded = read_recipe(recipe)
    assignments = tuple(sets or ())
    options = Options(
        at_scale,
        data_dir,
        output_folder(recipe, at_scale, assignments, out),
        seeds=_parse_seeds(seeds),
        only=tuple(only or ()),
        assignments=assignments,
        keep_models=keep_models,
        fresh=fresh,
        workers=workers,
    )
    if dry_run:
        runs, skipped = plan_runs(loaded, options)
        for each in runs:
            settings = each.settings if each.train else "not trained"
            stdout.print(f"{each.row}, seed {each.seed}: {each.backbone}, {settings}")
        for row, reason in skipped.items():
            say(f"skipped {row}: {reason}")
        return
    # Job schedulers end a job with SIGTERM, which then acts like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not is_packaged(recipe):
        _confirm(recipe, list_actions(loaded, at_scale), yes=yes)
    result = run(loaded, options, say=partial(say, quiet=quiet))
    if json:
        print_json({"out": str(options.out), **result})
        return
    from rich.markdown import Markdown

    stdout.print(Markdown(printable((options.out / TABLE).read_text(encoding="utf-8"))))
    next_step("see the table again", ["cat", options.out / TABLE], quiet=quiet)


def _confirm(name: str, actions: Sequence[str], *, yes: bool) -> None:
    """Show what an untrusted recipe would do, and stop unless the user agrees."""
    if not actions:
        return
    say(f"{name} is not a recipe of this repository; it")
    for action in actions:
        say(f"  {action}")
    if not yes and sys.stdin.isatty():
        say("Continue? [y/N]")
        yes = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not yes:
        raise ConfigError(
            f"{name}: nothing was run; check the actions above and add --yes to allow them"
        )


def _parse_seeds(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in (text or "").split(",") if part.strip())
    except ValueError:
        raise ConfigError(f"--seeds {text}: expected numbers, such as 0,1,2") from None


def _show_recipes(*, json: bool) -> None:
    from papers.reproduce.recipe import read_recipe, recipe_names

    recipes = {name: read_recipe(name) for name in recipe_names()}
    if json:
        print_json(
            {
                name: {"title": each.title, "paper": each.paper}
                for name, each in recipes.items()
            }
        )
        return
    table = ResultTable(
        "recipe", "title", "paper", "scales", left=("title", "paper", "scales")
    )
    for name, each in recipes.items():
        table.add_row(name, each.title, each.paper, ", ".join(each.scales))
    stdout.print(table)


if __name__ == "__main__":
    run_command_line(app)
