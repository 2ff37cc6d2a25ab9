"""`label generate`: ask the LLMs what is still missing, and make the dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llm_labeler._commands import options as o
from llm_labeler._commands.app import app, examples
from llm_labeler._commands.results import Display, show_labelled, show_plan
from pairkit.terminal import say


@app.command(
    epilog=examples(
        "label generate --input sentences.txt --llm wordnet --out pairs",
        "label generate --input sentences.txt --llm ensemble --config llms.toml --out pairs --max-cost 5",
        "label generate --input notes.parquet --text-column body --llm llama --size 5 --out pairs --dry-run",
        "label generate --input sentences.txt --llm chatgpt --batch --out pairs",
    )
)
def generate(
    source: o.Input,
    llm: o.Llm,
    *,
    out: o.Out = Path("pairs"),
    work: o.Work = None,
    text_column: o.TextColumn = None,
    size: o.Size = None,
    prompt: o.Prompt = None,
    polarity: o.Polarity = None,
    strategy: o.Strategy = None,
    antonym_score: o.AntonymScore = None,
    limit: o.Limit = None,
    max_cost: o.MaxCost = None,
    max_tokens: o.MaxTokens = None,
    max_requests: o.MaxRequests = None,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch", help="OpenAI's Batch API: half the price, up to a day; run again to collect."
        ),
    ] = False,
    keep_going: o.KeepGoing = False,
    retry_failed: o.RetryFailed = False,
    local_only: o.LocalOnly = None,
    seed: o.Seed = None,
    config: o.Config = None,
    sets: o.Sets = None,
    fresh: o.Fresh = False,
    dry_run: o.DryRun = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Ask LLMs for sentences of same and opposite meaning; write a pair dataset. Run it again to go on."""
    from llm_labeler._label import generate as generate_pairs
    from llm_labeler._label import plan
    from llm_labeler._session import How

    settings = o.merged_settings(
        config,
        sets,
        polarity=polarity,
        llms=o.names("--llm", llm),
        size=size,
        seed=seed,
        local_only=local_only,
        prompt__template=prompt,
        input__limit=limit,
        ensemble__strategy=strategy,
        ensemble__antonym_score=antonym_score,
        budget__max_cost=max_cost,
        budget__max_tokens=max_tokens,
        budget__max_requests=max_requests,
    )
    if dry_run:
        show_plan(plan(source, out, work, settings, column=text_column), as_json=json)
        return
    with Display(quiet=quiet) as show:
        labelled = generate_pairs(
            source,
            out,
            work,
            settings,
            column=text_column,
            how=How(batch=batch, retry_failed=retry_failed, keep_going=keep_going),
            fresh=fresh,
            say=lambda words: say(words, quiet=quiet),
            show=show,
        )
    show_labelled(labelled, as_json=json, quiet=quiet)
    if labelled.problem is not None:
        raise labelled.problem
