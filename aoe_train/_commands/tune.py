"""`aoe tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aoe_train._commands import options as o
from aoe_train._commands.app import app, examples
from pairkit.application import columns_given
from pairkit.terminal import next_step, print_json
from pairkit.terminal import out as stdout


@app.command(
    epilog=examples(
        "aoe tune --data gis --backbone minilm --out search",
        "aoe tune -d stsb-train.tsv --dev-data stsb-dev.tsv -b minilm -o search --trials 40 --hours 8",
        "aoe tune -d gis -b minilm -o search --search optim.lr=1e-5..1e-3:log"
        " --search objective.tau=0.02,0.05",
        "aoe train -d gis -b minilm -o model --config search/best.toml",
    )
)
def tune(
    data: o.Data,
    backbone: o.Backbone,
    out: Annotated[Path, o.OUTPUT("--out -o", "The search's folder.", "DIR")],
    *,
    dev_data: o.DevData = None,
    columns: o.Columns = None,
    labels: o.Labels = None,
    label_range: o.LabelRange = None,
    conflicts: o.Conflicts = None,
    prompts: o.Prompts = None,
    lora: o.Lora = None,
    revision: o.Revision = None,
    trust_remote_code: o.TrustRemoteCode = False,
    trials: Annotated[int, o.TRAINING("--trials", "Runs before seeds are repeated.", "N", min=1)] = 20,
    hours: Annotated[
        float | None, o.TRAINING("--hours", "Begin no run after so many hours of training.", "N", min=0)
    ] = None,
    search: Annotated[
        list[str] | None,
        o.TRAINING(
            "--search",
            "What may differ, such as optim.lr=1e-5..1e-3:log or objective.tau=0.02,0.05; repeatable."
            " [default: by rows and backbone]",
            "KEY=RANGE",
        ),
    ] = None,
    space: Annotated[Path | None, o.TRAINING("--space", "The same in TOML.", "FILE")] = None,
    repeats: Annotated[
        int, o.TRAINING("--repeats", "Seeds that the best few are trained with.", "N", min=1)
    ] = 3,
    precision: o.Precision = None,
    seed: o.Seed = None,
    config: o.Config = None,
    sets: o.Sets = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Search for the settings of `aoe train` on held-out rows. Run it again to continue.

    Held-out rows choose here, so they say too much of the result afterwards: keep the test set for the end.
    """
    import aoe_train

    found = aoe_train.tune(
        data,
        backbone=backbone,
        out=out,
        trials=trials,
        hours=hours,
        search=search or (),
        space=space,
        repeats=repeats,
        fresh=fresh,
        progress=not quiet,
        dev_data=o.sources(dev_data),
        columns=columns_given(columns),
        labels=labels,
        label_range=label_range,
        conflicts=conflicts,
        prompts=o.prompts(prompts),
        lora=lora,
        revision=revision,
        trust_remote_code=trust_remote_code,
        precision=precision,
        seed=seed,
        config=config,
        settings=sets,
    )
    if json:
        print_json(found.to_dict())
        return
    stdout.print(found.table())
    next_step(
        "train with the best settings",
        ["aoe", "train", "--data", data, "--backbone", backbone, "--config", found.config, "--out", "model"],
        quiet=quiet,
    )
