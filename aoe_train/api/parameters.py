"""Flags, loading, notes and next steps that several public functions share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pairkit.base.cli.options import INPUT, OUTPUT, RUN, Option, parameter
from pairkit.base.cli.progress import Listener, stage
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line
from pairkit.dataset.shared_options import SHARED

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder

T = TypeVar("T")

MODEL = "Model"
# A prompt of one column, such as anchor=query:
_COLUMN_PROMPT = re.compile(
    r"(text[12]?|anchor|positive|negative(?:_\d+)?|query|document)=(.*)", re.DOTALL
)

options = SHARED.extended(
    texts=Option(metavar="INPUT", positional=True),
    data=Option(short="-d", metavar="DATA", panel=INPUT, main=True),
    model=Option(
        "A folder, a Hub id, minilm or smollm2; also a static model. In Python also an `Encoder`.",
        short="-m",
        metavar="MODEL",
        panel=INPUT,
        main=True,
    ),
    prompt_name=Option(
        "Name of one of the model's prompts, such as query. Default: its default prompt.",
        metavar="NAME",
        panel=MODEL,
    ),
    prompt=Option(
        "Prompt before each text, or around {text}; '' for none. Default: the prompt of --prompt-name.",
        metavar="TEXT",
        panel=MODEL,
    ),
    layers=Option(
        "Use only the first N layers of the model. Default: all.", panel=MODEL
    ),
    dim=Option(panel=OUTPUT, main=True),
    precision=Option(
        "Precision of the model: fp32, bf16, fp16, int8 (CPU only) or auto. auto is bf16 on a GPU that"
        " supports it, else fp32, as is bf16 on a processor without it. Default: auto.",
        metavar="NAME",
        panel=RUN,
    ),
    calibration=Option(metavar="FILE", panel=OUTPUT),
    split=Option(metavar="NAME", panel=INPUT),
    cache=Option(panel=RUN),
    folder=Option("An index that `aoe index` built.", metavar="INDEX", positional=True),
    by=Option(
        "What ranks texts: both, model (vectors) or words (BM25).",
        metavar="NAME",
        panel=RUN,
    ),
    weight=Option(
        "Weight of vectors against BM25, from 0 to 1. Default: by the index's purpose; 0.65 without one.",
        panel=RUN,
    ),
    fresh=replace(SHARED["fresh"], text="Replace the output of another run."),
)
optional = partial(parameter, default=None)
"""Declares an argument of a request that is None by default."""
FILE = Option(short="-o", metavar="FILE", panel=OUTPUT, main=True)
FOLDER = replace(
    SHARED["out"], text="Folder of the dataset. None writes nothing.", required=True
)


def named_sources(arguments: list[str]) -> Any:
    """One source, or several by name; None without any."""
    # This imports polars, which would be too slow for --help.
    from pairkit.dataset.reading.named_sources import named_words

    return named_words(arguments) if arguments else None


def one_or_several(names: list[str]) -> Any:
    """A name, a list of several, or None without any."""
    return names if len(names) > 1 else next(iter(names), None)


def as_list(models: T | Sequence[T] | None) -> list[T]:
    """Models from one, several or none."""
    if models is None:
        return []
    if isinstance(models, str) or not isinstance(models, Sequence):
        return [models]
    return [*models]


def column_prompts(arguments: list[str]) -> str | dict[str, str] | None:
    """One prompt for all texts, or a mapping from `column=prompt` items; None without any."""
    by_column = {}
    for text in arguments:
        match = _COLUMN_PROMPT.fullmatch(text)
        if match is not None:
            if match[1] in by_column:
                raise ConfigError(
                    f"--prompts {text}: a second prompt of {match[1]}; give one"
                )
            by_column[match[1]] = match[2]
        elif len(arguments) == 1:
            return text
        else:
            raise ConfigError(
                f"--prompts {text}: one of several prompts without a column; expected each as COLUMN=PROMPT,"
                " such as anchor='query: '"
            )
    return by_column or None


def loaded(
    model: str | Path | Encoder,
    precision: str | None,
    show: Listener,
    say: Callable[[str], None],
    device: str | None = None,
    *,
    layers: int | None = None,
) -> Encoder:
    """The encoder itself, or one loaded for inference."""
    from aoe_train.encoding.embedders.embedder import load_encoder, refuse_options
    from aoe_train.model.encoder import Encoder

    if isinstance(model, Encoder):
        refuse_options(
            "a loaded Encoder", layers=layers, device=device, precision=precision
        )
        return model
    if not isinstance(model, str | Path):
        raise ConfigError(
            f"model = {one_line(repr(model), 100)}: expected a folder, a Hub id or an Encoder (a run has one as"
            " `encoder`)"
        )
    with stage(f"load {model}", show):
        return load_encoder(model, precision, say, device=device, layers=layers)


def notes(progress: bool | Listener) -> Callable[[str], None]:
    """A function that prints notes to stderr if progress is shown there."""
    from pairkit.base.cli.terminal import say

    return lambda message: say(message, quiet=progress is not True)


def judge_command(folder: str, purpose: str | None) -> list[str]:
    """The command that asks people about all sampled pairs, by the purpose of the model."""
    from pairkit.reviews.review_sample import SEARCH

    # The question of the purpose match is the default of `pairs review`.
    questions = {
        "group": "Do both texts belong to the same topic or intent?",
        "search": SEARCH,
    }
    command = ["pairs", "review", folder, "--no-grades", "--n", "400"]
    if purpose in questions:
        command += ["--question", questions[purpose]]
    return command


def compare_command(model: str, other: str, data: str) -> list[str]:
    """The command that compares two models."""
    models = ["--model", model, "--against", other]
    return ["aoe", "evaluate", *models, "--data", data]


def review_steps(
    model: str, backbone: str, data: str, purpose: str | None
) -> list[tuple[str, list[str]]]:
    """Commands that sample pairs of the training texts, have them judged, and evaluate."""
    models = ["--model", model, "--model", backbone]
    sample = ["aoe", "sample-pairs", "--data", data, *models, "--out", "to-judge"]
    if purpose is not None:
        sample += ["--purpose", purpose]
    return [
        ("sample pairs of your own texts", sample),
        (
            "judge them; 400 pairs usually show a gain of 1.2 points of AUC",
            judge_command("to-judge", purpose),
        ),
        (
            "compare the model with its backbone",
            compare_command(model, backbone, "to-judge.review"),
        ),
    ]
