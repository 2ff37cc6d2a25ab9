"""`aoe evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from aoe_train._commands.models import open_model
from aoe_train._commands.scores import show_mteb, show_scores, show_side_by_side, write_pages
from pairkit.terminal import print_json, say

if TYPE_CHECKING:
    import numpy as np

    from aoe_train._evaluate import Chosen, Draws, Overlap, Score, Split
    from aoe_train._evaluate.embedders.embedder import Embedder

Models = Annotated[
    list[str],
    typer.Option(
        "--model",
        "-m",
        help="A folder, a hub id, minilm, or a name at --endpoint; repeatable, for one table.",
    ),
]


@app.command(
    epilog=examples(
        "aoe evaluate --model minilm --data-dir data",
        "aoe evaluate --model M --suite all --data-dir data --markdown M.md",
        "aoe evaluate --model M --against minilm --data-dir data",
        "aoe evaluate --model M --model M2 --model minilm --data-dir data",
        "aoe evaluate --model M --data-dir data --task STS-B --split dev",
        "aoe evaluate --model M --suite gis --data gis --json",
        "aoe evaluate --model M --suite mteb --task Banking77Classification",
        "aoe evaluate --model text-embedding-3-small --endpoint https://api.openai.com/v1 --data-dir data",
    )
)
def evaluate(
    model: Models,
    *,
    suite: Annotated[
        str, typer.Option("--suite", help="sts, transfer, nli, retrieval, gis, mteb, or all but mteb.")
    ] = "sts",
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            help="Holds sts/STS12.tsv …, stsb/stsb-test.tsv and so on, or some of them; for gis, a dataset.",
        ),
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option("--task", help="Only this task, such as STS-B; repeatable.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data", "-d", help="Pairs of your own instead of a suite's: a folder, a file or a hub id."
        ),
    ] = None,
    split: Annotated[str | None, typer.Option("--split", help="test or dev. [default: test]")] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", help="Another model, to be tested against on the same examples."),
    ] = None,
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint", help="A server with OpenAI's /embeddings that has --model, such as OpenAI's own."
        ),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            "--api-key-env",
            help="The environment variable with its key. [default: OPENAI_API_KEY at OpenAI, else none]",
        ),
    ] = None,
    against_endpoint: Annotated[
        str | None, typer.Option("--against-endpoint", help="The same for --against.")
    ] = None,
    against_api_key_env: Annotated[
        str | None, typer.Option("--against-api-key-env", help="The same for --against.")
    ] = None,
    plain_http: Annotated[
        bool,
        typer.Option("--plain-http", help="Send keys to endpoints on other machines without encryption."),
    ] = False,
    precision: o.Precision = None,
    draws: Annotated[
        int, typer.Option("--draws", help="Bootstrap resamples for intervals and tests; 0: none.")
    ] = 1000,
    seed: o.Seed = None,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Keep vectors on disk, and use those that are there.")
    ] = True,
    subsets: Annotated[bool, typer.Option("--subsets", help="Show the parts of each task too.")] = False,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", help="A file for the tables in Markdown, beside the papers' figures."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A file for the JSON object, besides what is printed.")
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Say how good a model is on what the papers measured, or on pairs of your own.

    Figures are times 100 in tables, as in papers, with 95 % bootstrap intervals in brackets. In the JSON
    object they are as they come: {task: {spearman, pearson, n, ci95, overlap}}, with a task's parts under
    `subsets`, the other model's figures under `against`, and such an object for each suite with --suite all.
    """
    from aoe_train._evaluate import ALL, Draws
    from aoe_train._evaluate.embedders.embedder import Endpoint
    from pairkit.errors import ConfigError

    sampled = Draws(draws, 42 if seed is None else seed)
    several = len(model) > 1
    if against_endpoint is not None and against is None:
        raise ConfigError("--against-endpoint: no --against, the name of the model there; give it too")
    here, there = (
        None if url is None else Endpoint(url, variable, plain_http)
        for url, variable in ((endpoint, api_key_env), (against_endpoint, against_api_key_env))
    )
    if suite == "mteb":
        _refuse({"--data": data, "--split": split, "--against": against, "--markdown": markdown})
        _refuse({"a second --model": several or None})
        embedder = open_model(model[0], precision, endpoint=here, cache=cache, quiet=quiet)
        scored = _mteb(embedder, task or (), data_dir, cache=cache, quiet=quiet)
        _write(scored, out=out, json=json)
        if not json:
            show_mteb(scored)
        return
    if several:
        _check_several(model, against=against, markdown=markdown, here=endpoint is None)
    chosen = _choose(suite, data_dir, task or (), data, split)
    for name, reason in chosen.missing.items():
        say(f"left out {name}: {reason}", quiet=quiet)
    rival = None
    if against is not None:
        rival = open_model(against, precision, endpoint=there, cache=cache, quiet=quiet)
        _warn_of(rival.name, None if against_endpoint else _trained(against), chosen, quiet=quiet)
    found = {}
    for name in model:
        embedder = open_model(name, precision, endpoint=here, cache=cache, quiet=quiet)
        trained = None if endpoint else _trained(name)
        found[name] = _scored(embedder, chosen, rival, trained, sampled, quiet=quiet)
    told = {name: _told(scores, whole=suite == ALL) for name, scores in found.items()}
    _write(told if several else told[model[0]], out=out, json=json)
    if several and not json:
        show_side_by_side(found)
        return
    names = (embedder.name, None if rival is None else rival.name)
    if markdown is not None:
        write_pages(markdown, found[model[0]], names, sampled)
    if not json:
        for name, scores in found[model[0]].items():
            show_scores(name, scores, *names, subsets=subsets)


