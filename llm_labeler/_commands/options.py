"""Flags that several commands of `label` share, each defined once, and the settings that they make."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from llm_labeler._settings import LabelSettings

Input = Annotated[
    str,
    typer.Option(
        "--input",
        "-i",
        help="Sentences: a text file (one a line), CSV, TSV, JSONL, Parquet, a pair dataset or a hub name.",
    ),
]
TextColumn = Annotated[
    str | None, typer.Option("--text-column", help="The column of the sentences. [default: recognised]")
]
Llm = Annotated[
    str,
    typer.Option(
        "--llm",
        "-l",
        help="Who proposes: NAME[,NAME…] of chatgpt, llama, chatglm, wordnet (rules, no LLM) or of --config; "
        "ensemble: the papers' three.",
    ),
]
Size = Annotated[
    int | None, typer.Option("--size", "-n", help="Sentences wanted of each LLM and polarity. [default: 3]")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The dataset's folder.")]
Work = Annotated[Path | None, typer.Option("--work", "-w", help="Folder of the answers. [default: OUT.work]")]
WorkOnly = Annotated[Path, typer.Option("--work", "-w", help="Folder of the answers.")]
Prompt = Annotated[
    str | None,
    typer.Option("--prompt", help="paper [default], hardened, or a file with {text}, {size} and {polarity}."),
]
Polarity = Annotated[
    str | None, typer.Option("--polarity", help="positive, negative or both. [default: both]")
]
Strategy = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        help="union: every proposal, as in the papers [default]; agreement: proposed by several; vote, "
        "weighted: every LLM judges every proposal blind.",
    ),
]
AntonymScore = Annotated[
    float | None,
    typer.Option("--antonym-score", help="Label of an antonym pair, 0 to 1; other than 0 makes it graded."),
]
Limit = Annotated[int | None, typer.Option("--limit", help="Take the first so many usable sentences.")]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        help="US dollars that may be spent in all. Each call is counted at its bound until it is answered; "
        "only a server that counts more than that can exceed it, by what one moment's calls take more.",
    ),
]
MaxTokens = Annotated[
    int | None, typer.Option("--max-tokens", help="Tokens that may be spent in all, prompts included.")
]
MaxRequests = Annotated[int | None, typer.Option("--max-requests", help="Calls that may be made in all.")]
LocalOnly = Annotated[
    bool | None,
    typer.Option(
        "--local-only", help="Refuse LLMs that would send text to another machine.", show_default=False
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Decides every random choice. [default: 42]")]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", help="A TOML file: [llm.NAME] entries, and what differs from the defaults."
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", help="One setting, such as --set llm.chatgpt.temperature=0.7; repeatable."),
]
KeepGoing = Annotated[
    bool,
    typer.Option(
        "--keep-going",
        help="Make the dataset even where LLMs or questions failed; the exit code still says that they did.",
    ),
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Ask again what servers rejected for good, too.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Replace a dataset made with other settings.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Estimate calls, tokens and money, and stop.")]
Json = Annotated[bool, typer.Option("--json", help="End with one JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on stderr.")]

_POLARITIES = {"both": ["positive", "negative"], "positive": ["positive"], "negative": ["negative"]}


def names(flag: str, text: str) -> list[str]:
    """`NAME,NAME` as a list.

    Raises:
        ConfigError: a name is missing.
    """
    found = [part.strip() for part in text.split(",")]
    if not all(found):
        raise ConfigError(f"{flag} {text!r}: expected NAME or NAME,NAME, such as chatgpt,llama")
    return found


def merged_settings(
    config: Path | None, sets: list[str] | None, *, polarity: str | None = None, **flags: Any
) -> LabelSettings:
    """Defaults < file < --set < flags; a flag that was not given is None.

    Args:
        config: The TOML file.
        sets: `key=value` strings.
        polarity: `positive`, `negative` or `both`.
        flags: Settings by their dotted names with `__` for the dot.

    Raises:
        ConfigError: names the flag or key, what was found and what was expected.
    """
    from llm_labeler._settings import LabelSettings
    from pairkit.config import load_settings

    if polarity is not None and polarity not in _POLARITIES:
        raise ConfigError(f"--polarity {polarity}: expected positive, negative or both")
    given = {name.replace("__", "."): value for name, value in flags.items()}
    given["prompt.polarities"] = None if polarity is None else _POLARITIES[polarity]
    return load_settings(LabelSettings, file=config, assignments=sets or (), flags=given)
