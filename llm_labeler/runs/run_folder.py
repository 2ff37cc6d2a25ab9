"""The working folder of a run: its answers and sentences, its settings, and what run.json records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from llm_labeler.records import POLARITIES, AskKey, Text
from llm_labeler.runs.prompts import Template
from llm_labeler.settings import LabelSettings
from pairkit import __version__
from pairkit.app.errors import ConfigError, DataError
from pairkit.dataset.parquet import read_parquet, write_parquet
from pairkit.system.files import write_bytes
from pairkit.system.folders import made_there

_COMMAND = "label"
# Settings that bear on one task alone: elsewhere nothing is said of them, as they change nothing.
_OF_TRIPLETS = (("prompt", "changes"), ("filters", "min_kept"))


def check_out(out: Path, run: Mapping[str, Any], *, fresh: bool) -> None:
    """Refuse an output folder that holds what a run must not replace."""
    there = made_there(out, _COMMAND, "input")
    if there is not None and not fresh and _made_of(there) != _made_of(run):
        raise ConfigError(
            f"{out}: holds a dataset made from another input, or with other settings or LLMs; give fresh"
            " (--fresh) to replace it, or another out (--out)"
        )


def _made_of(run: Mapping[str, Any]) -> tuple[Any, ...]:
    """What makes two datasets the same; the input's name does not, and a newer toolkit may fix one."""
    return run["input"].get("sha256"), run.get("settings"), run.get("llms"), run.get("prompts")


STORE_FILE = "answers.sqlite"
RUN_FILE = "run.json"
TEXTS_FILE = "texts.parquet"
CANDIDATES_FILE = "candidates.parquet"
IN_USE = "another label process works in it; wait for it or choose another work folder (--work)"
_TEXTS = {"text_id": pl.String, "text": pl.String, "row": pl.Int64}


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Inputs of a run; with the stored answers they determine its dataset."""

    settings: LabelSettings
    template: Template
    parameters: Mapping[str, tuple[str, str]]
    source: str
    sha256: str
    dropped_texts: Mapping[str, int]

    @property
    def prompts(self) -> dict[str, str]:
        """The templates by polarity; where there are some, system message and which examples are shown."""
        system = {"system": self.template.system} if self.template.system else {}
        if self.template.shown:
            system["examples"] = self.template.shown
        wanted = self.settings.prompt.polarities
        return {**system, **{polarity: self.template.user[polarity] for polarity in wanted}}

    def made_of(self) -> dict[str, Any]:
        """What run.json says: nothing that differs from one run to the next, and no credential."""
        settings = self.settings
        kept = settings.model_dump(mode="json", exclude={"llm", "budget", "breaker", "local_only"})
        for section, name in _OF_TRIPLETS if settings.task != "triplet" else ():
            del kept[section][name]
        kept["llms"] = [*settings.proposers]
        kept["prompt"]["template"] = Path(settings.prompt.template).name
        # Unused settings are left out, so that datasets made before a setting existed still compare equal.
        if settings.samples == 1:
            del kept["samples"]
        if settings.input.draw is None:
            del kept["input"]["draw"]
        if settings.prompt.examples is None:
            del kept["prompt"]["examples"]
        else:
            kept["prompt"]["examples"] = settings.prompt.examples.name
        llms = {
            name: {
                "kind": settings.llm[name].kind,
                "model": settings.llm[name].model,
                "parameters": json.loads(words),
            }
            for name, (_, words) in sorted(self.parameters.items())
        }
        return {
            "made_by": f"{_COMMAND} (aoe-toolkit {__version__})",
            "settings": kept,
            "llms": llms,
            "prompts": self.prompts,
            "input": {"name": self.source, "sha256": self.sha256},
        }

    def asks(self, key: AskKey) -> bool:
        """Whether a question is of this run, and not of an earlier one with other LLMs or parameters."""
        return self.parameters.get(key.llm, ("", ""))[0] == key.parameters


def save_run(work: Path, record: RunRecord, texts: Sequence[Text]) -> None:
    """Save the run's inputs, readable only by the owner: the sentences may be confidential."""
    columns = [[text.text_id for text in texts], [text.text for text in texts], [text.row for text in texts]]
    frame = pl.DataFrame(columns, schema=_TEXTS)
    write_parquet(work / TEXTS_FILE, frame, private=True)
    run = {
        "settings": record.settings.model_dump(mode="json"),
        "template": asdict(record.template),
        "parameters": {name: list(parameters) for name, parameters in record.parameters.items()},
        "source": record.source,
        "sha256": record.sha256,
        "dropped_texts": dict(record.dropped_texts),
    }
    data = json.dumps(run, indent=2, ensure_ascii=False) + "\n"
    write_bytes(work / RUN_FILE, data.encode("utf-8", "replace"), private=True)


def load_run(work: Path) -> tuple[RunRecord, tuple[Text, ...]]:
    """The run that last worked in this folder, and its sentences."""
    return load_run_record(work), tuple(Text(*row) for row in read_private(work / TEXTS_FILE).iter_rows())


def load_run_record(work: Path) -> RunRecord:
    """The same without the sentences."""
    path = work / RUN_FILE
    if not path.is_file():
        raise ConfigError(
            f"{work}: not a working folder of `label generate`; give its OUT.work as work (--work)"
        )
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
        return RunRecord(
            LabelSettings.model_validate(run["settings"]),
            _template(run["template"]),
            {name: (digest, words) for name, (digest, words) in run["parameters"].items()},
            run["source"],
            run["sha256"],
            run["dropped_texts"],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        raise DataError(f"damaged ({error!r:.200}): run `label generate` again", path=path) from error


def _template(run: Mapping[str, Any]) -> Template:
    examples = {
        polarity: tuple((text, tuple(said)) for text, said in run.get("examples", {}).get(polarity, ()))
        for polarity in POLARITIES
    }
    return Template(run["name"], run["user"], run["system"], examples if any(examples.values()) else {})


def read_private(path: Path) -> pl.DataFrame:
    """Read a table of the working folder."""
    if not path.exists():
        raise ConfigError(f"{path}: not there; run `label generate` or `label parse` first")
    return read_parquet(path)


def format_counts(values: Mapping[str, Any]) -> str:
    """Counts by name as one phrase: `empty 3, repeated 1`."""
    return ", ".join(f"{name} {count:,}" for name, count in sorted(values.items()))
