"""Commands of `pairs` by which people judge a dataset: review, apply."""

from __future__ import annotations

from typing import Annotated

import typer

import pairkit
from pairkit.app.application import columns_given
from pairkit.app.settings import between_commas
from pairkit.app.terminal import next_step, print_json, say
from pairkit.app.terminal import out as stdout
from pairkit.commands import options as o
from pairkit.commands.options import app, examples, show_made

_SAMPLE = "Sample (of a new review)"
_PEOPLE = "People"


@app.command(
    epilog=examples(
        "pairs review gis-dataset",
        "pairs review gis-dataset --n 200 --reviewer ann,bob",
        "pairs review gis-dataset --report --card",
    )
)
def review(
    dataset: o.Dataset,
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    label_range: o.LabelRange = None,
    store: o.Store = None,
    n: Annotated[
        int | None,
        typer.Option("--n", metavar="N", rich_help_panel=_SAMPLE, help="How many pairs. [default: a tenth]"),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option("--share", metavar="X", rich_help_panel=_SAMPLE, help="Which share. [default: 0.1]"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", rich_help_panel=_SAMPLE, help="Decides which. [default: 42]"),
    ] = None,
    strata: Annotated[
        str | None,
        typer.Option(
            "--strata",
            metavar="A,B,…",
            rich_help_panel=_SAMPLE,
            help="What strata differ in, such as label,split.",
        ),
    ] = None,
    each: Annotated[
        int | None,
        typer.Option(
            "--each",
            metavar="N",
            rich_help_panel=_SAMPLE,
            help="How many people judge a pair. [default: all]",
        ),
    ] = None,
    grades: Annotated[
        bool | None,
        typer.Option(
            "--grades/--yes-no",
            rich_help_panel=_SAMPLE,
            help="Ask for grades of 0 to 5. [default: if labels are scores]",
        ),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option("--question", metavar="TEXT", rich_help_panel=_SAMPLE, help="What people are asked."),
    ] = None,
    reviewer: Annotated[
        str | None,
        typer.Option(
            "--reviewer",
            metavar="NAME,…",
            rich_help_panel=_PEOPLE,
            help="Who judges; each gets a link. [default: your login's name]",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            "-p",
            metavar="N",
            rich_help_panel=_PEOPLE,
            help="Port of the page. [default: 8750, or a free one]",
        ),
    ] = None,
    report: Annotated[
        bool,
        typer.Option("--report", rich_help_panel="Output", help="Serve nothing; say what was found so far."),
    ] = False,
    card: Annotated[
        bool,
        typer.Option("--card", rich_help_panel="Output", help="Put the report into the dataset's card, too."),
    ] = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Have people judge a sample of pairs in a browser, blind; then say how right the labels are.

    Each answer is saved at once. Ctrl-C ends the page's server, and the same command continues.
    """
    found = pairkit.review(
        dataset,
        store,
        n=n,
        share=share,
        seed=seed,
        strata=None if strata is None else between_commas(strata),
        each=each,
        grades=grades,
        question=question,
        columns=columns_given(columns),
        labels=labels,
        label_range=label_range,
    )
    if report or card:
        _report(found, dataset, card=card, json=json)
        return
    names = reviewer.split(",") if reviewer else None
    with found.serve(names, port=port) as server:
        if json:
            print_json({"store": str(found.path), "url": server.url, "links": server.links})
        else:
            for name, link in server.links.items():
                stdout.print(f"{name}  {link}", markup=False)
        say("every answer is saved at once; a link is one person's own (Ctrl-C ends the server)", quiet=quiet)
        next_step("see what was found", ["pairs", "review", dataset, "--report"], quiet=quiet)
        server.wait()


def _report(found: pairkit.Review, dataset: str, *, card: bool, json: bool) -> None:
    told = found.report()
    if card:
        told.save_card(dataset)
    if json:
        print_json(told.to_dict())
    else:
        for place, table in enumerate(told.tables()):
            if place:
                stdout.print()
            stdout.print(table)


@app.command(
    epilog=examples(
        "pairs apply gis-dataset --out checked", "pairs apply gis-dataset --relabel --out relabelled"
    )
)
def apply(
    dataset: o.Dataset,
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    label_range: o.LabelRange = None,
    store: o.Store = None,
    relabel: Annotated[
        bool, typer.Option("--relabel", help="Give people's labels to the pairs that they rejected.")
    ] = False,
    drop_unsure: Annotated[
        bool, typer.Option("--drop-unsure", help="Leave out also what people can't tell or dispute.")
    ] = False,
    out: o.Out,
    dropped: o.Dropped = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Make the dataset without the pairs whose label people rejected, or with people's labels."""
    made = pairkit.apply(
        dataset,
        out,
        store=store,
        relabel=relabel,
        drop_unsure=drop_unsure,
        columns=columns_given(columns),
        labels=labels,
        label_range=label_range,
        fresh=fresh,
    )
    show_made(made, dropped, json=json, quiet=quiet)
