"""Flags that several commands of `label` share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

INPUT, LLMS, LABELS = "Input", "LLMs", "Labels"
LIMITS, OUTPUT, RUN = "Limits over all runs in --work", "Output", "Run"


def option(panel: str, *names: str, help: str, **more: Any) -> Any:  # noqa: A002 - typer's word
    """A flag in a panel of the help."""
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False, **more)


Input = Annotated[
    str,
    option(
        INPUT,
        *("--input", "-i"),
        metavar="FILE",
        help="Sentences: a file, a dataset or a Hub id.",
    ),
]
GivenPairs = Annotated[
    str,
    option(INPUT, *("--input", "-i"), metavar="FILE", help="Pairs: a file, a dataset or a Hub id."),
]
Columns = Annotated[
    str | None,
    option(
        INPUT,
        "--columns",
        metavar="A=B,…",
        help="Which column of them is which, such as text1=title,label=same.",
    ),
]
LabelWords = Annotated[
    str | None,
    option(
        INPUT, "--labels", metavar="LABEL=N,…", help="What their labels count as, such as 0=1,1=skip,2=0."
    ),
]
LabelRange = Annotated[
    str | None,
    option(
        INPUT,
        "--label-range",
        metavar="LOW,HIGH",
        help="The scale of their scores, such as 0,100; it becomes 0 to 1.",
    ),
]
TextColumn = Annotated[
    str | None,
    option(
        INPUT, "--text-column", metavar="NAME", help="The column with the sentences. [default: recognised]"
    ),
]
Limit = Annotated[
    int | None, option(INPUT, "--limit", metavar="N", help="Take only the first N usable sentences.")
]
Draw = Annotated[
    int | None, option(INPUT, "--draw", metavar="N", help="Take N of the sentences, drawn by --seed.")
]
LimitPairs = Annotated[
    int | None, option(INPUT, "--limit", metavar="N", help="Take only the first N usable pairs.")
]
DrawPairs = Annotated[
    int | None, option(INPUT, "--draw", metavar="N", help="Take N of the pairs, drawn by --seed.")
]

Llms = Annotated[
    str,
    option(
        LLMS,
        *("--llm", "--llms", "-l"),
        metavar="NAME,…",
        help="chatgpt, llama, chatglm, ensemble (all three), wordnet (rules), or names in --config.",
    ),
]
Task = Annotated[
    str | None,
    option(
        LLMS,
        "--task",
        metavar="NAME",
        help="papers (same and opposite), triplet or query. [default: papers]",
    ),
]
Size = Annotated[
    int | None,
    option(LLMS, "--size", "-n", metavar="N", help="Sentences asked of each LLM and polarity. [default: 3]"),
]
Samples = Annotated[
    int | None, option(LLMS, "--samples", metavar="N", help="Ask each the same N times. [default: 1]")
]
Examples = Annotated[
    Path | None,
    option(LLMS, "--examples", metavar="FILE", help="Pairs or triplets to send along as examples."),
]
Polarity = Annotated[
    str | None,
    option(LLMS, "--polarity", metavar="NAME", help="positive, negative or both. [default: both]"),
]
Prompt = Annotated[
    str | None,
    option(
        LLMS,
        "--prompt",
        metavar="NAME",
        help="hardened, paper or a file. [default: hardened]",
    ),
]
LocalOnly = Annotated[bool | None, option(LLMS, "--local-only", help="Let no text leave this machine.")]
Batch = Annotated[bool, option(LLMS, "--batch", help="Use OpenAI's Batch API, at half the price.")]

Strategy = Annotated[
    str | None,
    option(
        LABELS,
        "--strategy",
        metavar="NAME",
        help="union, vote or weighted. [default: union]",
    ),
]
Judges = Annotated[
    str | None, option(LABELS, "--judges", metavar="NAME,…", help="LLMs that vote. [default: those of --llm]")
]

MaxCost = Annotated[float | None, option(LIMITS, "--max-cost", metavar="USD", help="US dollars, in all.")]
MaxTokens = Annotated[
    int | None, option(LIMITS, "--max-tokens", metavar="N", help="Tokens of prompts and answers, in all.")
]
MaxRequests = Annotated[int | None, option(LIMITS, "--max-requests", metavar="N", help="Calls, in all.")]
DryRun = Annotated[bool, option(LIMITS, "--dry-run", help="Estimate calls, tokens and money, and stop.")]

Out = Annotated[
    Path, option(OUTPUT, "--out", "-o", metavar="DIR", help="The dataset's folder. [default: pairs]")
]
OutJudged = Annotated[
    Path, option(OUTPUT, "--out", "-o", metavar="DIR", help="The dataset's folder. [default: judged]")
]
Work = Annotated[
    Path | None,
    option(OUTPUT, "--work", "-w", metavar="DIR", help="The folder of the answers. [default: OUT.work]"),
]
WorkOnly = Annotated[Path, typer.Option("--work", "-w", metavar="DIR", help="The folder of the answers.")]
Fresh = Annotated[bool, option(OUTPUT, "--fresh", help="Replace a dataset made with other settings.")]
Json = Annotated[bool, option(OUTPUT, "--json", help="End with one JSON object on stdout.")]
Quiet = Annotated[bool, option(OUTPUT, "--quiet", "-q", help="No progress and no notes on stderr.")]

KeepGoing = Annotated[bool, option(RUN, "--keep-going", help="Make the dataset even if an LLM failed.")]
RetryFailed = Annotated[bool, option(RUN, "--retry-failed", help="Ask again what servers refused for good.")]
Seed = Annotated[
    int | None, option(RUN, "--seed", metavar="N", help="Decides every random choice. [default: 42]")
]
Config = Annotated[
    Path | None,
    option(RUN, "--config", "-c", metavar="FILE", help="Settings in TOML, with LLMs as [llm.NAME]."),
]
Sets = Annotated[
    list[str] | None,
    option(
        RUN, "--set", metavar="KEY=VALUE", help="One setting, such as filters.min_shared=0.3; repeatable."
    ),
]
