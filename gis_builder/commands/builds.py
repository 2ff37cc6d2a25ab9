"""Commands of `gis` that make datasets: build, detect, pair, demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import gis_builder
from gis_builder.commands import options as o
from gis_builder.commands.app import app, examples, show_built, show_plan, tell_to_train
from pairkit.app.terminal import next_step, print_json
from pairkit.app.terminal import out as stdout


@app.command(
    epilog=examples(
        "gis build --repos rust-lang/rust --out rust",
        "gis build --repos repos.txt --out gis --strategy sweep --negatives mixed --seed 7",
        "gis build --repos repos.txt --out gis --split 18565,1547,1548",
    )
)
def build(
    repos: o.Repos,
    *,
    out: o.Out = Path("gis-dataset"),
    work: o.Work = None,
    strategy: o.Strategy = None,
    split: o.Split = None,
    relations: o.Relations = None,
    negatives: o.Negatives = None,
    match: o.Match = None,
    ratio: o.Ratio = None,
    all_within_cluster: o.AllPairs = None,
    api_url: o.ApiUrl = None,
    token_file: o.TokenFile = None,
    seed: o.Seed = None,
    config: o.Config = None,
    sets: o.Sets = None,
    dry_run: o.DryRun = False,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Crawl, detect duplicates, make pairs, split, write and audit. Run it again to continue."""
    common: dict[str, Any] = {
        "strategy": strategy,
        "api_url": api_url,
        "token_file": token_file,
        "split": split,
        "relations": relations,
        "negatives": negatives,
        "match": match,
        "ratio": ratio,
        "all_within_cluster": all_within_cluster,
        "seed": seed,
        "config": config,
        "settings": sets,
        "progress": not quiet,
    }
    if dry_run:
        show_plan(gis_builder.plan(repos, **common), repos, as_json=json, quiet=quiet)
        return
    built = gis_builder.build(repos, out, work=work, fresh=fresh, **common)
    show_built(built, as_json=json, quiet=quiet)
    tell_to_train(built, quiet=json or quiet)


@app.command(
    epilog=examples("gis detect --work gis.work", "gis detect --work gis.work --explain rust-lang/rust#8051")
)
def detect(
    work: o.WorkOnly,
    *,
    explain: Annotated[
        str | None,
        typer.Option(metavar="ISSUE", help="Only show the evidence on one issue, owner/name#number."),
    ] = None,
    config: o.Config = None,
    sets: o.Sets = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Decide for every fetched thread whether it was closed as a duplicate.

    Writes WORK/verdicts.parquet. A thread is judged again only if it or what its verdict rests on changed.
    """
    if explain is not None:
        stdout.print(gis_builder.explain(work, explain, config=config, settings=sets).text, markup=False)
        return
    detected = gis_builder.detect(work, config=config, settings=sets, progress=not quiet)
    if json:
        print_json(detected.to_dict())
        return
    stdout.print(detected.table())
    next_step(
        "make a dataset from them", ["gis", "pair", "--work", work, "--out", "gis-dataset"], quiet=quiet
    )


@app.command(
    epilog=examples(
        "gis pair --work gis.work --out gis", "gis pair --work gis.work --out hard --negatives hard"
    )
)
def pair(
    work: o.WorkOnly,
    *,
    out: o.Out = Path("gis-dataset"),
    split: o.Split = None,
    relations: o.Relations = None,
    negatives: o.Negatives = None,
    match: o.Match = None,
    ratio: o.Ratio = None,
    all_within_cluster: o.AllPairs = None,
    seed: o.Seed = None,
    config: o.Config = None,
    sets: o.Sets = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Make a dataset from a crawl and its verdicts without asking the server for anything."""
    built = gis_builder.pair(
        work,
        out,
        split=split,
        relations=relations,
        negatives=negatives,
        match=match,
        ratio=ratio,
        all_within_cluster=all_within_cluster,
        seed=seed,
        config=config,
        settings=sets,
        fresh=fresh,
        progress=not quiet,
    )
    show_built(built, as_json=json, quiet=quiet)
    tell_to_train(built, quiet=json or quiet)


@app.command(epilog=examples("gis render --work gis.work --out issues.parquet"))
def render(
    work: o.WorkOnly,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The table, a Parquet file.")
    ] = Path("issues.parquet"),
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write the text of every issue of a crawl, for `aoe evaluate --suite duplicates --reports`."""
    rendered = gis_builder.render(work, out, progress=not quiet)
    if json:
        print_json(rendered.to_dict())
        return
    stdout.print(rendered.table())


@app.command(epilog=examples("gis demo --out demo"))
def demo(
    *,
    out: o.Out = Path("demo"),
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Build a dataset from the sample trackers: no token, no network."""
    built = gis_builder.demo(out, progress=not quiet)
    show_built(built, as_json=json, quiet=quiet)
    if not json:
        next_step("look at a pair", ["pairs", "show", out, "--label", "1"], quiet=quiet)
