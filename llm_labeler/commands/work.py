"""Commands of `label` that show what is stored (score, show, report) and the LLMs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llm_labeler.commands import app
from llm_labeler.commands import options as o
from pairkit.app.application import columns_given, examples
from pairkit.app.terminal import next_step, print_json
from pairkit.app.terminal import out as stdout


@app.command(
    epilog=examples(
        "label score --work pairs.work --gold checked.csv",
        "label score --work pairs.work --gold checked.tsv --threshold 3 --json",
        "label score --work pairs.work --gold nli.tsv --labels entailment=1,neutral=skip,contradiction=0",
    )
)
def score(
    work: o.WorkOnly,
    gold: Annotated[
        str,
        typer.Option(
            "--gold", metavar="FILE", help="Pairs that people labelled, with text1, text2 and label."
        ),
    ],
    *,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="A=B,…",
            help="Which column of them is which, such as text1=title,label=same.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels", metavar="LABEL=N,…", help="What their labels count as, such as 0=1,1=skip,2=0."
        ),
    ] = None,
    label_range: Annotated[
        str | None,
        typer.Option(
            "--label-range",
            metavar="LOW,HIGH",
            help="The scale of their scores, such as 0,100; it becomes 0 to 1.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="X",
            help="The least gold label that means the same. [default: half of its range]",
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Compare labels with those of people: precision, recall and kappa by LLM and strategy."""
    import llm_labeler

    found = llm_labeler.score(
        gold,
        work=work,
        columns=columns_given(columns),
        labels=labels,
        label_range=label_range,
        threshold=threshold,
    )
    if json:
        print_json(found.to_dict())
        return
    stdout.print(found.table())
    again = ("label", "parse", "--work", work, "--strategy", "weighted")
    next_step("make the dataset by another strategy", again)


@app.command(
    epilog=examples(
        "label show 41d8cd98f00b2044 --work pairs.work",
        "label show row:17 --work pairs.work",
        "label show 'Aspirin lowers fever.' --work pairs.work",
    )
)
def show(
    sentence: Annotated[str, typer.Argument(help="A text_id or its beginning, row:N, or the sentence.")],
    work: o.WorkOnly,
) -> None:
    """Show what LLMs answered to one sentence: prompts, raw answers, proposals, drops and votes.

    `pairs show` shows a pair of the dataset itself.
    """
    import llm_labeler

    shown = llm_labeler.show(sentence, work=work)
    stdout.print(f"{shown.text.text_id}  row {shown.text.row}", markup=False)
    stdout.print(shown.text.text, markup=False)
    for title, lines in shown.parts():
        stdout.print()
        stdout.print(title, markup=False, style="bold")
        for line in lines:
            stdout.print(line, markup=False)


@app.command(
    epilog=examples("label report --work pairs.work", "label report --work pairs.work --out report.md")
)
def report(
    work: o.WorkOnly,
    *,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write it as Markdown.")
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Count what became of the answers: why they were dropped, and the yield and cost of each LLM.

    `pairs report` describes the dataset itself.
    """
    import llm_labeler
    from pairkit.system.files import write_text

    found = llm_labeler.report(work)
    if out is not None:
        write_text(out, found.to_markdown())
    if json:
        print_json(found.to_dict())
    elif out is None:
        for number, table in enumerate(found.tables()):
            if number:
                stdout.print()
            stdout.print(table)
    next_step("look at one sentence", ("label", "show", "row:1", "--work", work), quiet=quiet)


@app.command(epilog=examples("label llms", "label llms --config llms.toml"))
def llms(*, config: o.Config = None, sets: o.Sets = None) -> None:
    """List the LLMs that can be asked, built in or from --config, and whether their keys are set."""
    import llm_labeler

    stdout.print(llm_labeler.llms(config=config, settings=sets).table())
