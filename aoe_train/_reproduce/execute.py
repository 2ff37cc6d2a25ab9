"""One run of a recipe: train, score, and write down what came of it and how."""

from __future__ import annotations

import gc
import hashlib
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pydantic import TypeAdapter

from aoe_train import _train as training
from aoe_train._backbones.load import find_folder
from aoe_train._baselines.flow import fit_flow
from aoe_train._baselines.whitening import whiten
from aoe_train._conflicts import Say
from aoe_train._encoder import Encoder
from aoe_train._evaluate.embedders.local import LocalEmbedder
from aoe_train._evaluate.overlap import overlap, read_digests
from aoe_train._examples import read_examples
from aoe_train._origin import hash_files, versions
from aoe_train._precision import slow_precision
from aoe_train._reproduce.material import Material, material
from aoe_train._reproduce.recipe import slug
from aoe_train._reproduce.scoring import Scoring, score
from aoe_train._run_data import Sources
from aoe_train._word_vectors import is_word_vectors
from pairkit.files import sha256, write_json
from pairkit.named_sources import named_sources
from pairkit.progress import Listener

if TYPE_CHECKING:
    from aoe_train._reproduce.plan import Places, Run
    from aoe_train._reproduce.recipe import AtScale, Texts, Whiten

_DECIDES = (".safetensors", ".json", ".txt", ".model")  # of a backbone's files


@dataclass(frozen=True)
class Record:
    """What came of a run.

    Attributes:
        key: A digest of all that decides the result, which stands in `made_from`.
        scores: Column to figure, in the metric's own range.
        dev: The best figure on the held-out rows; None where nothing was trained or held out.
        overlap: Task to how many of its examples were trained on (all their texts); only where there are any.
        seconds: Of training steps alone; `wall_s` is everything since the last start.
    """

    row: str
    seed: int
    key: str
    backbone: str
    scores: dict[str, float]
    dev: float | None = None
    overlap: dict[str, int] = field(default_factory=dict)
    steps: int = 0
    seconds: float = 0.0
    wall_s: float = 0.0
    made_from: dict[str, Any] = field(default_factory=dict)


