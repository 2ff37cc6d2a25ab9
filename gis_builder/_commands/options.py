"""Flags that several commands of `gis` share, each defined once, and the settings that they make."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gis_builder._settings import BuildSettings

Repos = Annotated[
    str, typer.Option("--repos", "-r", help="A file with one owner/name a line, or owner/name,owner/name.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The dataset's folder.")]
Work = Annotated[
    Path | None, typer.Option("--work", "-w", help="Folder of store and verdicts. [default: OUT.work]")
]
WorkOnly = Annotated[Path, typer.Option("--work", "-w", help="Folder of store and verdicts.")]
Strategy = Annotated[
    str | None, typer.Option(help="search: likely duplicates only [default]; sweep: every issue and comment.")
]
Api = Annotated[
    str | None, typer.Option("--api", help="graphql [default]; rest, for servers without GraphQL.")
]
ApiUrl = Annotated[
    str | None, typer.Option("--api-url", help="The server's root. [default: https://api.github.com]")
]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="A file with one token a line, instead of GITHUB_TOKEN.")
]
Seed = Annotated[int | None, typer.Option("--seed", help="Decides every random choice. [default: 42]")]
Split = Annotated[
    str | None,
    typer.Option(
        "--split", help="train,validation,test as shares or exact numbers of pairs. [default: the papers']"
    ),
]
Relations = Annotated[
    str | None,
    typer.Option(
        "--relations",
        help="Pairs of which relations become positives: duplicate [default], same, reported, superseded, "
        "tracked, part-of, with commas between them; or all.",
    ),
]
Negatives = Annotated[
    str | None, typer.Option("--negatives", help="random, as in the papers [default]; hard (BM25); mixed.")
]
Match = Annotated[
    str | None,
    typer.Option(
        "--match",
        help="What negatives share with positives: time, the gap between the issues' openings [default]; "
        "template, headings besides; none, as in the papers.",
    ),
]
Ratio = Annotated[
    float | None, typer.Option("--ratio", help="Negatives for each positive. [default: the papers' 0.96]")
]
AllPairs = Annotated[
    bool | None,
    typer.Option(
        "--all-within-cluster/--edges-only",
        help="Every two issues of a cluster, or (duplicate, canonical) only.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="A TOML file with settings that differ from the defaults."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="One setting, such as --set pair.negatives=hard; repeatable."),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Replace a dataset made with other settings.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Price the crawl and stop.")]
Json = Annotated[bool, typer.Option("--json", help="End with one JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")]


def merged_settings(
    config: Path | None = None,
    sets: list[str] | None = None,
    seed: int | None = None,
    strategy: str | None = None,
    api: str | None = None,
    api_url: str | None = None,
    *,
    split: str | None = None,
    relations: str | None = None,
    negatives: str | None = None,
    match: str | None = None,
    ratio: float | None = None,
    all_pairs: bool | None = None,
) -> BuildSettings:
    """Defaults < file < --set < flags; a flag that was not given is None.

    Raises:
        ConfigError: names the flag or key, what was found and what was expected.
    """
    from gis_builder._settings import BuildSettings
    from pairkit.config import load_settings

    flags: dict[str, Any] = {
        "seed": seed,
        "api": api,
        "crawl.strategy": strategy,
        "crawl.api_url": api_url,
        "split.sizes": split,
        "pair.relations": relations,
        "pair.negatives": negatives,
        "pair.match": match,
        "pair.ratio": ratio,
        "pair.all_within_cluster": all_pairs,
    }
    return load_settings(BuildSettings, file=config, assignments=sets or (), flags=flags)
