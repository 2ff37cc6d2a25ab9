"""The command of `gis` that names older issues which an issue may repeat: suggest."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import gis_builder
from gis_builder._commands import options as o
from gis_builder._commands.app import app, examples
from pairkit.errors import ConfigError
from pairkit.terminal import next_step, print_json, say
from pairkit.terminal import out as stdout

_MOST_BYTES = 1 << 20  # of a new issue's body
_WRITE, _BACKTEST = "Comment or label", "Backtest"


@app.command(
    epilog=examples(
        "gis suggest --repo owner/name --issue 123 --index index",
        "gis suggest --repo owner/name --issue 123 --index index --calibration calibration.json --comment",
        "gis suggest --repo owner/name --new --title 'Crash on save' --body-file body.md --index index",
        "gis suggest --backtest hits.parquet --work gis.work --out backtest",
    )
)
def suggest(
    *,
    repo: Annotated[str | None, typer.Option(metavar="OWNER/NAME", help="The repository.")] = None,
    issue: Annotated[int | None, typer.Option(metavar="N", help="The issue's number.", min=1)] = None,
    new: Annotated[bool, typer.Option("--new", help="An issue that is not written yet.")] = False,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Its title.")] = None,
    body_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its body; - reads it from stdin.")
    ] = None,
    index: Annotated[
        Path | None, typer.Option(metavar="INDEX", help="What `aoe index` made of `gis render`'s table.")
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="An `aoe serve` with such an index, instead.")
    ] = None,
    server_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The environment variable with the server's key.")
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What --backtest learnt: calibration.json.")
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", help="Suggestions at most.", min=1, max=50)] = 5,
    least: Annotated[
        float,
        typer.Option(
            metavar="X", help="The lowest probability that something is written at.", rich_help_panel=_WRITE
        ),
    ] = 0.9,
    comment: Annotated[
        bool, typer.Option("--comment", help="Write a comment, once.", rich_help_panel=_WRITE)
    ] = False,
    label: Annotated[
        str | None, typer.Option(metavar="NAME", help="Put on a label, once.", rich_help_panel=_WRITE)
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run/--no-dry-run", help="Say what would be written, or write it.", rich_help_panel=_WRITE
        ),
    ] = True,
    backtest: Annotated[
        Path | None,
        typer.Option(
            metavar="HITS",
            help="Replay a tracker's past from what `aoe search --every --before created_at` found.",
            rich_help_panel=_BACKTEST,
        ),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            "--work",
            "-w",
            metavar="DIR",
            help="The crawl's folder, with verdicts.",
            rich_help_panel=_BACKTEST,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Where the backtest goes. [default: backtest]",
            rich_help_panel=_BACKTEST,
        ),
    ] = None,
    learn: Annotated[
        float,
        typer.Option(metavar="X", help="The share of issues to learn on.", rich_help_panel=_BACKTEST),
    ] = 0.5,
    relations: o.Relations = None,
    api_url: o.ApiUrl = None,
    token_file: o.TokenFile = None,
    config: o.Config = None,
    sets: o.Sets = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Name older issues that an issue may repeat, and perhaps tell its reporter.

    Writes nothing without --no-dry-run, and nothing twice: a comment of it is known again by a hidden mark.
    """
    if backtest is not None:
        _backtest(
            backtest,
            work,
            out,
            learn,
            relations,
            config=config,
            sets=sets,
            others=(repo, issue, title, body_file, index, server, calibration, label, comment or None),
            as_json=json,
            quiet=quiet,
        )
        return
    is_new = title is not None
    if repo is None or work is not None or out is not None or new != is_new or (body_file and not is_new):
        raise ConfigError(
            "expected --repo with --issue N or --new --title TEXT; or --backtest HITS with --work DIR"
        )
    found = gis_builder.suggest(
        repo,
        issue,
        title=title,
        body="" if body_file is None else _read_body(body_file),
        index=index,
        server=server,
        server_key="" if server_key_env is None else _key(server_key_env),
        calibration=calibration,
        top=top,
        least=least,
        comment=comment,
        label=label,
        dry_run=dry_run,
        api_url=api_url,
        token_file=token_file,
        config=config,
        settings=sets,
        progress=not quiet,
    )
    for line in found.notes():
        say(line, quiet=quiet)
    if json:
        print_json(found.to_dict())
        return
    if found.suggestions:
        stdout.print(found.table())
    if found.comment == "would write":
        stdout.print(found.text, markup=False)
    if "would write" in (found.comment, found.label):
        say("--no-dry-run writes it", quiet=quiet)


def _backtest(
    hits: Path,
    work: Path | None,
    out: Path | None,
    learn: float,
    relations: str | None,
    *,
    config: Path | None,
    sets: list[str] | None,
    others: tuple[object, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    if work is None or any(other is not None for other in others):
        raise ConfigError("--backtest: expected --work DIR, and nothing of an issue, its search or a comment")
    done = gis_builder.backtest(
        hits, work, out or Path("backtest"), relations=relations, learn=learn, config=config, settings=sets
    )
    for line in done.notes():
        say(line, quiet=quiet)
    if as_json:
        print_json(done.to_dict())
        return
    stdout.print(done.table())
    command = ["gis", "suggest", "--repo", "NAME", "--issue", "N", "--index", "DIR"]
    next_step("use it", [*command, "--calibration", done.out / "calibration.json", "--comment"], quiet=quiet)


def _read_body(path: Path) -> str:
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with path.open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: can't be read ({error.strerror}); give another file") from error
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"{path}: more than {_MOST_BYTES >> 20} MiB, which no issue has")
    return data.decode("utf-8", "replace")


def _key(name: str) -> str:
    from pairkit.openai_api.credentials import find_key

    remedy = f"{name}: no such environment variable; set it"
    return find_key("--server-key-env", name, os.environ, remedy).secret