class Bench:
    """Where runs are done: folder, data, tasks.

    Args:
        out: Holds runs/, a record for each run, and models/.
        at: What is trained on, and how models are scored.
        places: Where things lie.
        scorings: The table's columns.
        keep: Keep the models.
        say: Told what goes on.
        show: Told how far a run is.
    """

    def __init__(
        self,
        out: Path,
        at: AtScale,
        places: Places,
        scorings: Sequence[Scoring],
        *,
        keep: bool,
        say: Say,
        show: Listener,
    ) -> None:
        self.out, self.at, self.places, self.scorings = out, at, places, scorings
        self.keep, self.say, self.show = keep, say, show
        # What reading and hashing found, so that it is done once and not for each look at a record.
        self._backbones: dict[str, Mapping[str, str]] = {}
        self._materials: dict[str, Material] = {}
        self._keys: dict[tuple[str, int], str] = {}
        self._told: set[str] = set()

    @property
    def titles(self) -> list[str]:
        """The table's columns, in order."""
        return [title for scoring in self.scorings for title in scoring.titles]

    def record(self, run: Run) -> Record | None:
        """What an earlier start of the same run left; None where it is to be done."""
        path = self._path(run)
        if not path.is_file():
            return None
        try:
            return TypeAdapter(Record).validate_json(path.read_bytes())
        except (OSError, ValueError):
            self.say(f"{path}: no record that can be read; the run is done again")
            return None

    def do(self, run: Run) -> Record:
        """Train and score; a training that was killed goes on where it was.

        Raises:
            ConfigError, DataError, RemoteError: see `aoe_train._train.train`.
        """
        begun = time.perf_counter()
        trained = self._train(run)
        encoder, source = self._load(run)
        if slow := slow_precision(self.at.precision, encoder.device):
            self._say_once(f"scored in {self.at.precision}: {slow}")
        scores = score(LocalEmbedder(encoder, source), self.scorings)
        found = Record(
            row=run.row,
            seed=run.seed,
            key=self._key(run),
            backbone=run.backbone,
            scores=scores,
            dev=trained.get("dev"),
            overlap=self._overlap(run),
            steps=trained.get("steps", 0),
            seconds=trained.get("seconds", 0.0),
            wall_s=round(time.perf_counter() - begun, 1),
            made_from={**self._decides(run), "versions": versions()},
        )
        write_json(self._path(run), asdict(found))
        return found

    def clear(self, run: Run) -> None:
        """Remove the model of a run that has its record, unless models are kept."""
        if not self.keep:
            model = self._model(run)
            for folder in (model, model.with_name(model.name + ".work")):
                shutil.rmtree(folder, ignore_errors=True)

    def _train(self, run: Run) -> dict[str, Any]:
        if not run.train:
            return {}
        chosen = self._material(run.texts)
        sources = Sources(
            named_sources(chosen.train),
            run.backbone,
            self._model(run),
            dev_data=None if chosen.dev is None else named_sources(chosen.dev),
        )
        settings = run.settings
        if chosen.labels is not None:
            data = settings.data.model_copy(update={"labels": dict(chosen.labels)})
            settings = settings.model_copy(update={"data": data})

        told = training.train(
            sources, settings, say=lambda words: self._say_once(words, run.row), progress=self.show
        )
        gc.collect()  # the trainer's cycles hold the model, which is about to be loaded once more
        if torch.accelerator.is_available():
            torch.accelerator.empty_cache()
        result: dict[str, Any] = told["result"]
        return result

    def _load(self, run: Run) -> tuple[Encoder, str]:
        if run.train:
            source, reads = str(self._model(run)), dict[str, Any]()
        else:
            source, reads = run.backbone, run.settings.encoder.model_dump(exclude_unset=True)
        encoder = Encoder.load(source, precision=self.at.precision, inference_only=True, **reads)
        if run.whiten is not None:
            texts = read_examples(self._material(run.whiten).train).texts
            whiten(encoder, texts, run.whiten.dim, progress=self.show)
        if run.flow is not None:
            texts = read_examples(self._material(run.flow).train).texts
            fit_flow(encoder, texts, seed=run.seed, progress=self.show)
        return encoder, source

    def _say_once(self, words: str, row: str = "") -> None:
        """Tell what is true of many runs, as they read the same data, of the first of them."""
        if words not in self._told:
            self._told.add(words)
            self.say(f"{row}: {words}" if row else words)

    def _overlap(self, run: Run) -> dict[str, int]:
        trained = read_digests(self._model(run)) if run.train else None
        if trained is None:
            return {}
        tasks = [task for scoring in self.scorings for task in scoring.tasks]
        rows = {task.name: overlap(task, trained).rows for task in tasks}
        return {name: number for name, number in rows.items() if number}

    def _material(self, texts: Texts | None) -> Material:
        name = repr(texts)
        if name not in self._materials:
            self._materials[name] = material(self.at.source, self.places, texts)
        return self._materials[name]

    def _decides(self, run: Run) -> dict[str, Any]:
        """All that decides a run's figures; where nothing is trained, less."""
        chosen = self._material(run.texts) if run.train else None
        trained = chosen and {
            "settings": run.settings.model_dump(mode="json", exclude={"log", "card"}),
            "train": hash_files(chosen.train) or chosen.train,
            "dev": hash_files(chosen.dev) or chosen.dev,
            "labels": chosen.labels,
        }
        accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return {
            "backbone": self._hashes(run.backbone),
            "reads": run.settings.encoder.model_dump(mode="json"),
            "trained": trained,
            **self._whitened(run.whiten),
            **self._flowed(run),
            "columns": [
                {"column": scoring.column.model_dump(mode="json"), "files": dict(scoring.files)}
                for scoring in self.scorings
            ],
            "precision": self.at.precision,
            "device": accelerator.type if accelerator else "cpu",
        }

    def _whitened(self, whiten: Whiten | None) -> dict[str, Any]:
        if whiten is None:
            return {}
        return {"whitened": {"texts": hash_files(self._material(whiten).train), "dim": whiten.dim}}

    def _flowed(self, run: Run) -> dict[str, Any]:
        if run.flow is None:
            return {}
        return {"flowed": {"texts": hash_files(self._material(run.flow).train), "seed": run.seed}}

    def _hashes(self, backbone: str) -> Mapping[str, str]:
        if backbone not in self._backbones:
            if is_word_vectors(backbone):
                files = [Path(backbone)]
            else:
                folder = find_folder(backbone)
                files = [path for path in sorted(folder.iterdir()) if path.suffix in _DECIDES]
            self._backbones[backbone] = {path.name: sha256(path) for path in files}
        return self._backbones[backbone]

    def _key(self, run: Run) -> str:
        if (run.row, run.seed) not in self._keys:
            everything = json.dumps(self._decides(run), sort_keys=True)
            self._keys[run.row, run.seed] = hashlib.sha256(everything.encode()).hexdigest()[:16]
        return self._keys[run.row, run.seed]

    def _name(self, run: Run) -> str:
        return f"{slug(run.row)}-{run.seed}-{self._key(run)}"

    def _model(self, run: Run) -> Path:
        return self.out / "models" / self._name(run)

    def _path(self, run: Run) -> Path:
        return self.out / "runs" / f"{self._name(run)}.json"
