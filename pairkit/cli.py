"""The `pairs` command line: one command for each public function."""

from __future__ import annotations

from typing import Any

from pairkit.api import checking, making
from pairkit.base.cli.commands import add_command, application
from pairkit.base.cli.options import OUTPUT, Option
from pairkit.base.cli.terminal import (
    next_step,
    out,
    print_json,
    say,
    show,
    with_input_flags,
)
from pairkit.base.settings import between_commas
from pairkit.dataset.shared_options import SHARED

app = application(
    "pairs",
    "Check, describe, review, merge, split and share datasets of text pairs from any source.",
)


@SHARED(
    reviewer=Option(
        "Names of the reviewers; each gets a link. Default: your login's name.",
        metavar="NAME,…",
        panel="People",
        main=True,
        read=between_commas,
    ),
    port=Option(
        "Port of the page. Default: 8750, or a free port.", short="-p", panel="People"
    ),
    report=Option(
        "Print the results so far instead of serving the page.", panel=OUTPUT, main=True
    ),
    card=Option("Also write the report into the dataset's card.", panel=OUTPUT),
)
def _review(
    arguments: dict[str, Any],
    *,
    reviewer: list[str] | None = None,
    port: int | None = None,
    report: bool = False,
    card: bool = False,
    json: bool = False,
    quiet: bool = False,
) -> None:
    result = checking.review(**arguments)
    if report or card:
        results = result.report()
        if card:
            results.save_card(arguments["source"])
        show(results, json=json, quiet=quiet)
        return
    with result.serve(reviewer, port=port) as server:
        if json:
            print_json(
                {"store": str(result.path), "url": server.url, "links": server.links}
            )
        else:
            for name, link in server.links.items():
                out.print(f"{name}  {link}")
        say(
            "each answer is saved at once; each link is for one person (Ctrl-C ends the server)",
            quiet=quiet,
        )
        command = with_input_flags(
            ["pairs", "review", arguments["source"], "--report"], arguments
        )
        if server.by_query:
            command = ["aoe", "evaluate", "--data", str(result.path)]
        next_step("see the results", command, quiet=quiet)
        server.wait()


add_command(
    app,
    checking.audit,
    "pairs audit demo",
    "pairs audit WhereIsAI/github-issue-similarity",
    "pairs audit pairs --json",
)
add_command(
    app,
    checking.report,
    "pairs report demo",
    "pairs report demo --out about-demo.html --seed 7",
)
add_command(
    app,
    checking.show,
    "pairs show demo",
    "pairs show demo --row 3 --label 0",
    json=False,
)
add_command(
    app,
    checking.export,
    "pairs export demo --format jsonl --out demo-jsonl",
    "pairs export demo --format csv --raw --out demo-csv",
    json=False,
)
add_command(
    app,
    making.extract,
    "pairs extract docs/howto --out extracted",
    "pairs extract data/sample_faq.csv --columns question=Frage,answer=Antwort --out faq",
    "pairs extract docs/howto --rules title-body,section --out sections",
)
add_command(
    app,
    making.merge,
    "pairs merge demo pairs --out both",
    "pairs merge demo pairs --conflicts drop --split-sizes 0.8,0.1,0.1 --out ours",
)
add_command(
    app,
    making.split,
    "pairs split faq --out divided",
    "pairs split demo --split-sizes 0.9,0,0.1 --cut-negatives --out resplit",
)
add_command(
    app,
    checking.review,
    "pairs review demo",
    "pairs review demo --n 200 --reviewer ann,bob",
    "pairs review demo --report --card",
    run=_review,
)
add_command(
    app,
    making.apply_review,
    "pairs apply-review demo --out checked",
    "pairs apply-review demo --relabel --out relabelled",
)
