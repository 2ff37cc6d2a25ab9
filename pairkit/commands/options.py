"""Flags that several commands of `pairs` share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import pairkit
from pairkit.app.application import application, examples
from pairkit.app.errors import ConfigError
from pairkit.app.terminal import next_step, print_json
from pairkit.app.terminal import out as stdout

__all__ = ["app", "examples"]

app = application(
    "pairs", "Look at, check, join, divide and share datasets of text pairs, whoever made them."
)


Dataset = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        show_default=False,
        help="A folder, a CSV, TSV, JSONL or Parquet file, or a Hub id.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="A=B,…",
        rich_help_panel="Input",
        help="Which column is which, such as text1=title,label=same; 1,2,3 where there is no header line.",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="LABEL=N,…",
        rich_help_panel="Input",
        help="What labels count as, such as 0=1,1=skip,2=0.",
    ),
]
LabelRange = Annotated[
    str | None,
    typer.Option(
        "--label-range",
        metavar="LOW,HIGH",
        rich_help_panel="Input",
        help="The scale of scores, such as 0,100.",
    ),
]
Out = Annotated[
    Path,
    typer.Option("--out", "-o", metavar="DIR", rich_help_panel="Output", help="The dataset's folder."),
]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", rich_help_panel="Output", help="Replace a dataset made with other settings."),
]
Json = Annotated[
    bool, typer.Option("--json", rich_help_panel="Output", help="End with one JSON object on stdout.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", rich_help_panel="Output", help="No progress and no notes on stderr.")
]
Split = Annotated[
    str | None,
    typer.Option("--split", metavar="A,B,C", help="New splits: shares of train, validation and test."),
]
CutNegatives = Annotated[
    bool,
    typer.Option("--cut-negatives", help="Let new splits part negatives, and drop those."),
]
Dropped = Annotated[
    Path | None,
    typer.Option(
        "--dropped",
        metavar="FILE",
        rich_help_panel="Output",
        help="Write the rows that were left out, as Parquet.",
    ),
]
Store = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        rich_help_panel="Input",
        help="The review's file. [default: DATASET.review]",
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Decides every random choice.")]


def shares(text: str | None) -> list[float] | None:
    """What `--split` says."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--split {text}: expected three numbers, such as 0.8,0.1,0.1") from None


def show_made(made: pairkit.MadeDataset, dropped: Path | None, *, json: bool, quiet: bool) -> None:
    """Show what is in it and what was left out, and say what one may do with it."""
    if dropped is not None:
        made.save_dropped(dropped)
    if json:
        print_json({"out": str(made.out), **made.statistics})
    else:
        stdout.print(made.table())
    command = ["aoe", "train", "--data", made.out or "", "--backbone", "minilm", "--out", "model"]
    next_step("train on it", command, quiet=quiet)
