"""Folders of runs: locks, the record (run.json) by which a run is finished or continued, and its hashes."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pairkit import __version__
from pairkit.base.cli.terminal import CommandResult
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line
from pairkit.base.system.files import remove, sha256, write_json
from pairkit.base.system.folders import (
    LOCK_FILE,
    check_place,
    check_same_run,
    lock_folder,
    try_read_json_object,
)

if TYPE_CHECKING:
    from torch import nn
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

    from aoe_train.objectives.training_rows import Examples
    from pairkit.dataset.reading.in_memory import Source


RUN_FILE = "run.json"
_MADE_BY = "aoe "


@dataclass(frozen=True)
class OutputResult(CommandResult):
    """Base of results that are a file or folder."""

    out: Path

    def tables(self) -> list[str]:
        """The path."""
        return [str(self.out)]

    def to_dict(self) -> dict[str, Any]:
        """The `--json` object."""
        return {**asdict(self), "out": str(self.out)}

    @classmethod
    def from_facts(cls, out: Path, facts: Mapping[str, Any]) -> Self:
        """The result that a folder's run.json records."""
        recorded: Any = {field.name: facts.get(field.name) for field in fields(cls)}
        return cls(**{**recorded, "out": out})


def work_beside(out: Path) -> Path:
    """The working folder of a run: `OUT.work`."""
    check_place(out, "a model", "model")
    has_files = out.is_dir() and any(out.iterdir())
    if has_files and read_run(out) is None:
        raise ConfigError(
            f"{out}: contains other files than a model of `aoe train`; choose another --out"
        )
    return out.with_name(out.name + ".work")


@contextmanager
def working_folder(work: Path) -> Iterator[None]:
    """Lock a working folder; the lock ends with the process, even if it is killed."""
    with lock_folder(
        work, "in use by another run; wait for it or choose another --out"
    ):
        try:
            yield
        finally:
            left = {path.name for path in work.glob("*")}
            if left and left <= {LOCK_FILE, RUN_FILE}:  # nothing to resume from
                shutil.rmtree(work)


def read_run(folder: Path) -> dict[str, Any] | None:
    """The run.json in a folder; None if there is none of `aoe train`."""
    run = try_read_json_object(folder / RUN_FILE) or {}
    is_ours = str(run.get("made_by")).startswith(_MADE_BY)
    return run if is_ours and isinstance(run.get("origin"), dict) else None


def exported_there(out: Path, command: str, *, fresh: bool) -> dict[str, Any] | None:
    """The facts that `aoe export` or `aoe distill` recorded in `out`.

    Returns None if `out` is missing or empty, or if `fresh` replaces it. Raises ConfigError if `out` contains
    anything else.
    """
    check_place(out, "a model", "model")
    if not out.exists() or not any(out.iterdir()):
        return None
    facts = (try_read_json_object(out / RUN_FILE) or {}).get(command)
    if not isinstance(facts, dict):
        raise ConfigError(
            f"{out}: already exists, and isn't a model of `aoe {command}`; choose another --out"
        )
    return None if fresh else facts


def begin_or_go_on(
    out: Path,
    work: Path,
    origin: Mapping[str, object],
    *,
    fresh: bool,
) -> dict[str, object] | None:
    """Prepare the working folder for a run; returns the record of a finished one."""
    finished = None
    if fresh:
        clear(work)
    else:
        finished = read_run(out)
    for folder, run in ((out, finished), (work, read_run(work))):
        if run is None:
            continue
        check_same_run(folder, run["origin"], origin)
        if "diverged" in run:  # it would diverge again
            raise ConfigError(f"{folder}: {one_line(str(run['diverged']), 4096)}")
    if finished is None:
        _write_run(work, origin)
    return finished


def mark_diverged(work: Path, origin: Mapping[str, object], message: str) -> None:
    """Record that this run diverged, so that it isn't resumed."""
    _write_run(work, origin, diverged=message)


def _write_run(work: Path, origin: Mapping[str, Any], **more: str) -> None:
    write_json(work / RUN_FILE, {"made_by": "aoe train", "origin": origin, **more})


def clear(work: Path) -> None:
    """Empty a working folder, except for its lock."""
    for path in work.iterdir():
        if path.name != LOCK_FILE:
            remove(path)


def hash_examples(examples: Examples) -> str:
    """SHA-256 of texts, rows and labels, independent of their file."""
    digest = hashlib.sha256(examples.kind.encode())
    for text in examples.texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    for array in (examples.rows, examples.labels):
        if array is not None:
            flat = np.ascontiguousarray(array).reshape(-1)
            digest.update(flat.data)  # no copy: it may be mapped from disk
    return digest.hexdigest()


def add_texts(digest: hashlib._Hash, texts: Iterable[str]) -> None:
    """Add texts to a digest, each after its length."""
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)


def hash_weights(model: nn.Module) -> str:
    """SHA-256 of a model's weights."""
    import torch  # slow to import, and `versions` doesn't need it

    digest = hashlib.sha256()
    for name, weight in sorted(model.named_parameters()):
        flat = weight.detach().cpu().contiguous().flatten()
        digest.update(name.encode())
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def hash_tokenizer(tokenizer: PreTrainedTokenizerFast) -> str:
    """SHA-256 of a tokenizer, except for truncation and padding, which every caller sets."""
    parts: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    parts.pop("truncation", None)
    parts.pop("padding", None)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def hash_config(config: PretrainedConfig) -> str:
    """SHA-256 of a backbone's configuration, except for its origin."""
    parts: dict[str, Any] = config.to_dict()
    for origin in ("_name_or_path", "transformers_version", "architectures"):
        parts.pop(origin, None)
    return digest_of(parts)


def digest_of(identity: Mapping[str, object] | Sequence[str]) -> str:
    """SHA-256 of a model's identity, or of other values as JSON."""
    text = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_files(source: Source | None) -> dict[str, str]:
    """SHA-256 of a data source's files by name; empty for a Hub dataset or rows in memory."""
    if not isinstance(source, str | Path):
        return {}
    # Not at the top: it imports polars, which encoding doesn't need.
    from pairkit.dataset.reading.parts import files_of

    files = files_of(source)
    root = Path(source)
    if not root.is_dir():
        folders = [str(file.parent) for file in files]
        root = Path(os.path.commonpath(folders or ["."]))
    return {str(file.relative_to(root)): sha256(file) for file in files}


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that affect a model."""
    libraries = ("torch", "transformers", "tokenizers", "numpy")
    return {
        "aoe-toolkit": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
    }


def cache_dir(kind: str) -> Path:
    """`$AOE_CACHE/<kind>`, or by default `~/.cache/aoe-toolkit/<kind>`; all of it may be deleted."""
    folder = os.environ.get("AOE_CACHE")
    root = Path(folder) if folder else Path.home() / ".cache/aoe-toolkit"
    return root / kind
