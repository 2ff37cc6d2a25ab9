"""The working folder of a run (answers, sentences, settings), and the dataset's run.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter

from llm_labeler.judging.questions import CANDIDATES
from llm_labeler.records import AskKey, Text
from llm_labeler.runs.prompts import Template
from llm_labeler.settings import LabelSettings
from pairkit import __version__
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.files import write_bytes
from pairkit.base.system.folders import check_same_run, existing_run
from pairkit.dataset.table_files import read_parquet, write_parquet

_COMMAND = "label"
STORE_FILE = "answers.sqlite"
RUN_FILE = "run.json"
TEXTS_FILE = "texts.parquet"
CANDIDATES_FILE = "candidates.parquet"
IN_USE = "in use by another label process; wait for it or choose another --work"
_TEXTS = {"text_id": pl.String, "text": pl.String, "row": pl.Int64}


def check_out(out: Path, run: Mapping[str, object], *, fresh: bool) -> None:
    """Refuse to replace a dataset that was made in another way."""
    existing = existing_run(out, _COMMAND, "input")
    if existing and not fresh:
        check_same_run(out, _identity(existing), _identity(run))


def _identity(run: Mapping[str, Any]) -> dict[str, object]:
    """The parts of run.json that decide whether a dataset may be replaced; version and file name don't."""
    return {
        "input": run["input"].get("sha256"),
        **{key: run.get(key) for key in ("settings", "llms", "prompts")},
    }


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Inputs of a run; with the stored answers they determine its dataset."""

    settings: LabelSettings
    template: Template
    # The hash of each LLM's parameters, and these as JSON.
    parameters: Mapping[str, tuple[str, str]]
    source: str
    sha256: str
    dropped_texts: Mapping[str, int]

    @property
    def prompts(self) -> dict[str, str]:
        """System message, examples, the question of each polarity, and the judges' instructions."""
        prompts = {}
        if self.template.system:
            prompts["system"] = self.template.system
        if self.template.examples:
            prompts["examples"] = self.template.examples_summary
        for polarity in self.settings.prompt.polarities:
            prompts[polarity] = self.template.user[polarity]
        if self.settings.judges:
            prompts["judge"] = CANDIDATES.instructions
        return prompts

    def run_json(self) -> dict[str, Any]:
        """The content of run.json: nothing that differs between equal runs, and no credential."""
        settings = self.settings
        kept = settings.model_dump(
            mode="json", exclude={"llm", "budget", "breaker", "local_only"}
        )
        kept["llms"] = [*settings.proposers]
        prompt = kept["prompt"]
        # Files are recorded by name, because their folder may be another one.
        prompt["template"] = Path(settings.prompt.template).name
        if settings.prompt.examples is None:
            del prompt["examples"]
        else:
            prompt["examples"] = settings.prompt.examples.name
        # Settings without effect are left out.
        if not settings.labelling.has_hard_negatives:
            del prompt["changes"]
            del kept["filters"]["min_kept"]
        if settings.samples == 1:
            del kept["samples"]
        if settings.input.draw is None:
            del kept["input"]["draw"]
        llms = {
            name: {
                "kind": settings.llm[name].kind,
                "model": settings.llm[name].model,
                "parameters": json.loads(parameters),
            }
            for name, (_, parameters) in sorted(self.parameters.items())
        }
        return {
            "made_by": f"{_COMMAND} (aoe-toolkit {__version__})",
            "settings": kept,
            "llms": llms,
            "prompts": self.prompts,
            "input": {"name": self.source, "sha256": self.sha256},
        }

    def asks(self, key: AskKey) -> bool:
        """Whether a question belongs to this run, not to an earlier one with other LLMs or parameters."""
        digest, _ = self.parameters.get(key.llm, ("", ""))
        return digest == key.parameters


_RUN_RECORD = TypeAdapter(RunRecord)


def save_run(work: Path, record: RunRecord, texts: Sequence[Text]) -> None:
    """Save the run's inputs, readable only by the owner, as the sentences may be confidential."""
    rows = [(text.text_id, text.text, text.row) for text in texts]
    frame = pl.DataFrame(rows, schema=_TEXTS, orient="row")
    write_parquet(work / TEXTS_FILE, frame, private=True)
    run = _RUN_RECORD.dump_python(record, mode="json")
    data = json.dumps(run, indent=2, ensure_ascii=False) + "\n"
    write_bytes(work / RUN_FILE, data.encode("utf-8", "replace"), private=True)


def load_run(work: Path) -> tuple[RunRecord, tuple[Text, ...]]:
    """Load the record and the sentences of the last run in this folder."""
    record = load_run_record(work)  # refuses a folder without sentences
    path = work / TEXTS_FILE
    texts = read_parquet(path)
    if texts.schema != _TEXTS:
        raise _damaged(path, "other columns")
    return record, tuple(Text(*row) for row in texts.iter_rows())


def load_run_record(work: Path) -> RunRecord:
    """Load the record of the last run in this folder."""
    path = work / RUN_FILE
    if not (work / TEXTS_FILE).is_file():  # the dataset has a run.json, too
        raise ConfigError(
            f"{work}: not a working folder of `label generate`; give its OUT.work as --work"
        )
    try:
        return _RUN_RECORD.validate_json(path.read_bytes())
    except (OSError, ValueError) as error:  # also pydantic's ValidationError
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, reason: str) -> DataError:
    """The error of a file that no run wrote."""
    return DataError(
        f"damaged ({one_line(reason, 200)}): run `label generate` again", path=path
    )


def read_private(path: Path) -> pl.DataFrame:
    """Read a table of the working folder."""
    if not path.exists():
        raise ConfigError(
            f"{path}: no such file; run `label generate` or `label parse` first"
        )
    return read_parquet(path)
