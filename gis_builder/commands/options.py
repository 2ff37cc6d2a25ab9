"""Flags that several commands of `gis` share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_SERVER, _PAIRS, _RUN = "Server", "Pairs", "Run"

Repos = Annotated[
    str,
    typer.Option(
        "--repos", "-r", metavar="FILE|NAMES", help="owner/name,owner/name, or a file with one per line."
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The dataset's folder.")]
Work = Annotated[
    Path | None,
    typer.Option("--work", "-w", metavar="DIR", help="The crawl's folder. [default: OUT.work]"),
]
WorkOnly = Annotated[Path, typer.Option("--work", "-w", metavar="DIR", help="The crawl's folder.")]
Strategy = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="search: likely duplicates; sweep: every issue and comment. [default: search]"
    ),
]
ApiUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="The server's root. [default: https://api.github.com]", rich_help_panel=_SERVER
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Tokens, one per line, instead of GITHUB_TOKEN.", rich_help_panel=_SERVER
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", metavar="N", help="Decides every random choice. [default: 42]", rich_help_panel=_RUN
    ),
]
Split = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        help="train, validation, test: shares or numbers of pairs. [default: the papers' shares]",
        rich_help_panel=_PAIRS,
    ),
]
Relations = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="duplicate, same, reported, superseded, tracked, part-of; or all. [default: duplicate]",
        rich_help_panel=_PAIRS,
    ),
]
Negatives = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="random, hard (BM25) or mixed. [default: random]", rich_help_panel=_PAIRS
    ),
]
Match = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What negatives share with positives: time, template (headings, too) or none. [default: time]",
        rich_help_panel=_PAIRS,
    ),
]
Ratio = Annotated[
    float | None,
    typer.Option(metavar="X", help="Negatives for each positive. [default: 0.96]", rich_help_panel=_PAIRS),
]
AllPairs = Annotated[
    bool | None,
    typer.Option(
        "--all-within-cluster/--edges-only",
        help="Pairs of all issues of a cluster, or of duplicate and original only. [default: edges-only]",
        rich_help_panel=_PAIRS,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Settings in TOML.", rich_help_panel=_RUN),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="One setting, such as pair.cluster_cap=10; repeatable.",
        rich_help_panel=_RUN,
    ),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Replace a dataset made with other settings.", rich_help_panel=_RUN)
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Estimate the cost of the crawl and stop.", rich_help_panel=_RUN)
]
Json = Annotated[
    bool, typer.Option("--json", help="End with one JSON object on stdout.", rich_help_panel=_RUN)
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.", rich_help_panel=_RUN)
]
