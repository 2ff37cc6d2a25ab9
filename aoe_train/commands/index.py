"""`aoe index`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aoe_train.commands import options as o
from aoe_train.commands.app import app, examples
from pairkit.app.terminal import next_step, print_json, say
from pairkit.app.terminal import out as stdout


@app.command(
    epilog=examples(
        "aoe index texts.txt --model minilm --out index",
        "aoe index issues.parquet -m M -o index",
        "aoe index faq.csv -m M -o index --text-column question,answer",
        "aoe index many.parquet -m static -o index --kind hnsw --quantize int8",
    )
)
def index(
    texts: Annotated[
        str,
        typer.Argument(metavar="INPUT", help="Texts: a txt, csv, tsv, jsonl or parquet file, or a folder."),
    ],
    out: Annotated[Path, o.OUTPUT("--out -o", "The index's folder.", "DIR")],
    *,
    model: o.Model,
    text_column: Annotated[
        str | None,
        o.INPUT(
            "--text-column",
            "A table's column, or a,b for several. [default: text, or title and body, or the only one]",
            "NAME",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        o.OUTPUT("--kind", "flat or hnsw. [default: flat; hnsw from 200,000 texts on]", "NAME"),
    ] = None,
    quantize: Annotated[str, o.OUTPUT("--quantize", "Store vectors as float32 or int8.", "NAME")] = "float32",
    cache: Annotated[
        bool, o.RUN("--cache/--no-cache", "Keep vectors on disk as they come; a killed run continues.")
    ] = True,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Make texts searchable. Run it again to add new texts: those that are there are not encoded twice."""
    import aoe_train

    done = aoe_train.index(
        texts,
        model=model,
        out=out,
        text_column=text_column,
        kind=kind,
        quantize=quantize,
        cache=cache,
        progress=not quiet,
    )
    if json:
        print_json(done.to_dict())
        return
    stdout.print(str(done.out), markup=False)
    left = f", {done.empty:,} rows without a text left out" if done.empty else ""
    say(
        f"{done.rows:,} texts, {done.encoded:,} encoded now{left}; {done.bytes / done.rows:,.0f} bytes"
        f" a text; {done.kind} finds {done.recall:.1%} of the ten nearest",
        quiet=quiet,
    )
    next_step("search it", ["aoe", "search", done.out, "TEXT"], quiet=quiet)
