"""Flags that several commands of `aoe` share, each defined once, and their values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairkit.errors import ConfigError

INPUT, MODEL, TRAINING, RUN, OUTPUT = "Input", "Model", "Training", "Run", "Output"
"""The groups of options in help, in this order."""

Data = Annotated[
    str,
    typer.Option(
        "--data", "-d", metavar="DATA", help="A dataset's folder, a file or a hub id.", rich_help_panel=INPUT
    ),
]
DevData = Annotated[
    str | None,
    typer.Option(
        "--dev-data",
        metavar="DATA",
        help="Held-out rows that choose the weights. [default: the validation split]",
        rich_help_panel=INPUT,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="MAP",
        help="Such as text1=title,text2=body,label=same or anchor=q,positive=a.",
        rich_help_panel=INPUT,
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="MAP",
        help="Numbers for words: entailment=1,contradiction=0.",
        rich_help_panel=INPUT,
    ),
]
Model = Annotated[
    str,
    typer.Option(
        "--model", "-m", metavar="MODEL", help="A folder, a hub id, or minilm.", rich_help_panel=INPUT
    ),
]
Backbone = Annotated[
    str,
    typer.Option(
        "--backbone", "-b", metavar="MODEL", help="A folder, a hub id, or minilm.", rich_help_panel=MODEL
    ),
]
Revision = Annotated[
    str | None,
    typer.Option("--revision", metavar="COMMIT", help="Of the backbone on the hub.", rich_help_panel=MODEL),
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code", help="Run the backbone's code; needs --revision.", rich_help_panel=MODEL
    ),
]
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="FOLDER", help="The model's folder.", rich_help_panel=OUTPUT)
]
Epochs = Annotated[
    float | None,
    typer.Option(
        "--epochs", metavar="N", help="Times each row is seen. [default: 1]", rich_help_panel=TRAINING
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option("--batch-size", metavar="N", help="Rows a process. [default: 32]", rich_help_panel=TRAINING),
]
Lr = Annotated[
    float | None, typer.Option("--lr", metavar="X", help="Highest learning rate.", rich_help_panel=TRAINING)
]
Precision = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="NAME",
        help="fp32, bf16, fp16 or auto: bf16 on a GPU that has it. [default: auto]",
        rich_help_panel=RUN,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", metavar="N", help="Decides every random choice. [default: 42]", rich_help_panel=RUN
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Settings in TOML.", rich_help_panel=RUN),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="One setting, such as objective.tau.angle=0.05; repeatable.",
        rich_help_panel=RUN,
    ),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Begin anew; replace what another run left.", rich_help_panel=RUN)
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show counts, memory and time, and stop.", rich_help_panel=RUN)
]
Json = Annotated[
    bool, typer.Option("--json", help="End with one JSON object on stdout.", rich_help_panel=OUTPUT)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr.", rich_help_panel=OUTPUT)]


def mapping(flag: str, text: str | None) -> dict[str, str] | None:
    """`name=value,name=value` as a table; None where nothing was given.

    Raises:
        ConfigError: it isn't of that form.
    """
    pairs = [part.partition("=") for part in (text or "").split(",") if part]
    if any(not (key.strip() and equals and value.strip()) for key, equals, value in pairs):
        raise ConfigError(f"{flag} {text}: expected name=value,name=value")
    return {key.strip(): value.strip() for key, _, value in pairs} or None


def label_values(text: str | None) -> dict[str, float] | None:
    """`word=number,word=number` as a table; None where nothing was given.

    Raises:
        ConfigError: it isn't of that form.
    """
    words = mapping("--labels", text) or {}
    try:
        return {word: float(number) for word, number in words.items()} or None
    except ValueError:
        raise ConfigError(f"--labels {text}: expected word=number, such as entailment=1") from None
