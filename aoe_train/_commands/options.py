"""Flags that several commands of `aoe` share, each defined once, and the settings that they make."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairkit.errors import ConfigError

Data = Annotated[
    str,
    typer.Option(
        "--data", "-d", help="A dataset's folder, a CSV/TSV/JSONL/Parquet/text file, or a hub name."
    ),
]
DevData = Annotated[
    str | None,
    typer.Option(
        "--dev-data", help="Held-out rows to choose the best weights by. [default: the validation split]"
    ),
]
Backbone = Annotated[str, typer.Option("--backbone", "-b", help="A model's folder, a hub id, or minilm.")]
Revision = Annotated[str | None, typer.Option("--revision", help="A commit of the backbone on the hub.")]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run the backbone's own code; needs a pinned --revision.")
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Names of columns, such as text1=title,text2=body,label=same or anchor=q,positive=a.",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option("--labels", help="Numbers for labels in words, such as entailment=1,contradiction=0."),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The model's folder.")]
Epochs = Annotated[float | None, typer.Option("--epochs", help="Times that each row is seen. [default: 1]")]
BatchSize = Annotated[int | None, typer.Option("--batch-size", help="Rows a process. [default: 32]")]
Lr = Annotated[float | None, typer.Option("--lr", help="Highest learning rate.")]
Precision = Annotated[
    str | None,
    typer.Option("--precision", help="fp32, bf16, fp16 or auto: bf16 on a GPU that has it. [default: auto]"),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Decides every random choice. [default: 42]")]
Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="A TOML file with settings that differ from the defaults."),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="One setting, such as --set objective.tau.angle=0.05; repeatable."),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin anew, and replace what another run left.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show counts, batches, memory and time, and stop.")]
Json = Annotated[bool, typer.Option("--json", help="End with one JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")]


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
