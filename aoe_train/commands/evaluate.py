"""`aoe evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from aoe_train.commands import options as o
from aoe_train.commands.app import app, examples
from aoe_train.commands.models import Model, load_encoder
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json, say

if TYPE_CHECKING:
    from rich.table import Table

    from aoe_train.evaluate import Result, Split, Task


@app.command(
    epilog=examples(
        "aoe evaluate --model minilm --data-dir data",
        "aoe evaluate --model M --data-dir data --task STS-B --split dev",
        "aoe evaluate --model M --data gis --json",
    )
)
def evaluate(
    model: Model,
    *,
    suite: Annotated[str, typer.Option("--suite", help="sts: STS12-16, STS-B and SICK-R.")] = "sts",
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            help="Holds sts/STS12.tsv …, stsb/stsb-test.tsv, sick/sick-test.tsv, or some of them.",
        ),
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option("--task", help="Only this task, such as STS-B; repeatable.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data", "-d", help="Pairs of your own instead of a suite: a folder, a file or a hub id."
        ),
    ] = None,
    split: Annotated[str | None, typer.Option("--split", help="test or dev. [default: test]")] = None,
    precision: o.Precision = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A file for the JSON object, besides what is printed.")
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Say how well a model's cosines follow labels: Spearman and Pearson.

    They are times 100 in the table, as in papers, and from -1 to 1 in the JSON object, whose keys are the
    tasks: {task: {spearman, pearson, n}}, with the figures of a task's parts under `subsets`.
    """
    from aoe_train.evaluate import evaluate as score
    from pairkit.files import write_json

    tasks, missing = _tasks(suite, data_dir, task or (), data, split)
    for name, reason in missing.items():
        say(f"left out {name}: {reason}", quiet=quiet)
    encoder = load_encoder(model, precision)
    results = score(lambda texts: encoder.encode(texts, progress=not quiet), tasks)
    found = {name: result.to_dict() for name, result in results.items()}
    if out is not None:
        write_json(out, found)
    if json:
        print_json(found)
    else:
        stdout.print(_table(results))


def _tasks(
    suite: str, data_dir: Path | None, names: Sequence[str], data: str | None, split: str | None
) -> tuple[Sequence[Task], Mapping[str, str]]:
    from aoe_train.evaluate import SUITES, find_tasks, read_pair_task
    from pairkit.errors import ConfigError

    if split not in (None, "test", "dev"):
        raise ConfigError(f"--split {split}: expected test or dev")
    chosen = cast("Split | None", split)
    if data is not None:
        if data_dir is not None or names:
            raise ConfigError("--data stands instead of a suite; leave --data-dir and --task out")
        return [read_pair_task(data, chosen)], {}
    if suite not in SUITES:
        raise ConfigError(f"--suite {suite}: expected {' or '.join(SUITES)}")
    if data_dir is None:
        raise ConfigError("give --data-dir, the folder with the suite's data, or --data, pairs of your own")
    return find_tasks(SUITES[suite], data_dir, names=names, split=chosen or "test")


def _table(results: Mapping[str, Result]) -> Table:
    from rich.table import Table

    table = Table(title="times 100, labels against cosines", box=None)
    table.add_column("task")
    metrics = list(dict.fromkeys(metric for result in results.values() for metric in result.scores))
    for heading in (*metrics, "n"):
        table.add_column(heading, justify="right")
    for name, result in results.items():
        table.add_row(name, *(f"{100 * result.scores[metric]:.2f}" for metric in metrics), f"{result.n:,}")
    if len(results) > 1:
        means = [
            sum(result.scores[metric] for result in results.values()) / len(results) for metric in metrics
        ]
        table.add_row("mean", *(f"{100 * mean:.2f}" for mean in means), "")
    return table
