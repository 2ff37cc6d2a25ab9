"""`aoe train`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json, say

if TYPE_CHECKING:
    from aoe_train._settings import TrainSettings


@app.command(
    epilog=examples(
        "aoe train --data gis --backbone minilm --out model",
        "aoe train --data stsb-train.tsv --dev-data stsb-dev.tsv --backbone minilm --out model --preset aoe",
        "aoe train --data nli --backbone meta-llama/Llama-3.2-1B --out model --lora"
        " --prompt 'Summarize sentence {text} in one word:'",
        "torchrun --nproc-per-node 2 -m aoe_train train --data gis --backbone minilm --out model",
        "aoe train --data gis --backbone minilm --out model --dry-run",
    )
)
def train(
    data: o.Data,
    backbone: o.Backbone,
    out: o.Out,
    *,
    preset: Annotated[
        str | None, typer.Option("--preset", help="angle [default], aoe, cosent, sbert or simcse.")
    ] = None,
    dev_data: o.DevData = None,
    columns: o.Columns = None,
    labels: o.Labels = None,
    epochs: o.Epochs = None,
    batch_size: o.BatchSize = None,
    lr: o.Lr = None,
    max_length: Annotated[
        int | None,
        typer.Option("--max-length", help="Tokens of a text. [default: the backbone's, at most 512]"),
    ] = None,
    pooling: Annotated[
        str | None, typer.Option("--pooling", help="cls, avg, max, last, cls-avg or first-last-avg.")
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", help="Words around each text; {text} is where it goes.")
    ] = None,
    lora: Annotated[
        bool, typer.Option("--lora", help="Train low-rank adapters only; see the settings lora.*.")
    ] = False,
    precision: o.Precision = None,
    seed: o.Seed = None,
    revision: o.Revision = None,
    trust_remote_code: o.TrustRemoteCode = False,
    config: o.Config = None,
    sets: o.Sets = None,
    fresh: o.Fresh = False,
    dry_run: o.DryRun = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Train a text-embedding model on pairs. Kill it and run it again to go on.

    `seconds` and `pairs_per_s` in the result are of the training steps only: without loading, tokenising,
    evaluation on dev data, and checkpoints.
    """
    settings = _settings(
        config,
        sets,
        lora=lora,
        flags={
            "preset": preset,
            "seed": seed,
            "optim.epochs": epochs,
            "optim.batch_size": batch_size,
            "optim.lr": lr,
            "encoder.max_length": max_length,
            "encoder.pooling": pooling,
            "encoder.prompt": prompt,
            "run.precision": precision,
        },
    )
    from aoe_train._preparation import Sources

    sources = Sources(
        data,
        backbone,
        out,
        dev_data=dev_data,
        columns=o.mapping("--columns", columns),
        label_values=o.label_values(labels),
        revision=revision,
        trust_remote_code=trust_remote_code,
    )
    if dry_run:
        _show_plan(sources, settings, json=json)
        return
    from aoe_train import _train as use_case
    from aoe_train._trainer.gather import is_main, leave_group

    record = use_case.train(sources, settings, fresh=fresh, say=partial(say, quiet=quiet), quiet=quiet)
    if is_main():
        _show(record["result"], json=json, quiet=quiet)
    leave_group()


def _settings(
    config: Path | None, sets: list[str] | None, *, lora: bool, flags: dict[str, Any]
) -> TrainSettings:
    from aoe_train._lora_settings import LoraSettings
    from aoe_train._settings import TrainSettings
    from pairkit.config import load_settings

    settings = load_settings(TrainSettings, file=config, assignments=sets or (), flags=flags)
    if lora and settings.lora is None:
        return settings.model_copy(update={"lora": LoraSettings.model_validate({})})
    return settings


def _show_plan(sources: Any, settings: TrainSettings, *, json: bool) -> None:
    from aoe_train._dry_run import dry_run, plan_table

    plan = dry_run(sources, settings)
    if json:
        print_json(plan)
    else:
        stdout.print(plan_table(plan))


_RESULT = (
    *("out", "steps", "pairs", "seconds", "pairs_per_s", "peak_rss_mb"),
    *("dev", "dev_metric", "dev_before"),
)


def _show(result: dict[str, Any], *, json: bool, quiet: bool) -> None:
    if json:
        print_json({key: result[key] for key in _RESULT})
        return
    stdout.print(result["out"], markup=False)
    say(
        f"{result['steps']:,} steps over {result['pairs']:,} rows in {result['seconds']:,.1f} s of training "
        f"({result['pairs_per_s']:,.1f} a second)",
        quiet=quiet,
    )
    if result["dev"] is not None:
        say(
            f"{result['dev_metric']} on dev data: {result['dev']:.4f}, before {result['dev_before']:.4f}",
            quiet=quiet,
        )
        if result["dev"] <= result["dev_before"]:
            say("no better than without training: try a lower --lr, or another --preset", quiet=quiet)
