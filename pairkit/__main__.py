"""The command line `pairs`, also `python -m pairkit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pairkit.base.cli.options import OUTPUT, Option
from pairkit.base.cli.startup import start
from pairkit.dataset.shared_options import SHARED

if TYPE_CHECKING:
    from typer import Typer


@SHARED(
    reviewer=Option(
        "Names of the reviewers; each gets a link. Default: your login's name.",
        metavar="NAME,…",
        panel="People",
        main=True,
        read=lambda names: [name.strip() for name in names.split(",")],
    ),
    port=Option("Port of the page. Default: 8750, or a free port.", short="-p", panel="People"),
    report=Option("Print the results so far instead of serving the page.", panel=OUTPUT, main=True),
    card=Option("Also write the report into the dataset's card.", panel=OUTPUT),
)
def _review(
    review: Any,
    arguments: Any,
    *,
    reviewer: list[str] | None = None,
    port: int | None = None,
    report: bool = False,
    card: bool = False,
    json: bool = False,
    quiet: bool = False,
) -> None:
    from pairkit.base.cli.commands import show, with_input_flags
    from pairkit.base.cli.terminal import next_step, out, print_json, say

    result = review(**arguments)
    if report or card:
        results = result.report()
        if card:
            results.save_card(arguments["source"])
        show(results, json=json, quiet=quiet)
        return
    with result.serve(reviewer, port=port) as server:
        if json:
            print_json({"store": str(result.path), "url": server.url, "links": server.links})
        else:
            for name, link in server.links.items():
                out.print(f"{name}  {link}", markup=False)
        say("each answer is saved at once; each link is for one person (Ctrl-C ends the server)", quiet=quiet)
        command = with_input_flags(["pairs", "review", arguments["source"], "--report"], arguments)
        if server.by_query:
            command = ["aoe", "evaluate", "--data", str(result.path)]
        next_step("see the results", command, quiet=quiet)
        server.wait()


def application() -> Typer:
    """The command line. Imports are inside the function because they are slow."""
    from pairkit.api import checking, making
    from pairkit.base.cli.commands import add_command, application

    app = application(
        "pairs", "Check, describe, review, merge, split and share datasets of text pairs from any source."
    )
    add_command(
        app,
        checking.audit,
        "pairs audit gis-dataset",
        "pairs audit WhereIsAI/github-issue-similarity",
        "pairs audit nli.tsv --labels entailment=1,neutral=0,contradiction=0",
    )
    add_command(
        app,
        checking.report,
        "pairs report gis-dataset",
        "pairs report pairs.tsv --out about-pairs.html --seed 7",
        "pairs report nli.tsv --labels entailment=1,neutral=0,contradiction=0",
    )
    add_command(
        app, checking.show, "pairs show gis-dataset", "pairs show gis-dataset --row 3 --label 0", json=False
    )
    add_command(
        app,
        checking.export,
        "pairs export gis-dataset --format jsonl --out gis-jsonl",
        "pairs export gis-dataset --format csv --raw --out gis-csv",
        json=False,
    )
    add_command(
        app,
        making.extract,
        "pairs extract handbook --out mined",
        "pairs extract faq.csv --columns question=ask,answer=reply --out mined",
        "pairs extract articles.jsonl --rules title-body,section --out mined",
    )
    add_command(
        app,
        making.merge,
        "pairs merge gis labelled.tsv --out both",
        "pairs merge mine.csv yours.csv --conflicts drop --split-sizes 0.8,0.1,0.1 --out ours",
    )
    add_command(
        app,
        making.split,
        "pairs split pairs.tsv --out divided",
        "pairs split gis --split-sizes 0.9,0,0.1 --cut-negatives --out resplit",
    )
    add_command(
        app,
        checking.review,
        "pairs review gis-dataset",
        "pairs review gis-dataset --n 200 --reviewer ann,bob",
        "pairs review gis-dataset --report --card",
        run=_review,
    )
    add_command(
        app,
        making.apply_review,
        "pairs apply-review gis-dataset --out checked",
        "pairs apply-review gis-dataset --relabel --out relabelled",
    )
    return app


def main() -> None:
    """Run the command line."""
    start(application)


if __name__ == "__main__":
    main()
