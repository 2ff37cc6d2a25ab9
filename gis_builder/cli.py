"""The `gis` command: flags -> settings -> one call -> one summary. Heavy imports stay inside the commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gis_builder import options as o
from pairkit import __version__
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json, run, say

if TYPE_CHECKING:
    from gis_builder.build import Built
    from gis_builder.session import Crawler
    from gis_builder.settings import BuildSettings
    from gis_builder.store import RepoRow, Store

app = typer.Typer(
    name="gis",
    help="From duplicate GitHub issues to a leak-free dataset of text pairs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with local variables could show a token
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
)


def main() -> None:
    """Run the command line; see `pairkit.terminal.run` for the exit codes."""
    run(app)


@app.callback(invoke_without_command=True)
def _root(*, version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        typer.echo(f"gis (aoe-toolkit {__version__})")
        raise typer.Exit


def _examples(*lines: str) -> str:
    return "Examples:\n\n" + "\n\n".join(f"`{line}`" for line in lines)


@app.command(
    epilog=_examples(
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
    negatives: o.Negatives = None,
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
    from gis_builder.build import build as build_dataset
    from gis_builder.repos import read_repos

    settings = _settings(
        config,
        sets,
        seed,
        strategy,
        api,
        api_url,
        split=split,
        negatives=negatives,
        ratio=ratio,
        all_pairs=all_within_cluster,
    )
    names = read_repos(repos)
    if dry_run:
        _plan(names, settings, token_file, json=json, quiet=quiet)
        return
    with _crawler(settings, token_file, quiet=quiet) as crawler:
        built = build_dataset(
            names,
            out,
            work or out.with_name(out.name + ".work"),
            settings,
            crawler.open,
            crawler.say,
            fresh=fresh,
        )
    _show_built(built, as_json=json, quiet=quiet)


@app.command(
    epilog=_examples("gis plan --repos repos.txt", "gis plan --repos repos.txt --strategy sweep --json")
)
def plan(
    repos: o.Repos,
    *,
    strategy: o.Strategy = None,
    api: o.Api = None,
    api_url: o.ApiUrl = None,
    token_file: o.TokenFile = None,
    config: o.Config = None,
    sets: o.Sets = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Price a crawl by repository: points, requests, hours a token. Costs a point for 25 repositories."""
    from gis_builder.repos import read_repos

    settings = _settings(config, sets, None, strategy, api, api_url)
    _plan(read_repos(repos), settings, token_file, json=json, quiet=quiet)


