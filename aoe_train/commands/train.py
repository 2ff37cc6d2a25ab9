"""`aoe train`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aoe_train.commands import options as o
from aoe_train.commands.app import app, examples
from pairkit.app.application import columns_given
from pairkit.app.terminal import next_step, print_json, say
from pairkit.app.terminal import out as stdout

if TYPE_CHECKING:
    from aoe_train import Trained


@app.command(
    epilog=examples(
        "aoe train --data gis --backbone minilm --out model",
        "aoe train -d stsb-train.tsv --dev-data stsb-dev.tsv -b minilm -o model --preset aoe",
        "aoe train -d nli -b meta-llama/Llama-3.2-1B -o model",
        "aoe train -d stsb-train.tsv -b minilm -o model --dims 384,256,128,64,32",
        "aoe train -d pairs/triplet -b minilm -o model --preset domain --judged judged",
        "aoe train -d questions.csv -b minilm -o model --guide minilm",
        "aoe train -d sentences.txt -b google/bert_uncased_L-2_H-128_A-2 -o model --teacher minilm",
        "aoe train -d stsb-train.tsv -b minilm -o model --dims 384,128 --layers all",
        "aoe train -d 'shards/*.parquet' -b minilm -o model --streaming on",
        "aoe train -d nli=nli.tsv -d stsb=stsb-train.tsv --dev-data stsb=stsb-dev.tsv -b minilm -o model"
        " --set datasets.stsb.weight=2",
        "torchrun --nproc-per-node 2 -m aoe_train train -d gis -b minilm -o model",
    )
)
def train(
    backbone: o.Backbone,
    out: o.Out,
    *,
    data: o.TrainData = None,
    dev_data: o.DevData = None,
    judged: o.Judged = None,
    columns: o.Columns = None,
    labels: o.Labels = None,
    label_range: o.LabelRange = None,
    conflicts: o.Conflicts = None,
    streaming: o.Streaming = None,
    max_length: Annotated[
        int | None,
        o.MODEL("--max-length", "Tokens read of a text. [default: the backbone's, at most 512]", "N"),
    ] = None,
    pooling: Annotated[
        str | None,
        o.MODEL(
            "--pooling",
            "cls, avg, max, last, cls-avg, first-last-avg, weighted-mean or mask. [default: the backbone's]",
            "NAME",
        ),
    ] = None,
    prompts: o.Prompts = None,
    lora: o.Lora = None,
    revision: o.Revision = None,
    trust_remote_code: o.TrustRemoteCode = False,
    preset: Annotated[
        str | None,
        o.TRAINING(
            "--preset",
            "angle, aoe, cosent, sbert or simcse; angle-paper: all as the papers have it; domain: for what"
            " `label` wrote; or a baseline for texts alone, such as ct. [default: by kind of rows]",
            "NAME",
        ),
    ] = None,
    dims: Annotated[
        str | None,
        o.TRAINING("--dims", "Sizes that vectors may be cut to, such as 384,128,32. [default: none]", "N,…"),
    ] = None,
    layers: Annotated[
        str | None,
        o.TRAINING("--layers", "Earlier layers that learn too, such as 2,4, or all. [default: none]", "N,…"),
    ] = None,
    top_layers: Annotated[
        int | None,
        o.TRAINING("--top-layers", "Train the last N layers only. [default: all]", "N", min=1),
    ] = None,
    soup: Annotated[
        float | None,
        o.TRAINING("--soup", "Share of the trained weights; the rest is the backbone's. [default: 1]", "X"),
    ] = None,
    keep: Annotated[
        str | None,
        o.TRAINING(
            "--keep",
            "better: the backbone, unless --judged shows that the model is better; always: the model."
            " [default: better]",
            "NAME",
        ),
    ] = None,
    guide: Annotated[
        str | None,
        o.TRAINING("--guide", "A model that tells which in-batch negatives may be none.", "MODEL"),
    ] = None,
    teacher: Annotated[
        str | None,
        o.TRAINING("--teacher", "A model, or a file of its vectors, to come near to.", "MODEL"),
    ] = None,
    teacher_scores: Annotated[
        str | None,
        o.TRAINING("--teacher-scores", "A file of the rows with a teacher's scores.", "FILE"),
    ] = None,
    epochs: o.Epochs = None,
    batch_size: o.BatchSize = None,
    lr: o.Lr = None,
    precision: o.Precision = None,
    seed: o.Seed = None,
    config: o.Config = None,
    sets: o.Sets = None,
    fresh: o.Fresh = False,
    dry_run: o.DryRun = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Train a text-embedding model on pairs. Run it again to continue.

    `seconds` and `pairs_per_s` in the result count the training steps only, without loading, tokenising,
    evaluation on dev data and checkpoints.
    """
    import aoe_train
    from aoe_train import TrainOptions

    options = TrainOptions(
        preset=preset,
        dims=dims,
        layers=layers,
        top_layers=top_layers,
        soup=soup,
        dev_data=o.sources(dev_data),
        judged=judged,
        keep=keep,
        columns=columns_given(columns),
        labels=labels,
        label_range=label_range,
        conflicts=conflicts,
        streaming=streaming,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        max_length=max_length,
        pooling=pooling,
        prompts=o.prompts(prompts),
        lora=lora,
        precision=precision,
        guide=guide,
        teacher=teacher,
        teacher_scores=teacher_scores,
        seed=seed,
        revision=revision,
        trust_remote_code=trust_remote_code,
        config=config,
        settings=sets,
    )
    rows = o.sources(data)
    if dry_run:
        plan = aoe_train.plan(rows, backbone=backbone, out=out, progress=not quiet, **options)
        if json:
            print_json(plan.to_dict())
        else:
            stdout.print(plan.table())
            next_step("train", "the same command without --dry-run", quiet=quiet)
        return
    run = aoe_train.train(rows, backbone=backbone, out=out, fresh=fresh, progress=not quiet, **options)
    if run.is_main:
        _show(run, json=json, quiet=quiet)


_KEPT = (
    "kept the backbone: the model was not shown to be better than it, so its weights were saved instead (to"
    " keep the model's, give --keep always)"
)


def _show(run: Trained, *, json: bool, quiet: bool) -> None:
    if json:
        print_json(run.to_dict())
        return
    stdout.print(str(run.out), markup=False)
    say(
        f"{run.steps:,} steps over {run.pairs:,} rows in {run.seconds:,.1f} s of training "
        f"({run.pairs / run.seconds:,.1f} a second)",
        quiet=quiet,
    )
    if run.dev is not None and run.dev_before is not None:
        say(f"{run.dev_metric} on dev data: {run.dev:.4f}, before {run.dev_before:.4f}", quiet=quiet)
        for name, dev in run.dev_sets.items():
            told = "" if dev["dev"] is None else f"{dev['dev']:.4f}, before "
            say(f"  {name}: {dev['metric']} {told}{dev['before']:.4f}", quiet=quiet)
        if run.dev <= run.dev_before:
            say("no better than before training: try a lower --lr or another --preset", quiet=quiet)
    if run.gain is not None:
        say(f"judged pairs: {run.gain}", quiet=quiet)
        if run.kept == "backbone":
            say(_KEPT, quiet=quiet)
    data = run.record["sources"]["data"]
    first = data if isinstance(data, str) else next(iter(data.values()))
    next_step("evaluate it", ["aoe", "evaluate", "--model", run.out, "--data", first], quiet=quiet)
