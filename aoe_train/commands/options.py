"""Flags that several commands of `aoe` share, each defined once, and their values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from pairkit.app.errors import ConfigError


class Group:
    """A group of options in help."""

    def __init__(self, title: str) -> None:
        self.title = title

    def __call__(self, names: str, words: str, metavar: str | None = None, **more: Any) -> Any:
        """An option of the group."""
        return typer.Option(*names.split(), help=words, metavar=metavar, rich_help_panel=self.title, **more)


_OF_COLUMN = re.compile(r"(text[12]?|anchor|positive|negative(?:_\d+)?|query|document)=(.*)", re.DOTALL)

INPUT, MODEL, TRAINING, RUN, OUTPUT = map(Group, ("Input", "Model", "Training", "Run", "Output"))

Data = Annotated[str, INPUT("--data -d", "A dataset's folder, a file or a Hub id.", "DATA")]
TrainData = Annotated[
    list[str] | None,
    INPUT("--data -d", "A dataset's folder, a file or a Hub id; repeatable, with names as nli=FILE.", "DATA"),
]
DevData = Annotated[
    list[str] | None,
    INPUT(
        "--dev-data",
        "Held-out rows that choose the weights; repeatable. [default: the validation split]",
        "DATA",
    ),
]
Judged = Annotated[
    str | None,
    INPUT("--judged", "Pairs on which the model must beat its backbone, such as of `label judge`.", "DATA"),
]
Columns = Annotated[
    str | None,
    INPUT(
        "--columns",
        "Which column is which, such as text1=title,label=same or anchor=q,negative=n; 1,2,3 where there is"
        " no header line.",
        "A=B,…",
    ),
]
Labels = Annotated[
    str | None, INPUT("--labels", "What labels count as, such as 0=1,1=skip,2=0.", "LABEL=N,…")
]
LabelRange = Annotated[str | None, INPUT("--label-range", "The scale of scores, such as 0,100.", "LOW,HIGH")]
Conflicts = Annotated[
    str | None,
    INPUT(
        "--conflicts", "keep, drop, first or error: where labels of a pair differ. [default: keep]", "NAME"
    ),
]
Streaming = Annotated[
    str | None,
    INPUT(
        "--streaming", "on, off or auto: leave rows on disk. [default: auto: from 256 MiB of files]", "NAME"
    ),
]
Model = Annotated[str, INPUT("--model -m", "A folder, a Hub id, minilm or smollm2.", "MODEL")]
PromptName = Annotated[
    str | None,
    MODEL(
        "--prompt-name", "A prompt that the model knows, such as query. [default: its default one]", "NAME"
    ),
]
Prompt = Annotated[
    str | None, MODEL("--prompt", "Words before each text, or around {text}, instead; '' for none.", "TEXT")
]
Layers = Annotated[
    int | None, MODEL("--layers", "Use the first N layers of the model. [default: all]", "N", min=1)
]
Backbone = Annotated[str, MODEL("--backbone -b", "A folder, a Hub id, minilm or smollm2.", "MODEL")]
Prompts = Annotated[
    list[str] | None,
    MODEL(
        "--prompts",
        "Words before each text, or around {text}; of one column as anchor='query: ', repeatable.",
        "TEXT",
    ),
]
Lora = Annotated[
    bool | None,
    MODEL(
        "--lora/--no-lora", "Train low-rank adapters only, or all weights. [default: adapters of decoders]"
    ),
]
Revision = Annotated[str | None, MODEL("--revision", "The backbone's commit on the Hub.", "COMMIT")]
TrustRemoteCode = Annotated[bool, MODEL("--trust-remote-code", "Run the backbone's code; needs --revision.")]
Out = Annotated[Path, OUTPUT("--out -o", "The model's folder.", "DIR")]
Epochs = Annotated[
    float | None, TRAINING("--epochs", "How often each row is seen. [default: by their number]", "N")
]
BatchSize = Annotated[int | None, TRAINING("--batch-size", "Rows of each process. [default: 16]", "N")]
Lr = Annotated[float | None, TRAINING("--lr", "Highest learning rate. [default: by rows and backbone]", "X")]
Precision = Annotated[
    str | None,
    RUN("--precision", "fp32, bf16, fp16 or auto: bf16 on a GPU that has it. [default: auto]", "NAME"),
]
EncodingPrecision = Annotated[
    str | None,
    RUN(
        "--precision",
        "fp32, bf16, fp16, int8 or auto: bf16 on a GPU that has it. [default: auto]",
        "NAME",
    ),
]
Seed = Annotated[int | None, RUN("--seed", "Decides every random choice. [default: 42]", "N")]
Config = Annotated[Path | None, RUN("--config -c", "Settings in TOML.", "FILE")]
Sets = Annotated[
    list[str] | None, RUN("--set", "One setting, such as objective.tau.angle=0.05; repeatable.", "KEY=VALUE")
]
Fresh = Annotated[bool, RUN("--fresh", "Begin anew; replace what another run left.")]
DryRun = Annotated[bool, RUN("--dry-run", "Show counts, memory and time, and stop.")]
Json = Annotated[bool, OUTPUT("--json", "End with one JSON object on stdout.")]
Quiet = Annotated[bool, OUTPUT("--quiet -q", "No progress and no notes on stderr.")]


def sources(given: list[str] | None) -> Any:
    """One source, or several by name; None where nothing was given."""
    from pairkit.dataset.named_sources import named_words  # brings polars, which help does without

    return named_words(given) if given else None


def prompts(given: list[str] | None) -> str | dict[str, str] | None:
    """One prompt for all texts, or `column=prompt` words as a table; None where nothing was given."""
    found = [(text, _OF_COLUMN.fullmatch(text)) for text in given or ()]
    by_column = {match[1]: match[2] for _, match in found if match is not None}
    if len(by_column) == len(found):
        return by_column or None
    if len(found) > 1:
        raise ConfigError(
            f"--prompts {next(text for text, match in found if match is None)}: several prompts; expected"
            " one for each column, such as anchor='query: '"
        )
    return found[0][0]
