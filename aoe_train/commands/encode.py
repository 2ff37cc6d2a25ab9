"""`aoe encode`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aoe_train.commands import options as o
from aoe_train.commands.app import app, examples
from pairkit.app.errors import ConfigError
from pairkit.app.terminal import next_step, print_json, say
from pairkit.app.terminal import out as stdout


@app.command(
    epilog=examples(
        "aoe encode texts.txt --model M --out vectors.npy",
        "aoe encode questions.txt --model M --out questions.npy --prompt-name query",
        "aoe encode issues.parquet -m M -o issues-vectors.parquet --text-column body",
        "aoe encode texts.txt -m M -o small.npy --dim 128 --quantize int8",
        "aoe encode texts.txt -m M -o fast.npy --layers 4",
        "aoe encode questions.txt -m M -o q.npy --dim 128 --quantize int8 --calibration small.npy",
        "aoe encode texts.txt -m M -o vectors.npy --workers 4",
        "aoe encode texts.txt -m M -o vectors.npy --device cuda:0,cuda:1 --shard 2/8",
        "aoe encode texts.txt -o vectors.npy --merge",
        "aoe encode texts.txt -m M -o vectors.npy --engine ray --address 10.0.0.1:6379",
        "zcat texts.gz | aoe encode - --model M --out vectors.npy",
    )
)
def encode(
    texts: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="A txt (one text per line), csv, tsv, jsonl or parquet file, also .gz; - for a pipe.",
        ),
    ],
    out: Annotated[
        Path, o.OUTPUT("--out -o", ".npy, or .parquet with the input's columns and `vector`.", "FILE")
    ],
    *,
    model: Annotated[
        str | None, o.MODEL("--model -m", "A folder, a Hub id, minilm or smollm2.", "MODEL")
    ] = None,
    text_column: Annotated[
        str | None, o.INPUT("--text-column", "A table's column. [default: text, or the only one]", "NAME")
    ] = None,
    prompt_name: o.PromptName = None,
    prompt: o.Prompt = None,
    normalize: Annotated[
        bool | None, o.RUN("--normalize/--no-normalize", "Vectors of length 1. [default: as the model says]")
    ] = None,
    layers: o.Layers = None,
    dim: Annotated[
        int | None,
        o.OUTPUT("--dim", "Keep the first N numbers of each vector. [default: all]", "N", min=1),
    ] = None,
    quantize: Annotated[
        str | None,
        o.OUTPUT("--quantize", "float32, int8, binary or ubinary (bits). [default: float32]", "NAME"),
    ] = None,
    calibration: Annotated[
        str | None,
        o.OUTPUT(
            "--calibration",
            "Vectors, or an int8 output, that give int8 its ranges. [default: the vectors themselves]",
            "FILE",
        ),
    ] = None,
    precision: o.EncodingPrecision = None,
    device: Annotated[
        str | None,
        o.RUN("--device", "cpu, cuda:1, or several such as cuda:0,cuda:1. [default: the best]", "NAME,…"),
    ] = None,
    workers: Annotated[
        int | None,
        o.RUN(
            "--workers",
            "Processes that encode together. [default: one a device, or a cluster's machine]",
            "N",
            min=1,
        ),
    ] = None,
    engine: Annotated[
        str | None, o.RUN("--engine", "local, or ray for a cluster. [default: local]", "NAME")
    ] = None,
    address: Annotated[
        str | None, o.RUN("--address", "The Ray cluster's, as ray start says.", "HOST:PORT")
    ] = None,
    shard: Annotated[
        str | None,
        o.RUN("--shard", "Encode one share of the input alone, such as 2/8, on any machine.", "I/N"),
    ] = None,
    merge: Annotated[bool, o.RUN("--merge", "Put the shards of OUT together; needs no model.")] = False,
    batch_tokens: Annotated[
        int | None, o.RUN("--batch-tokens", "Tokens at a time; fewer need less memory.", "N", min=1)
    ] = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write the vector of each text, in order. Run it again to continue.

    To continue with a pipe, send the same texts again; those that are done are not encoded twice.
    """
    import aoe_train

    if merge:
        settings = (text_column, prompt_name, prompt, normalize, layers, dim, quantize, calibration)
        ways = (model, precision, device, workers, engine, address, shard, batch_tokens)
        if any(value is not None for value in (*settings, *ways)):
            raise ConfigError("--merge takes INPUT, --out and --fresh: all else is as the shards were made")
        done = aoe_train.merge_shards(texts, out=out, fresh=fresh)
    elif model is None:
        raise ConfigError("--model: encoding needs one; give a folder, a Hub id, minilm or smollm2")
    else:
        done = aoe_train.encode(
            texts,
            model=model,
            out=out,
            text_column=text_column,
            prompt_name=prompt_name,
            prompt=prompt,
            normalize=normalize,
            layers=layers,
            dim=dim,
            quantize=quantize,
            calibration=calibration,
            precision=precision,
            device=device,
            workers=workers,
            engine=engine or "local",
            address=address,
            shard=shard,
            batch_tokens=batch_tokens,
            fresh=fresh,
            progress=not quiet,
        )
    if json:
        print_json(done.to_dict())
        return
    stdout.print(str(done.out), markup=False)
    went_on = f", {done.resumed:,} of them done before" if done.resumed else ""
    say(f"{done.texts:,} texts{went_on}; {done.texts_per_s:,.1f} a second", quiet=quiet)
    if shard is not None:
        next_step("when all shards are there", ["aoe", "encode", texts, "--out", out, "--merge"], quiet=quiet)
        return
    read = f"numpy.load({str(out)!r})" if out.suffix == ".npy" else f"polars.read_parquet({str(out)!r})"
    next_step("read the vectors in Python", read, quiet=quiet)