def _check_several(models: Sequence[str], *, against: str | None, markdown: Path | None, here: bool) -> None:
    """Refuse what several models can't have, and a model that isn't here before the first one is judged."""
    from aoe_train._backbones.load import find_folder
    from pairkit.errors import ConfigError

    if len(set(models)) < len(models):
        raise ConfigError(f"--model: one is given twice among {', '.join(models)}")
    for flag, value in {"--against": against, "--markdown": markdown}.items():
        if value is not None:
            raise ConfigError(f"{flag} is for one --model; leave it out, or run each model by itself")
    for name in models if here else ():
        find_folder(name)


def _scored(
    embedder: Embedder,
    chosen: Chosen,
    rival: Embedder | None,
    trained: np.ndarray | None,
    draws: Draws,
    *,
    quiet: bool,
) -> dict[str, dict[str, Score]]:
    """A model's scores by suite and task; what it was trained on is told."""
    from aoe_train._evaluate import score

    found = {
        name: score(embedder, tasks, rival=rival, trained=trained, draws=draws, quiet=quiet)
        for name, tasks in chosen.tasks.items()
    }
    for scores in found.values():
        _warn(embedder.name, {name: one.overlap for name, one in scores.items()}, quiet=quiet)
    return found


def _told(found: Mapping[str, Mapping[str, Score]], *, whole: bool) -> dict[str, Any]:
    """As in the JSON: by suite and task, or by task where there is one suite."""
    told = {suite: {name: one.to_dict() for name, one in scores.items()} for suite, scores in found.items()}
    return told if whole else next(iter(told.values()))


def _choose(
    suite: str, data_dir: Path | None, names: Sequence[str], data: str | None, split: str | None
) -> Chosen:
    from aoe_train._evaluate import choose_pairs, choose_tasks
    from pairkit.errors import ConfigError

    if split not in (None, "test", "dev"):
        raise ConfigError(f"--split {split}: expected test or dev")
    part = cast("Split | None", split)
    if data is not None:
        if data_dir is not None or names:
            raise ConfigError("--data stands instead of a suite's data; leave --data-dir and --task out")
        return choose_pairs(suite, data, part)
    if data_dir is None:
        raise ConfigError("give --data-dir, the folder with the suite's data, or --data, pairs of your own")
    return choose_tasks(suite, data_dir, names, part or "test")


def _refuse(given: Mapping[str, object]) -> None:
    from pairkit.errors import ConfigError

    for flag, value in given.items():
        if value is not None:
            raise ConfigError(
                f"{flag}: not for --suite mteb, whose library judges in its own way; leave it out"
            )


def _mteb(
    embedder: Embedder, names: Sequence[str], data_dir: Path | None, *, cache: bool, quiet: bool
) -> dict[str, dict[str, Any]]:
    from tempfile import TemporaryDirectory

    from aoe_train._evaluate.mteb_tasks import run_mteb
    from pairkit.errors import ConfigError

    if not names:
        raise ConfigError("--suite mteb has over a thousand tasks: give --task, such as --task STSBenchmark")
    if cache:
        return run_mteb(embedder, names, data_dir=data_dir, quiet=quiet)
    with TemporaryDirectory() as folder:
        return run_mteb(embedder, names, data_dir=data_dir, cache=Path(folder), quiet=quiet)


def _trained(model: str) -> np.ndarray | None:
    from aoe_train._backbones.load import find_folder
    from aoe_train._evaluate import read_digests

    return read_digests(find_folder(model))


def _warn(model: str, overlaps: Mapping[str, Overlap | None], *, quiet: bool) -> None:
    for name, found in overlaps.items():
        if found is not None and found.texts:
            say(f"warning: {name}: {model} was {found}", quiet=quiet)


def _warn_of(model: str, trained: np.ndarray | None, chosen: Chosen, *, quiet: bool) -> None:
    """Say what a rival was trained on, which flatters it as it would the model."""
    from aoe_train._evaluate import overlap

    if trained is not None:
        for tasks in chosen.tasks.values():
            _warn(model, {task.name: overlap(task, trained) for task in tasks}, quiet=quiet)


def _write(found: Mapping[str, Any], *, out: Path | None, json: bool) -> None:
    from pairkit.files import write_json

    if out is not None:
        write_json(out, found)
    if json:
        print_json(found)
