"""Commands of `gis` that make datasets: build, detect, pair, demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gis_builder._commands import options as o
from gis_builder._commands.app import app, examples
from gis_builder._commands.results import show_built, show_plan
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json


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
    api: o.Api = None,
    api_url: o.ApiUrl = None,
    token_file: o.TokenFile = None,
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
    dry_run: o.DryRun = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Crawl, detect duplicates, make pairs, split, write and audit a dataset. Run it again to go on."""
    from gis_builder._build import build as build_dataset
    from gis_builder._repos import read_repos
    from gis_builder._session import Crawler
    from pairkit.folders import work_beside

    settings = o.merged_settings(
        config,
        sets,
        seed,
        strategy,
        api,
        api_url,
        split=split,
        relations=relations,
        negatives=negatives,
        match=match,
        ratio=ratio,
        all_pairs=all_within_cluster,
    )
    names = read_repos(repos)
    if dry_run:
        show_plan(names, settings, token_file, json=json, quiet=quiet)
        return
    with Crawler(settings, token_file, quiet=quiet) as crawler:
        built = build_dataset(
            names,
            out,
            work or work_beside(out),
            settings,
            crawler.open,
            crawler.say,
            fresh=fresh,
        )
    show_built(built, as_json=json, quiet=quiet)


@app.command(
    epilog=examples("gis detect --work gis.work", "gis detect --work gis.work --explain rust-lang/rust#8051")
)
def detect(
    work: o.WorkOnly,
    *,
    explain: Annotated[
        str | None,
        typer.Option("--explain", help="Show one thread's evidence and verdict: owner/name#number."),
    ] = None,
    config: o.Config = None,
    sets: o.Sets = None,
    json: o.Json = False,
) -> None:
    """Decide for every fetched thread whether it was closed as a duplicate; writes WORK/verdicts.parquet."""
    from gis_builder._detection import detect as detect_duplicates
    from gis_builder._detection import explain_thread
    from gis_builder._folders import STORE_FILE, working_folder
    from gis_builder._store import Store
    from gis_builder._summary import verdicts_table
    from gis_builder._verdicts import FILE, count_verdicts

    settings = o.merged_settings(config, sets)
    if explain is not None:
        with Store.open(work / STORE_FILE) as store:
            stdout.print(explain_thread(store, explain, settings.detect)[1], markup=False)
        return
    with working_folder(work, create=False), Store.open(work / STORE_FILE) as store:
        detect_duplicates(store, work / FILE, store.repos(), settings.detect)
    counts = count_verdicts(work / FILE)
    if json:
        print_json({"out": str(work / FILE), **counts})
    else:
        stdout.print(verdicts_table(counts))


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
    from gis_builder._build import pair as pair_dataset

    settings = o.merged_settings(
        *(config, sets, seed),
        split=split,
        relations=relations,
        negatives=negatives,
        match=match,
        ratio=ratio,
        all_pairs=all_within_cluster,
    )
    built = pair_dataset(out, work, settings, fresh=fresh)
    show_built(built, as_json=json, quiet=quiet)


@app.command(epilog=examples("gis demo --out demo"))
def demo(
    *,
    out: o.Out = Path("demo"),
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Build a dataset of the sample tracker over HTTP from a local emulator: no token, no network."""
    from gis_builder._demo import run_demo

    built = run_demo(out, quiet=quiet)
    show_built(built, as_json=json, quiet=quiet)
