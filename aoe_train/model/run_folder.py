"""The folders of a run, the record by which one run is told from another, and the cache."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairkit import __version__
from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line
from pairkit.system.files import remove, sha256, write_json
from pairkit.system.folders import LOCK_FILE, check_place, differing, held_folder, read_own

if TYPE_CHECKING:
    from torch import nn
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

    from aoe_train.records import Examples
    from aoe_train.settings.training import EncoderSettings, TrainSettings
    from pairkit.dataset.in_memory import Source


RUN_FILE = "run.json"
_MADE_BY = "aoe "


def work_beside(out: Path) -> Path:
    """The working folder of a run: `OUT.work`."""
    check_place(out, "a model", "model")
    if out.is_dir() and any(out.iterdir()) and read_run(out) is None:
        raise ConfigError(f"{out}: holds files that are no model of `aoe train`; choose another --out")
    return out.with_name(out.name + ".work")


@contextmanager
def working_folder(work: Path) -> Iterator[None]:
    """Hold a working folder for this process alone; the lock ends with the process, however it ends."""
    with held_folder(work, "another run works in it; wait for it or choose another --out"):
        try:
            yield
        finally:
            left = {path.name for path in work.glob("*")}
            if left and left <= {LOCK_FILE, RUN_FILE}:  # nothing to go on from
                shutil.rmtree(work)


def read_run(folder: Path) -> dict[str, Any] | None:
    """The run.json in a folder; None where there is none of ours."""
    run = read_own(folder / RUN_FILE)
    if run is None or not str(run.get("made_by", "")).startswith(_MADE_BY):
        return None
    return run if isinstance(run.get("origin"), dict) else None


def begin_or_go_on(out: Path, work: Path, origin: Mapping[str, Any], *, fresh: bool) -> dict[str, Any] | None:
    """Make the working folder fit for this run."""
    if fresh:
        clear(work)
    else:
        for place in (out, work):
            run = read_run(place)
            if run is not None and (differences := differing(run["origin"], origin)):
                raise ConfigError(
                    f"{place}: made by another run, which differs in {'; '.join(differences)}; give --fresh "
                    "to replace it, or another --out"
                )
            if run is not None and "diverged" in run:  # it would do so again
                raise ConfigError(f"{place}: {one_line(str(run['diverged']), 4096)}")
        if finished := read_run(out):
            return finished
    write_json(work / RUN_FILE, {"made_by": _MADE_BY + "train", "origin": origin})
    return None


def mark_diverged(work: Path, origin: Mapping[str, Any], message: str) -> None:
    """Note in the working folder that this run came to nothing, so that it isn't gone on with."""
    write_json(work / RUN_FILE, {"made_by": _MADE_BY + "train", "origin": origin, "diverged": message})


def clear(work: Path) -> None:
    """Take everything out of a working folder but its lock."""
    for path in work.iterdir():
        if path.is_dir():
            remove(path)
    (work / RUN_FILE).unlink(missing_ok=True)


# Of a configuration, what says where it came from.
_ABOUT = ("_name_or_path", "transformers_version", "architectures")


def origin(
    settings: TrainSettings,
    *,
    data: Mapping[str, Examples],
    dev_data: Mapping[str, Examples],
    backbone: str,
    tokenizer: str,
    prompts: EncoderSettings,
    precision: str,
    processes: int,
    own: Mapping[str, str] | None = None,
    advisers: Mapping[str, Any] | None = None,
    judged: str | None = None,
) -> dict[str, Any]:
    """The settings but for those that only tell or keep or say where rows lie, and hashes of what goes in.

    `data` and `dev_data` are the rows of each dataset and dev set; a single one's name says nothing.
    `prompts` are those that the backbone's folder knows, with what was given for the encoder.
    `own` are the names of losses of one's own, by dataset. `advisers` are the identities of a guide and a
    teacher, by which they are known instead of their names. `judged` is a hash of the pairs that decide
    whether the model is kept.
    """
    hashed, held_out = (
        {name: hash_examples(rows) for name, rows in rows_of.items()} for rows_of in (data, dev_data)
    )
    alone = len(hashed) == 1
    named = {"guide": {"model", "revision"}, "teacher": {"model", "revision", "scores"}}
    settled = settings.model_dump(mode="json", exclude={"log": True, "card": True, **named})
    for section in settled["datasets"].values():  # where rows are found decides nothing
        section.pop("data"), section.pop("dev_data")
    return {
        **({"objective": next(iter(own.values())) if alone else dict(own)} if own else {}),
        **(advisers or {}),
        **({} if judged is None else {"judged": judged}),
        "settings": settled,
        "data": next(iter(hashed.values())) if alone else hashed,
        "dev_data": (next(iter(held_out.values()), None) if len(held_out) < 2 else held_out),
        "backbone": backbone,
        "tokenizer": tokenizer,
        "prompts": prompts.model_dump(include={"prompts", "default_prompt_name", "include_prompt"}),
        "precision": precision,
        "processes": processes,
    }


def hash_examples(examples: Examples) -> str:
    """SHA-256 of texts, rows and labels, whatever file they came in."""
    digest = hashlib.sha256(examples.kind.encode())
    for text in examples.texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    for array in (examples.rows, examples.labels):
        if array is not None:
            digest.update(np.ascontiguousarray(array).reshape(-1).data)  # no copy, as it may lie on disk
    return digest.hexdigest()


def hash_weights(model: nn.Module) -> str:
    """SHA-256 of a model's weights, wherever they were loaded from."""
    import torch  # who asks for `versions` alone need not wait for it

    digest = hashlib.sha256()
    for name, weight in sorted(model.named_parameters()):
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def hash_tokenizer(tokenizer: PreTrainedTokenizerFast) -> str:
    """SHA-256 of all that says how a text becomes tokens.

    How long texts are cut and padded is left out: it is set anew by each that tokenises.
    """
    parts: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    lasting = {key: value for key, value in parts.items() if key not in ("truncation", "padding")}
    return hashlib.sha256(json.dumps(lasting).encode()).hexdigest()


def hash_config(config: PretrainedConfig) -> str:
    """SHA-256 of what says how a backbone computes, and not of where it came from."""
    parts = {key: value for key, value in config.to_dict().items() if key not in _ABOUT}
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def hash_files(source: Source | None) -> dict[str, str]:
    """SHA-256 of a data source's files by name; none for a dataset of the Hub or rows in memory."""
    if not isinstance(source, str | Path):
        return {}
    from pairkit.dataset.parts import files_of  # brings polars, which encoding does without

    files = files_of(source)
    home = (
        source if Path(source).is_dir() else os.path.commonpath([str(file.parent) for file in files] or ["."])
    )
    return {str(file.relative_to(home)): sha256(file) for file in files}


def versions() -> dict[str, str]:
    """The programs that made a model."""
    libraries = {name: version(name) for name in ("torch", "transformers", "tokenizers", "numpy")}
    return {"aoe-toolkit": __version__, "python": platform.python_version(), **libraries}


def cache_dir(kind: str) -> Path:
    """`$AOE_CACHE/<kind>`, else `~/.cache/aoe-toolkit/<kind>`; whatever lies there may be deleted."""
    folder = os.environ.get("AOE_CACHE")
    return (Path(folder) if folder else Path.home() / ".cache/aoe-toolkit") / kind
