"""`aoe evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aoe_train.commands import options as o
from aoe_train.commands.app import app, examples
from pairkit.app.application import columns_given
from pairkit.app.terminal import next_step, print_json
from pairkit.app.terminal import out as stdout

COMPARE, ENDPOINT = o.Group("Comparison and intervals"), o.Group("Models behind a server")
SIZES = o.Group("Small vectors")


@app.command(
    epilog=examples(
        "aoe evaluate --model minilm --data-dir data",
        "aoe evaluate --model M --data-dir data --markdown M.md",
        "aoe evaluate --model M --against minilm --data-dir data",
        "aoe evaluate -m M -m M2 -m minilm --data-dir data",
        "aoe evaluate --model M --data gis --json",
        "aoe evaluate --model M --against minilm --data judged",
        "aoe evaluate -m M -m minilm --suite duplicates --data pairs.tsv --reports reports.jsonl",
        "aoe evaluate --model M --data-dir data --dim 384,128,32 --quantize float32,int8,binary",
        "aoe evaluate --model M --data-dir data --layers 6,4,2 --dim 384,128,32",
        "aoe evaluate -m minilm -m python:my_models:embed --data-dir data",
        "aoe evaluate -m text-embedding-3-small --endpoint https://api.openai.com/v1 --data-dir data",
    )
)
def evaluate(
    model: Annotated[
        list[str],
        o.INPUT(
            "--model -m",
            "A folder, a Hub id, minilm, smollm2, python:module:function or a name"
            " at --endpoint; repeatable.",
            "MODEL",
        ),
    ],
    *,
    suite: Annotated[
        str | None,
        o.INPUT(
            "--suite",
            "sts, gis or duplicates. [default: sts; of --data with labels 0 and 1: gis]",
            "NAME",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        o.INPUT("--data-dir", "The folder with the STS test sets: sts/, stsb/ and sick/.", "DIR"),
    ] = None,
    task: Annotated[
        list[str] | None, o.INPUT("--task", "Only this task, such as STS-B; repeatable.", "NAME")
    ] = None,
    data: Annotated[
        str | None, o.INPUT("--data -d", "Pairs of your own instead: a folder, a file or a Hub id.", "DATA")
    ] = None,
    reports: Annotated[
        str | None,
        o.INPUT("--reports", "All reports of the tracker, for --suite duplicates: a table.", "DATA"),
    ] = None,
    columns: o.Columns = None,
    labels: o.Labels = None,
    label_range: o.LabelRange = None,
    split: Annotated[str | None, o.INPUT("--split", "test or dev. [default: test]", "NAME")] = None,
    against: Annotated[
        str | None, COMPARE("--against", "Another model, to test the difference.", "MODEL")
    ] = None,
    draws: Annotated[
        int, COMPARE("--draws", "Bootstrap resamples for intervals and tests; 0: none.", "N")
    ] = 1000,
    endpoint: Annotated[
        str | None, ENDPOINT("--endpoint", "A server with OpenAI's /embeddings, which has --model.", "URL")
    ] = None,
    api_key_env: Annotated[
        str | None,
        ENDPOINT(
            "--api-key-env", "Environment variable with its key. [default: OPENAI_API_KEY at OpenAI]", "NAME"
        ),
    ] = None,
    against_endpoint: Annotated[
        str | None, ENDPOINT("--against-endpoint", "The same for --against.", "URL")
    ] = None,
    against_api_key_env: Annotated[
        str | None, ENDPOINT("--against-api-key-env", "The same for --against.", "NAME")
    ] = None,
    plain_http: Annotated[bool, ENDPOINT("--plain-http", "Send keys to other machines unencrypted.")] = False,
    prompt_name: o.PromptName = None,
    prompt: o.Prompt = None,
    precision: o.EncodingPrecision = None,
    layers: Annotated[
        str | None,
        SIZES("--layers", "Judge the model with its first N layers; a row for each number.", "N,…"),
    ] = None,
    dim: Annotated[
        str | None,
        SIZES("--dim", "Judge the first N numbers of vectors; a row for each size.", "N,…"),
    ] = None,
    quantize: Annotated[
        str | None,
        SIZES("--quantize", "float32, int8, binary, ubinary; a row for each.", "NAME,…"),
    ] = None,
    seed: o.Seed = None,
    keep_weights: Annotated[
        bool,
        o.OUTPUT("--keep-weights", "Leave the weights of hybrids in each model's folder (duplicates)."),
    ] = False,
    cache: Annotated[bool, o.RUN("--cache/--no-cache", "Keep vectors on disk for the next run.")] = True,
    subsets: Annotated[bool, o.OUTPUT("--subsets", "Show the parts of each task, too.")] = False,
    markdown: Annotated[
        Path | None,
        o.OUTPUT("--markdown", "Write the tables as Markdown.", "FILE"),
    ] = None,
    out: Annotated[Path | None, o.OUTPUT("--out -o", "Write the JSON object to a file.", "FILE")] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Measure how good a model is, on pairs of your own or on STS test sets.

    Tables show figures times 100, as papers do, with 95 % bootstrap intervals in brackets. The JSON object
    has them as they are: {task: {spearman, pearson, n, ci95, overlap}}, with the parts of a task under
    `subsets` and the other model's figures under `against`. With --data and --against a last line says
    whether to ship the model: ship, not shown or worse (`gain` in the JSON). With --layers, --dim or
    --quantize it is {sizes: [{model, layers, dim, quantize, bytes, tasks}]}, where `tasks` is such an object.
    """
    import aoe_train
    from pairkit.system.files import write_json, write_text

    found = aoe_train.evaluate(
        model[0] if len(model) == 1 else model,
        suite=suite,
        data_dir=data_dir,
        tasks=task or (),
        data=data,
        reports=reports,
        columns=columns_given(columns),
        labels=labels,
        label_range=label_range,
        split=split,
        against=against,
        endpoint=endpoint,
        api_key_env=api_key_env,
        against_endpoint=against_endpoint,
        against_api_key_env=against_api_key_env,
        plain_http=plain_http,
        prompt_name=prompt_name,
        prompt=prompt,
        precision=precision,
        layers=layers,
        dim=dim,
        quantize=quantize,
        draws=draws,
        seed=42 if seed is None else seed,
        keep_weights=keep_weights,
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
    for name, gain in found.gains.items():
        stdout.print(f"{gain.word}: {name}: {gain}", markup=False)
    where = ["--data", data] if data else ["--data-dir", str(data_dir)] if data_dir else []
    if (
        len(model) == 1
        and against is None
        and endpoint is None
        and suite != "duplicates"
        and model[0] != "minilm"
        and not found.sizes
    ):
        named = ["--suite", suite] if suite else []
        words = ["aoe", "evaluate", "--model", model[0], "--against", "minilm", *named, *where]
        next_step("compare it with another model", words, quiet=quiet)
