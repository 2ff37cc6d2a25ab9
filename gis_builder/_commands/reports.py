"""The command of `gis` that describes a dataset: report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gis_builder._commands import options as o
from gis_builder._commands.app import app, examples
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json, say

if TYPE_CHECKING:
    from rich.table import Table

    from gis_builder._report import Report

# Counts that are no whole numbers: what the table calls them, and how it writes them.
_FORMS = {"long_share": ("> 512 tokens", ".0%"), "gap_auc": ("AUC of the gap in time", ".4f")}


@app.command(
    epilog=examples(
        "gis report gis-dataset",
        "gis report pairs.tsv --out about-pairs --seed 7",
        "gis report nli.tsv --labels entailment=1,neutral=0,contradiction=0",
    )
)
def report(
    dataset: o.Dataset,
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The report's folder. [default: DATASET.report]")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Chooses the sample pairs.")] = 42,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Describe a dataset: counts, lengths, overlap, what was dropped, samples; figures and a page to open."""
    from gis_builder._report import make_report

    made = make_report(o.read_dataset(dataset, columns, labels), out, seed=seed, quiet=quiet)
    if json:
        print_json({"out": str(made.out), "page": str(made.page), **made.counts})
        return
    stdout.print(_table(made))
    say(f"open {made.page} in a browser", quiet=quiet)


def _table(made: Report) -> Table:
    """The counts by split, as the page begins with them."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    splits = made.counts["splits"]
    table = Table(box=box.SIMPLE_HEAD, title=Text(str(made.page)), title_justify="left")
    table.add_column("pairs")
    for name in splits:
        table.add_column(Text(name), justify="right")
    for key in next(iter(splits.values())):
        name, form = _FORMS.get(key, (key.replace("_", " "), ","))
        values = [split[key] for split in splits.values()]
        table.add_row(name, *("–" if value is None else f"{value:{form}}" for value in values))
    return table
