"""Options that public functions of several packages share."""

from __future__ import annotations

from pairkit.base.cli.options import INPUT, OUTPUT, RUN, Option, Options
from pairkit.base.errors import ConfigError

_BY_NUMBER = {1: ("text",), 2: ("anchor", "positive"), 3: ("text1", "text2", "label")}


def columns_given(text: str | None) -> dict[str, str] | None:
    """Columns from a flag: by role, or by numbers such as `1,2,3` for files without a header."""
    numbers = [part.strip() for part in (text or "").split(",")]
    if not all(part.isdecimal() for part in numbers):
        return mapping("--columns", text)
    if len(numbers) not in _BY_NUMBER:
        raise ConfigError(
            f"--columns {text}: expected the numbers of two texts and the label, as in 1,2,3, of an"
            " anchor and its positive, as in 1,2, or of single texts, as in 1"
        )
    return dict(zip(_BY_NUMBER[len(numbers)], numbers, strict=True))


def mapping(flag: str, text: str | None) -> dict[str, str] | None:
    """A mapping from `name=value,name=value`; None if empty."""
    pairs = {}
    for part in filter(None, (text or "").split(",")):
        key, _, value = map(str.strip, part.partition("="))
        if not key or not value or key in pairs:
            raise ConfigError(
                f"{flag} {text}: expected name=value,name=value, each name once"
            )
        pairs[key] = value
    return pairs or None


SHARED = Options(
    columns=Option(
        "Roles of the columns, such as text1=title,label=same; 1,2,3 without a header line. The roles are"
        " `text1`, `text2` and `label`, or `anchor`, `positive` and `negative` (or `negative_1`,"
        " `negative_2`, …). In Python a mapping of roles to names. Default: recognised by name.",
        metavar="A=B,…",
        panel=INPUT,
        read=columns_given,
    ),
    labels=Option(
        "Number for each label in the data, such as yes=1,no=0,unsure=skip; skip leaves rows out. In Python"
        ' also a mapping, such as `{"entailment": 1, "neutral": "skip"}`. Labels that are not named keep'
        " their usual meaning, such as 1 and 0 for yes and no. Default: recognised by value.",
        metavar="LABEL=N,…",
        panel=INPUT,
    ),
    label_range=Option(
        "Lowest and highest score, such as 0,100, which become 0 and 1. Default: 0 to 1 or 0 to 5, as"
        " recognised.",
        metavar="LOW,HIGH",
        panel=INPUT,
    ),
    bad_rows=Option(
        "What to do with rows that lack a text or label: error or skip. Skipped rows are counted on stderr;"
        " OUT.bad-rows.jsonl, next to an output folder, lists them with their reasons.",
        metavar="NAME",
        panel=INPUT,
    ),
    out=Option(
        "Folder of the dataset.",
        short="-o",
        metavar="DIR",
        panel=OUTPUT,
        main=True,
    ),
    seed=Option("Seed of every random choice.", panel=RUN),
    config=Option(
        "A TOML file of settings.",
        short="-c",
        metavar="FILE",
        panel=RUN,
    ),
    settings=Option(
        "One setting as key=value; repeatable. In Python a mapping of dotted keys to values. Settings"
        " override `config`; the other arguments override both.",
        long="--set",
        metavar="KEY=VALUE",
        panel=RUN,
        repeat=True,
    ),
    fresh=Option(
        "Replace a result that was made from other input or with other settings.",
        panel=OUTPUT,
    ),
    progress=Option(
        "Whether to show progress on stderr, or a function that receives each `pairkit.Progress`."
    ),
)
