"""Commands of `label` that look at what is stored (score, show, report), at LLMs, and that emulate one."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from llm_labeler._commands import app
from llm_labeler._commands import options as o
from pairkit.application import columns_given, examples
from pairkit.terminal import next_step, print_json
from pairkit.terminal import out as stdout


@app.command(
    epilog=examples(
        "label sample --work pairs.work --out page.html",
        "label sample --work pairs.work --out sheet.csv --size 200",
    )
)
def sample(
    work: o.WorkOnly,
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="A page for a browser (.html) or a sheet (.csv). [default: sample.html]",
            show_default=False,
        ),
    ] = Path("sample.html"),
    size: Annotated[int, typer.Option("--size", "-n", metavar="N", help="How many pairs.")] = 60,
    seed: o.Seed = None,
    quiet: o.Quiet = False,
) -> None:
    """Draw pairs of every kind, LLM and confidence for people to label; `label score` takes their answers."""
    import llm_labeler

    stdout.print(llm_labeler.sample(work, out=out, size=size, seed=seed).table())
    gold = out if out.suffix == ".csv" else "answers.csv"
    next_step("compare with their answers", ("label", "score", "--work", work, "--gold", gold), quiet=quiet)


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
    again = ("label", "parse", "--work", work, "--strategy", "agreement")
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
    from pairkit.files import write_text

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


@app.command(
    epilog=examples("label emulate --port 8000", "label emulate --faults 0.3 --latency 0.2 --models a,b")
)
def emulate(
    *,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", metavar="N", help="Port to listen on; 0 takes a free one.")
    ] = 0,
    models: Annotated[
        str, typer.Option("--models", metavar="NAME,…", help="Names of its models.")
    ] = "emulated",
    latency: Annotated[
        float, typer.Option("--latency", metavar="SECONDS", help="The least time that an answer takes.")
    ] = 0.0,
    faults: Annotated[
        float, typer.Option("--faults", metavar="SHARE", help="Share of the calls that fail, from 0 to 1.")
    ] = 0.0,
    fault_kinds: Annotated[
        str | None,
        typer.Option("--fault-kinds", metavar="NAME,…", help="Kinds of faults. [default: those that pass]"),
    ] = None,
    first: Annotated[
        int | None,
        typer.Option("--first", metavar="N", help="Only the first N attempts of a question may fail."),
    ] = None,
    retry_after: Annotated[
        float, typer.Option("--retry-after", metavar="SECONDS", help="How long a 429 asks to wait.")
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Decides which calls fail.")] = 0,
    usage: Annotated[bool, typer.Option(help="Whether answers say how many tokens they took.")] = True,
    key_env: Annotated[
        str | None,
        typer.Option("--key-env", metavar="NAME", help="Environment variable with the only key it accepts."),
    ] = None,
    batch_seconds: Annotated[
        float, typer.Option("--batch-seconds", metavar="SECONDS", help="How long a batch takes.")
    ] = 0.0,
) -> None:
    """Serve the protocols of OpenAI, Anthropic and Gemini here without a model, to test clients."""
    import llm_labeler

    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    signal.signal(signal.SIGINT, lambda *_: ended.set())
    with llm_labeler.emulate(
        host=host,
        port=port,
        models=models,
        latency=latency,
        faults=faults,
        fault_kinds=fault_kinds,
        first=first,
        retry_after=retry_after,
        seed=seed,
        usage=usage,
        key_env=key_env,
        batch_seconds=batch_seconds,
    ) as server:
        stdout.print(server.base_url, markup=False)
        stdout.file.flush()
        ended.wait()
