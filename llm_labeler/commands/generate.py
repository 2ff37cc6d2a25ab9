"""`label generate` and `label parse`: make the dataset, by asking LLMs or from what they answered before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_labeler.commands import app
from llm_labeler.commands import options as o
from pairkit.app.application import columns_given
from pairkit.app.application import examples as shown
from pairkit.app.terminal import next_step, print_json
from pairkit.app.terminal import out as stdout

if TYPE_CHECKING:
    from llm_labeler import Labelled


@app.command(
    epilog=shown(
        "label generate -i sentences.txt --llm wordnet --out pairs",
        "label generate -i sentences.txt --llm wordnet --task triplet --out triplets",
        "label generate -i sentences.txt --llm chatgpt,llama -c llms.toml --max-cost 5",
        "label generate -i notes.parquet --text-column body --llm llama --dry-run",
    )
)
def generate(
    source: o.Input,
    llms: o.Llms,
    *,
    text_column: o.TextColumn = None,
    limit: o.Limit = None,
    draw: o.Draw = None,
    task: o.Task = None,
    size: o.Size = None,
    samples: o.Samples = None,
    examples: o.Examples = None,
    polarity: o.Polarity = None,
    prompt: o.Prompt = None,
    local_only: o.LocalOnly = None,
    batch: o.Batch = False,
    strategy: o.Strategy = None,
    judges: o.Judges = None,
    max_cost: o.MaxCost = None,
    max_tokens: o.MaxTokens = None,
    max_requests: o.MaxRequests = None,
    dry_run: o.DryRun = False,
    out: o.Out = Path("pairs"),
    work: o.Work = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
    config: o.Config = None,
    sets: o.Sets = None,
    seed: o.Seed = None,
    keep_going: o.KeepGoing = False,
    retry_failed: o.RetryFailed = False,
) -> None:
    """Ask LLMs for sentences of the same and the opposite meaning; write a dataset of pairs.

    Run it again to continue.
    """
    import llm_labeler

    common: dict[str, Any] = {
        "llms": llms,
        "out": out,
        "work": work,
        "text_column": text_column,
        "limit": limit,
        "draw": draw,
        "seed": seed,
        "task": task,
        "size": size,
        "samples": samples,
        "examples": examples,
        "polarity": polarity,
        "prompt": prompt,
        "local_only": local_only,
        "strategy": strategy,
        "judges": judges,
        "config": config,
        "settings": sets,
    }
    if dry_run:
        plan = llm_labeler.plan(source, **common)
        if json:
            print_json(plan.to_dict())
        else:
            stdout.print(plan.table())
        next_step("ask them", "the same command without --dry-run", quiet=quiet)
        return
    labelled = llm_labeler.generate(
        source,
        **common,
        batch=batch,
        max_cost=max_cost,
        max_tokens=max_tokens,
        max_requests=max_requests,
        fresh=fresh,
        keep_going=keep_going,
        retry_failed=retry_failed,
        progress=not quiet,
    )
    _show(labelled, as_json=json, quiet=quiet)
    if labelled.problem is not None:
        raise labelled.problem


@app.command(
    epilog=shown(
        "label parse --work pairs.work --out pairs",
        "label parse --work pairs.work --out strict --strategy weighted",
    )
)
def parse(
    work: o.WorkOnly,
    *,
    out: o.Out = Path("pairs"),
    strategy: o.Strategy = None,
    seed: o.Seed = None,
    sets: o.Sets = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Make a dataset from stored answers, for example with other filters or another strategy."""
    import llm_labeler

    labelled = llm_labeler.parse(
        work,
        out=out,
        strategy=strategy,
        seed=seed,
        settings=sets,
        fresh=fresh,
        progress=not quiet,
    )
    _show(labelled, as_json=json, quiet=quiet)


@app.command(
    epilog=shown(
        "label judge -i pairs.csv --llm chatgpt,llama,chatglm --out judged",
        "label judge -i quora.tsv --llm llama --columns text1=question1,text2=question2,label=is_duplicate",
        "label judge -i dataset --llm chatgpt --draw 500 --max-cost 1",
        "label judge -i dataset --llm chatgpt,llama,chatglm --out judged",
    )
)
def judge(
    source: o.GivenPairs,
    llms: o.Llms,
    *,
    columns: o.Columns = None,
    labels: o.LabelWords = None,
    label_range: o.LabelRange = None,
    limit: o.LimitPairs = None,
    draw: o.DrawPairs = None,
    local_only: o.LocalOnly = None,
    batch: o.Batch = False,
    max_cost: o.MaxCost = None,
    max_tokens: o.MaxTokens = None,
    max_requests: o.MaxRequests = None,
    out: o.OutJudged = Path("judged"),
    work: o.Work = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
    config: o.Config = None,
    sets: o.Sets = None,
    seed: o.Seed = None,
    keep_going: o.KeepGoing = False,
    retry_failed: o.RetryFailed = False,
) -> None:
    """Have LLMs judge the pairs of any dataset, blind to its labels, in words or by a score.

    Writes a dataset with their labels, and a list of the pairs whose given label they contradict.
    """
    import llm_labeler

    found = llm_labeler.judge(
        source,
        llms=llms,
        out=out,
        work=work,
        columns=columns_given(columns),
        labels=labels,
        label_range=label_range,
        limit=limit,
        draw=draw,
        max_cost=max_cost,
        max_tokens=max_tokens,
        max_requests=max_requests,
        batch=batch,
        keep_going=keep_going,
        retry_failed=retry_failed,
        local_only=local_only,
        seed=seed,
        config=config,
        settings=sets,
        fresh=fresh,
        progress=not quiet,
    )
    if json:
        print_json(found.summary())
    else:
        stdout.print(found.judges_table())
        stdout.print()
        stdout.print(found.table())
    next_step("read where they contradict the labels", ("less", found.contradictions), quiet=quiet)


def _show(labelled: Labelled, *, as_json: bool, quiet: bool) -> None:
    """The summary of a run."""
    if as_json:
        print_json(labelled.summary())
    else:
        if (judges := labelled.judges_table()) is not None:
            stdout.print(judges)
            stdout.print()
        stdout.print(labelled.table())
    next_step("see why rows were dropped", ("label", "report", "--work", labelled.work), quiet=quiet)
    train = ("aoe", "train", "--backbone", "minilm", "--out", "model", "--data")
    triplets = labelled.out / "triplet"
    if triplets.is_dir():
        next_step("train on the triplets", (*train, triplets, "--preset", "domain"), quiet=quiet)
    else:
        next_step("train on the pairs", (*train, labelled.out), quiet=quiet)
