"""`aoe evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from pairkit.errors import ConfigError
from pairkit.terminal import next_step, print_json
from pairkit.terminal import out as stdout

COMPARE, ENDPOINT = "Comparison and intervals", "Models behind a server"


@app.command(
    epilog=examples(
        "aoe evaluate --model minilm --data-dir data",
        "aoe evaluate --model M --suite all --data-dir data --markdown M.md",
        "aoe evaluate --model M --against minilm --data-dir data",
        "aoe evaluate -m M -m M2 -m minilm --data-dir data",
        "aoe evaluate --model M --suite gis --data gis --json",
        "aoe evaluate --model M --suite mteb --task Banking77Classification",
        "aoe evaluate -m text-embedding-3-small --endpoint https://api.openai.com/v1 --data-dir data",
    )
)
def evaluate(
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="A folder, a hub id, minilm, or a name at --endpoint; repeatable.",
            rich_help_panel=o.INPUT,
        ),
    ],
    *,
    suite: Annotated[
        str,
        typer.Option(
            "--suite",
            metavar="NAME",
            help="sts, transfer, nli, retrieval, gis, mteb, or all but mteb.",
            rich_help_panel=o.INPUT,
        ),
    ] = "sts",
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            metavar="FOLDER",
            help="Holds sts/STS12.tsv …, stsb/stsb-test.tsv and so on; for gis, a dataset.",
            rich_help_panel=o.INPUT,
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            metavar="NAME",
            help="Only this task, such as STS-B; repeatable.",
            rich_help_panel=o.INPUT,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            "-d",
            metavar="DATA",
            help="Pairs of your own instead: a folder, a file or a hub id.",
            rich_help_panel=o.INPUT,
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="NAME", help="test or dev. [default: test]", rich_help_panel=o.INPUT),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="MODEL",
            help="Another model, tested against on the same examples.",
            rich_help_panel=COMPARE,
        ),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(
            "--draws",
            metavar="N",
            help="Bootstrap resamples for intervals and tests; 0: none.",
            rich_help_panel=COMPARE,
        ),
    ] = 1000,
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint",
            metavar="URL",
            help="A server with OpenAI's /embeddings that has --model.",
            rich_help_panel=ENDPOINT,
        ),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            "--api-key-env",
            metavar="NAME",
            help="The variable with its key. [default: OPENAI_API_KEY at OpenAI]",
            rich_help_panel=ENDPOINT,
        ),
    ] = None,
    against_endpoint: Annotated[
        str | None,
        typer.Option(
            "--against-endpoint", metavar="URL", help="The same for --against.", rich_help_panel=ENDPOINT
        ),
    ] = None,
    against_api_key_env: Annotated[
        str | None,
        typer.Option(
            "--against-api-key-env", metavar="NAME", help="The same for --against.", rich_help_panel=ENDPOINT
        ),
    ] = None,
    plain_http: Annotated[
        bool,
        typer.Option(
            "--plain-http", help="Send keys to other machines unencrypted.", rich_help_panel=ENDPOINT
        ),
    ] = False,
    precision: o.Precision = None,
    seed: o.Seed = None,
    cache: Annotated[
        bool,
        typer.Option(
            "--cache/--no-cache", help="Keep vectors on disk for the next run.", rich_help_panel=o.RUN
        ),
    ] = True,
    subsets: Annotated[
        bool, typer.Option("--subsets", help="Show the parts of each task too.", rich_help_panel=o.OUTPUT)
    ] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            metavar="FILE",
            help="The tables in Markdown, beside the papers' figures.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The JSON object as a file.", rich_help_panel=o.OUTPUT
        ),
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Say how good a model is on what the papers measured, or on pairs of your own.

    Figures are times 100 in tables, as in papers, with 95 % bootstrap intervals in brackets. In the JSON
    object they are as they come: {task: {spearman, pearson, n, ci95, overlap}}, with a task's parts under
    `subsets`, the other model's figures under `against`, and such an object for each suite with --suite all.
    """
    import aoe_train
    from pairkit.files import write_json, write_text

    if markdown is not None and suite == "mteb":
        raise ConfigError(
            "--markdown: not for --suite mteb, whose library judges in its own way; leave it out"
        )
    if markdown is not None and len(model) > 1:
        raise ConfigError("--markdown is for one --model; leave it out, or run each model by itself")
    found = aoe_train.evaluate(
        model[0] if len(model) == 1 else model,
        suites=suite,
        data_dir=data_dir,
        tasks=task or (),
        data=data,
        split=split,
        against=against,
        endpoint=endpoint,
        api_key_env=api_key_env,
        against_endpoint=against_endpoint,
        against_api_key_env=against_api_key_env,
        plain_http=plain_http,
        precision=precision,
        draws=draws,
        seed=42 if seed is None else seed,
        cache=cache,
        progress=not quiet,
    )
    if out is not None:
        write_json(out, found.to_dict())
    if markdown is not None:
        write_text(markdown, found.to_markdown())
    if json:
        print_json(found.to_dict())
        return
    for table in found.tables(subsets=subsets):
        stdout.print(table)
    where = ["--data", data] if data else ["--data-dir", str(data_dir)] if data_dir else []
    if len(model) == 1 and against is None and endpoint is None and suite != "mteb" and model[0] != "minilm":
        words = ["aoe", "evaluate", "--model", model[0], "--against", "minilm", "--suite", suite, *where]
        next_step("see whether it is ahead of another model", words, quiet=quiet)