@app.command(
    epilog=_examples(
        "gis crawl --repos repos.txt --work gis.work",
        "gis crawl --repos repos.txt --work gis.work --update",
        "gis crawl --repos repos.txt --work gis.work --archive 2025-01-01-0.json.gz",
    )
)
def crawl(
    repos: o.Repos,
    work: o.WorkOnly,
    *,
    update: Annotated[bool, typer.Option("--update", help="Bring a finished crawl up to date.")] = False,
    archive: Annotated[
        list[Path] | None,
        typer.Option("--archive", help="Hours of GH Archive that propose candidates; repeatable."),
    ] = None,
    strategy: o.Strategy = None,
    api: o.Api = None,
    api_url: o.ApiUrl = None,
    token_file: o.TokenFile = None,
    seed: o.Seed = None,
    config: o.Config = None,
    sets: o.Sets = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Only fetch, into WORK/store.sqlite. Run it again to go on."""
    from gis_builder import crawl as use_case
    from gis_builder.build import STORE_FILE, working_folder
    from gis_builder.repos import read_repos
    from gis_builder.store import Store

    settings = _settings(config, sets, seed, strategy, api, api_url)
    names = read_repos(repos)
    with (
        _crawler(settings, token_file, quiet=quiet) as crawler,
        working_folder(work),
        Store.open(work / STORE_FILE, create=True) as store,
    ):
        with crawler.open(store) as github:
            if archive:
                rows = use_case.crawl_archive(github, store, names, archive, settings, crawler.say)
            else:
                fetch = use_case.update if update else use_case.crawl
                rows = fetch(github, store, names, settings)
        _show_crawled(store, rows, as_json=json, quiet=quiet)
    if failed := use_case.failures(rows):
        raise failed


@app.command(name="import", epilog=_examples("gis import saved-tracker --work gis.work"))
def import_(
    dump: Annotated[Path, typer.Argument(help="A folder with saved trackers; see `gis_builder/dump.py`.")],
    work: o.WorkOnly,
    *,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fill WORK/store.sqlite from a saved tracker instead of a server."""
    from gis_builder.build import STORE_FILE, working_folder
    from gis_builder.crawl import import_tracker
    from gis_builder.store import Store

    with working_folder(work), Store.open(work / STORE_FILE, create=True) as store:
        rows = import_tracker(store, dump, lambda words: say(words, quiet=quiet))
        _show_crawled(store, rows, as_json=json, quiet=quiet)


@app.command(epilog=_examples("gis status --work gis.work"))
def status(work: o.WorkOnly, *, json: o.Json = False) -> None:
    """Show how far a crawl is: issues by repository, points used and left, time to go."""
    from gis_builder.build import STORE_FILE
    from gis_builder.status import read_status, status_table
    from gis_builder.store import Store

    with Store.open(work / STORE_FILE) as store:
        found = read_status(store)
    if json:
        print_json(found.to_dict())
    else:
        stdout.print(status_table(found))


@app.command(
    epilog=_examples("gis detect --work gis.work", "gis detect --work gis.work --explain rust-lang/rust#8051")
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
    from gis_builder.build import STORE_FILE
    from gis_builder.store import Store
    from gis_builder.summary import verdicts_table
    from gis_builder.verdicts import FILE, count_verdicts, explain_thread, judge, write_verdicts

    settings = _settings(config, sets)
    with Store.open(work / STORE_FILE) as store:
        if explain is not None:
            stdout.print(explain_thread(store, explain, settings.detect), markup=False)
            return
        homes = sorted({row.full_name for row in store.repos() if row.is_crawlable})
        write_verdicts(work / FILE, judge(store, homes, settings.detect))
    counts = count_verdicts(work / FILE)
    if json:
        print_json({"out": str(work / FILE), **counts})
    else:
        stdout.print(verdicts_table(counts))


@app.command(
    epilog=_examples(
        "gis pair --work gis.work --out gis", "gis pair --work gis.work --out hard --negatives hard"
    )
)
def pair(
    work: o.WorkOnly,
    *,
    out: o.Out = Path("gis-dataset"),
    split: o.Split = None,
    negatives: o.Negatives = None,
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
    from gis_builder.build import pair as pair_dataset

    settings = _settings(
        config, sets, seed, split=split, negatives=negatives, ratio=ratio, all_pairs=all_within_cluster
    )
    built = pair_dataset(out, work, settings, fresh=fresh)
    _show_built(built, as_json=json, quiet=quiet)


@app.command(epilog=_examples("gis audit gis-dataset", "gis audit WhereIsAI/github-issue-similarity"))
def audit(
    dataset: o.Dataset,
    *,
    json: o.Json = False,
) -> None:
    """Look for leaks between splits, contradictions, repeats and empty texts; exit code 3 if it leaks."""
    from gis_builder.audit import audit as audit_pairs
    from pairkit.errors import LeakError
    from pairkit.reader import read_pairs

    report = audit_pairs(read_pairs(dataset, check=False))
    if json:
        print_json(report.to_dict())
    else:
        stdout.print(report.to_text(), markup=False)
    if report.leaks:
        raise LeakError("leaks between splits: " + ", ".join(report.leaks), path=dataset)


@app.command(epilog=_examples("gis export gis-dataset --format jsonl --out gis-jsonl"))
def export(
    dataset: o.Dataset,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder; each split becomes a file in it.")],
    file_format: Annotated[str, typer.Option("--format", help="jsonl or csv.")] = "jsonl",
) -> None:
    """Write a dataset as JSON lines or CSV."""
    from pairkit.errors import ConfigError
    from pairkit.reader import read_pairs
    from pairkit.records import export_pairs

    if file_format not in ("jsonl", "csv"):
        raise ConfigError(f"--format {file_format}: expected jsonl or csv")
    for path in export_pairs(read_pairs(dataset), out, "csv" if file_format == "csv" else "jsonl"):
        stdout.print(str(path), markup=False)


@app.command(
    epilog=_examples("gis show gis-dataset", "gis show gis-dataset --row 3 --label 0 --svg pair.svg")
)
def show(
    dataset: o.Dataset,
    *,
    split: Annotated[str, typer.Option("--split", help="train, validation or test.")] = "test",
    row: Annotated[int, typer.Option("--row", help="Which of them, from 0.")] = 0,
    label: Annotated[int | None, typer.Option("--label", help="Only pairs with this label.")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="Save the picture as SVG, too.")] = None,
) -> None:
    """Show one pair side by side, the words that both texts share marked."""
    from gis_builder.show import pick_pair, print_pair, save_svg
    from pairkit.reader import read_pairs

    picked = pick_pair(read_pairs(dataset), split, row, label)
    print_pair(stdout, picked)
    if svg is not None:
        save_svg(svg, picked)


@app.command(
    epilog=_examples(
        "gis emulate data/sample --port 8000", "gis emulate dump --port 8000 --faults plan.toml --latency 0.2"
    )
)
def emulate(
    dump: Annotated[
        list[Path], typer.Argument(help="Folders with saved trackers; see `gis_builder/dump.py`.")
    ],
    *,
    host: Annotated[str, typer.Option("--host", help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", help="Port; 0 takes any free one.")] = 8000,
    faults: Annotated[Path | None, typer.Option("--faults", help="TOML plan of what goes wrong.")] = None,
    latency: Annotated[float, typer.Option("--latency", help="Seconds each answer takes at least.")] = 0.0,
    replicate: Annotated[
        int, typer.Option("--replicate", help="Serve each repository so often, under further names.")
    ] = 1,
    points: Annotated[int, typer.Option("--points", help="Points a token has in a window.")] = 5000,
    window: Annotated[float, typer.Option("--window", help="Seconds of a window.")] = 3600.0,
) -> None:
    """Serve saved trackers as a local GitHub, over GraphQL and REST. Any token will do but `bad`."""
    from gis_builder.emulator import Options
    from gis_builder.emulator import run as serve_forever

    serve_forever(
        dump,
        host=host,
        port=port,
        faults=faults,
        latency_s=latency,
        replicate=replicate,
        options=Options(points=points, window_s=window),
        announce=lambda server: stdout.print(f"a local GitHub at {server.url} (Ctrl-C ends it)"),
    )


@app.command(epilog=_examples("gis demo --out demo"))
def demo(
    *,
    out: o.Out = Path("demo"),
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Build a dataset of the sample tracker over HTTP from a local emulator: no token, no network."""
    from gis_builder.demo import run_demo

    built = run_demo(out, quiet=quiet)
    _show_built(built, as_json=json, quiet=quiet)


def _settings(
    config: Path | None = None,
    sets: list[str] | None = None,
    seed: int | None = None,
    strategy: str | None = None,
    api: str | None = None,
    api_url: str | None = None,
    *,
    split: str | None = None,
    negatives: str | None = None,
    ratio: float | None = None,
    all_pairs: bool | None = None,
) -> BuildSettings:
    from gis_builder.settings import BuildSettings
    from pairkit.config import load_settings

    flags: dict[str, Any] = {
        "seed": seed,
        "api": api,
        "crawl.strategy": strategy,
        "crawl.api_url": api_url,
        "split.sizes": split,
        "pair.negatives": negatives,
        "pair.ratio": ratio,
        "pair.all_within_cluster": all_pairs,
    }
    return load_settings(BuildSettings, file=config, assignments=sets or (), flags=flags)


def _plan(
    names: list[str], settings: BuildSettings, token_file: Path | None, *, json: bool, quiet: bool
) -> None:
    from gis_builder.plan import plan as plan_crawl
    from gis_builder.plan import plan_table

    with _crawler(settings, token_file, quiet=quiet) as crawler:
        planned = plan_crawl(names, settings, crawler.open)
    if json:
        print_json(planned.to_dict())
    else:
        stdout.print(plan_table(planned))


def _crawler(settings: BuildSettings, token_file: Path | None, *, quiet: bool) -> Crawler:
    from gis_builder.session import Crawler

    return Crawler(settings, token_file, quiet=quiet)


def _show_crawled(store: Store, rows: Sequence[RepoRow], *, as_json: bool, quiet: bool) -> None:
    from gis_builder.status import crawl_summary
    from gis_builder.summary import outcome_lines, spent_line

    for line in [*outcome_lines(rows), spent_line(store)]:
        say(line, quiet=quiet)
    if as_json:
        print_json(crawl_summary(store, rows))


def _show_built(built: Built, *, as_json: bool, quiet: bool) -> None:
    """With --json the one object on stdout; else the table of counts there. Notes go to stderr either way."""
    from gis_builder.summary import counts_table, drop_lines, outcome_lines

    for line in [*outcome_lines(built.rows), *drop_lines(built.statistics)]:
        say(line, quiet=quiet)
    say(
        f"{built.usage.points:,} points in {built.usage.requests:,} requests, "
        f"{built.points_per_100_positives:.1f} points for 100 positives; audit: no leaks",
        quiet=quiet,
    )
    if as_json:
        print_json(built.summary())
    else:
        stdout.print(counts_table(built))
        say(f'load it with datasets.load_dataset("{built.out}")', quiet=quiet)
