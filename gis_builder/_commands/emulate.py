"""The command of `gis` that serves saved trackers: emulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import gis_builder
from gis_builder._commands.app import app, examples
from pairkit.terminal import next_step
from pairkit.terminal import out as stdout


@app.command(
    epilog=examples(
        "gis emulate data/sample --port 8000", "gis emulate dump --port 8000 --faults plan.toml --latency 0.2"
    )
)
def emulate(
    dump: Annotated[list[Path], typer.Argument(help="Folders with saved trackers; see gis import --help.")],
    *,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", metavar="N", help="Port to listen on; 0 takes a free one.")
    ] = 8000,
    faults: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TOML file that says what goes wrong.")
    ] = None,
    latency: Annotated[
        float, typer.Option(metavar="SECONDS", help="The least time that an answer takes.")
    ] = 0.0,
    replicate: Annotated[int, typer.Option(metavar="N", help="Serve each repository under N names.")] = 1,
    points: Annotated[int, typer.Option(metavar="N", help="Points of a token in each window.")] = 5000,
    window: Annotated[float, typer.Option(metavar="SECONDS", help="How long a window is.")] = 3600.0,
) -> None:
    """Serve saved trackers as a local GitHub, over GraphQL and REST. Any token but `bad` works.

    Comments and labels can be written over REST, but not by the token `readonly`; they last until it ends.
    """
    with gis_builder.emulate(
        list(dump),
        host=host,
        port=port,
        faults=faults,
        latency=latency,
        replicate=replicate,
        points=points,
        window=window,
    ) as server:
        stdout.print(f"a local GitHub at {server.url} (Ctrl-C ends it)")
        name = server.catalogue.repositories[0].name
        build = f"GITHUB_TOKEN=any gis build --repos {name} --api-url {server.url} --out gis"
        next_step("build a dataset from it, in another terminal", build)
        server.wait()
