"""Commands of `label` that work on what is stored: parse, score, show, report, llms. None asks an LLM."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llm_labeler._commands import options as o
from llm_labeler._commands.app import app, examples
from llm_labeler._commands.results import show_labelled, show_llms, show_score, show_sentence
from pairkit.terminal import out as stdout
from pairkit.terminal import print_json


@app.command(
    epilog=examples(
        "label parse --work pairs.work --out pairs",
        "label parse --work pairs.work --out strict --strategy agreement --set filters.min_differing_words=5",
    )
)
def parse(
    work: o.WorkOnly,
    *,
    out: o.Out = Path("pairs"),
    strategy: o.Strategy = None,
    antonym_score: o.AntonymScore = None,
    sets: o.Sets = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Make the dataset once more from stored answers, perhaps with other filters or another ensemble."""
    from llm_labeler._label import parse as parse_answers

    labelled = parse_answers(
        out,
        work,
        sets or (),
        flags={"ensemble.strategy": strategy, "ensemble.antonym_score": antonym_score},
        fresh=fresh,
    )
    show_labelled(labelled, as_json=json, quiet=quiet)


@app.command(
    epilog=examples(
        "label score --work pairs.work --gold checked.csv",
        "label score --work pairs.work --gold checked.tsv --threshold 3 --json",
    )
)
def score(
    work: o.WorkOnly,
    gold: Annotated[
        str, typer.Option("--gold", help="Pairs that people labelled: text1, text2, label; any pair file.")
    ],
    *,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold", help="Gold label from which a pair means the same. [default: half its range]"
        ),
    ] = None,
    json: o.Json = False,
) -> None:
    """Compare labels with people's: precision, recall and kappa by LLM, polarity and strategy."""
    import polars as pl

    from llm_labeler._score import score as compare
    from llm_labeler._workplace import CANDIDATES_FILE, read_private, recall
    from pairkit.reader import read_pairs

    record, _ = recall(work)
    people = pl.concat(read_pairs(gold).splits.values(), how="diagonal_relaxed")
    found = compare(people, read_private(work / CANDIDATES_FILE), record.settings.ensemble, threshold)
    if json:
        print_json(found.to_dict())
    else:
        show_score(found)


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
    """Show one sentence: prompts, raw answers, what the parser made of them, drops and votes."""
    from llm_labeler._show import show as look_up

    show_sentence(look_up(work, sentence))


@app.command(
    epilog=examples("label report --work pairs.work", "label report --work pairs.work --out report.md")
)
def report(
    work: o.WorkOnly,
    *,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write it as Markdown.")] = None,
    json: o.Json = False,
) -> None:
    """Count what became of everything: reasons, yield and cost by LLM."""
    from llm_labeler._report import report as count
    from pairkit.files import write_text

    found = count(work)
    if out is not None:
        write_text(out, found.to_markdown())
    if json:
        print_json(found.to_dict())
    elif out is None:
        stdout.print(found.to_markdown(), markup=False)


@app.command(epilog=examples("label llms", "label llms --config llms.toml"))
def llms(*, config: o.Config = None, sets: o.Sets = None) -> None:
    """List the LLMs there are, built in or from --config, and whether their keys are set."""
    show_llms(o.merged_settings(config, sets))
