"""Commands of `pairs` that make something of datasets: export, merge, split, push."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pairkit
from pairkit.app.application import columns_given
from pairkit.app.terminal import next_step, print_json, say
from pairkit.app.terminal import out as stdout
from pairkit.commands import options as o
from pairkit.commands.options import app, examples, show_made


@app.command(
    epilog=examples(
        "pairs export gis-dataset --format jsonl --out gis-jsonl",
        "pairs export gis-dataset --format csv --raw --out gis-csv",
    )
)
def export(
    dataset: o.Dataset,
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    label_range: o.LabelRange = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="DIR", rich_help_panel="Output", help="The folder for the files."
        ),
    ],
    file_format: Annotated[
        str, typer.Option("--format", metavar="NAME", rich_help_panel="Output", help="jsonl or csv.")
    ] = "jsonl",
    raw: Annotated[
        bool,
        typer.Option("--raw", rich_help_panel="Output", help="CSV for programs, without the apostrophes."),
    ] = False,
) -> None:
    """Write each split of a dataset as a file of JSON lines or CSV.

    In CSV, an apostrophe is put before a text that begins with = + - @, a tab or a line end, because a
    spreadsheet would run it as a formula.
    """
    from pairkit.dataset.labels import worth_telling

    pairs = pairkit.read(dataset, columns=columns_given(columns), labels=labels, label_range=label_range)
    if told := worth_telling(pairs.labels):
        say(told)
    for path in pairkit.export(pairs, out, file_format=file_format, raw=raw):
        stdout.print(str(path), markup=False)


@app.command(
    epilog=examples(
        "pairs mine handbook --out mined",
        "pairs mine faq.csv --columns question=ask,answer=reply --out mined",
        "pairs mine articles.jsonl --strategies title-body,adjacent --out mined",
    )
)
def mine(
    documents: Annotated[
        str,
        typer.Argument(
            metavar="DOCUMENTS",
            show_default=False,
            help="A folder of Markdown, HTML and text files, or a table.",
        ),
    ],
    *,
    strategies: Annotated[
        str | None,
        typer.Option(
            "--strategies",
            metavar="NAME,…",
            help="title-body, question-answer, section, links, adjacent. [default: all but adjacent]",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="A=B,…",
            rich_help_panel="Input",
            help="Of a table: which column is title, body, question, answer or document.",
        ),
    ] = None,
    min_chars: Annotated[
        int, typer.Option("--min-chars", metavar="N", help="Characters that a text must have.")
    ] = 3,
    max_chars: Annotated[
        int, typer.Option("--max-chars", metavar="N", help="Characters that a text is cut to.")
    ] = 1000,
    split: o.Split = "0.8,0.1,0.1",
    seed: o.Seed = 42,
    out: o.Out,
    dropped: o.Dropped = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Take pairs of texts that belong together out of documents, by their structure.

    A title and its body, a question and its answer, a heading and what stands below it, the words of a link
    and the document that it leads to. Such pairs help a weak model and may cost a good one: train with
    --judged, which keeps the backbone unless the model is better.
    """
    made = pairkit.mine(
        documents,
        out,
        strategies=strategies,
        columns=columns_given(columns),
        min_chars=min_chars,
        max_chars=max_chars,
        split=o.shares(split) or (),
        seed=seed,
        fresh=fresh,
        progress=not quiet,
    )
    show_made(made, dropped, json=json, quiet=quiet)


@app.command(
    epilog=examples(
        "pairs merge gis labelled.tsv --out both",
        "pairs merge mine.csv yours.csv --conflicts drop --split 0.8,0.1,0.1 --out ours",
    )
)
def merge(
    datasets: Annotated[
        list[str], typer.Argument(metavar="DATASETS", show_default=False, help="Folders, files or Hub ids.")
    ],
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    label_range: o.LabelRange = None,
    conflicts: Annotated[
        str,
        typer.Option(
            "--conflicts",
            metavar="NAME",
            help="If labels of a pair differ: error, drop (it) or first (the first dataset's).",
        ),
    ] = "error",
    split: o.Split = None,
    cut_negatives: o.CutNegatives = False,
    seed: o.Seed = 42,
    out: o.Out,
    dropped: o.Dropped = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Join datasets: each pair once, and no text, issue or cluster in two splits.

    Rows keep their splits. If two splits share a text, issue or cluster, it stays in test, or else in
    validation, and the rows that would put it into another split are left out.
    """
    made = pairkit.merge(
        datasets,
        out,
        conflicts=conflicts,
        split=o.shares(split),
        cut_negatives=cut_negatives,
        seed=seed,
        columns=columns_given(columns),
        labels=labels,
        label_range=label_range,
        fresh=fresh,
    )
    show_made(made, dropped, json=json, quiet=quiet)


@app.command(
    epilog=examples(
        "pairs split pairs.tsv --out divided", "pairs split gis --split 0.9,0,0.1 --cut-negatives --out anew"
    )
)
def split(
    dataset: o.Dataset,
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    label_range: o.LabelRange = None,
    split: o.Split = "0.8,0.1,0.1",
    cut_negatives: o.CutNegatives = False,
    seed: o.Seed = 42,
    out: o.Out,
    dropped: o.Dropped = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Divide a dataset into train, validation and test that share no text, issue or cluster."""
    made = pairkit.split(
        dataset,
        out,
        split=o.shares(split) or (),
        cut_negatives=cut_negatives,
        seed=seed,
        columns=columns_given(columns),
        labels=labels,
        label_range=label_range,
        fresh=fresh,
    )
    show_made(made, dropped, json=json, quiet=quiet)


@app.command(
    epilog=examples(
        "pairs push gis-dataset --repo you/gis --dry-run", "HF_TOKEN=… pairs push gis-dataset --repo you/gis"
    )
)
def push(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", show_default=False, help="A dataset made by gis, label or pairs.")
    ],
    *,
    repo: Annotated[
        str,
        typer.Option(
            "--repo", metavar="OWNER/NAME", help="The repository on the Hub; created if it is missing."
        ),
    ],
    public: Annotated[
        bool, typer.Option("--public", help="Let everybody see it. [default: only you]")
    ] = False,
    revision: Annotated[
        str | None, typer.Option("--revision", metavar="NAME", help="Branch to commit to. [default: main]")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be sent, and send nothing.")
    ] = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Send a dataset with its card to the Hugging Face Hub, in one commit. The token is HF_TOKEN."""
    pushed = pairkit.push(folder, repo, public=public, revision=revision, dry_run=dry_run)
    if json:
        print_json(
            {"repo": repo, "url": pushed.url, "files": pushed.files, "bytes": sum(pushed.files.values())}
        )
    elif pushed.url is None:
        stdout.print(pushed.table())
    else:
        stdout.print(pushed.url, markup=False)
    if pushed.url is not None:
        next_step("read it from anywhere", ["pairs", "audit", repo], quiet=quiet)
