"""One run of a recipe: train, score, and write down what came of it and how."""

from __future__ import annotations

import gc
import hashlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pydantic import TypeAdapter

import aoe_train
from pairkit import __version__
from pairkit.dataset.reader import read_rows
from pairkit.system.files import sha256, write_json
from papers.methods.bilstm import bilstm_folder
from papers.methods.flow import with_flow
from papers.methods.whitening import whitened
from papers.methods.word_vectors import WordVectors, is_word_vectors
from papers.reproduce.material import Material, material
from papers.reproduce.recipe import slug

if TYPE_CHECKING:
    from papers.methods.base import Encode, Method
    from papers.reproduce.plan import Places, Run
    from papers.reproduce.recipe import AtScale, Texts
    from papers.reproduce.scoring import Scoring


@dataclass(frozen=True)
class Record:
    """What came of a run."""

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
    """Does runs, and keeps their records in a folder."""

    def __init__(
        self,
        out: Path,
        at: AtScale,
        places: Places,
        scoring: Scoring,
        say: Callable[[str], None],
        *,
        keep: bool,
    ) -> None:
        self.out, self.at, self.places, self.scoring, self.say, self.keep = (
            out,
            at,
            places,
            scoring,
            say,
            keep,
        )
        self._materials: dict[str, Material] = {}
        self._hashes: dict[str, dict[str, str]] = {}

    def record(self, run: Run) -> Record | None:
        """What an earlier start of the same run left; None if it is to be done."""
        path = self._path(run)
        if not path.is_file():
            return None
        try:
            return TypeAdapter(Record).validate_json(path.read_bytes())
        except (OSError, ValueError):
            self.say(f"{path}: no record that can be read; the run is done again")
            return None

    def do(self, run: Run) -> Record:
        """Train and score; a training that was killed goes on from its checkpoint."""
        begun = time.perf_counter()
        result = self._train(run) if run.train else {}
        scores, overlap = self.scoring.score(self._model(run))
        found = Record(
            row=run.row,
            seed=run.seed,
            key=self._key(run),
            backbone=run.backbone,
            scores=scores,
            dev=result.get("dev"),
            overlap=overlap,
            steps=result.get("steps", 0),
            seconds=result.get("seconds", 0.0),
            wall_s=round(time.perf_counter() - begun, 1),
            made_from=self._decides(run),
        )
        write_json(self._path(run), asdict(found))
        return found

    def clear(self, run: Run) -> None:
        """Remove the model of a run that has its record, unless models are kept."""
        if not self.keep:
            model = self._folder(run)
            for folder in (model, model.with_name(model.name + ".work")):
                shutil.rmtree(folder, ignore_errors=True)

    def _train(self, run: Run) -> dict[str, Any]:
        chosen = self._material(run.texts)
        labels = {} if chosen.labels is None else {"data.labels": dict(chosen.labels)}
        trained = aoe_train.train(
            chosen.train,
            backbone=self._backbone(run),
            out=self._folder(run),
            dev_data=chosen.dev,
            objective=run.objective(),
            settings={**run.settings, **labels},
            progress=False,
        )
        result: dict[str, Any] = dict(trained.record["result"])
        del trained
        gc.collect()  # the trainer's cycles hold the model, which is about to be loaded once more
        if torch.accelerator.is_available():
            torch.accelerator.empty_cache()
        return result

    def _model(self, run: Run) -> Any:
        """What `aoe_train.evaluate` takes: a folder's name, an encoder, or a function."""
        source = str(self._folder(run)) if run.train else run.backbone
        reads = {} if run.train else dict(run.settings.get("encoder", {}))
        own = run.objective()
        if not run.train and is_word_vectors(source):
            return WordVectors(Path(source))
        if run.whiten is None and run.flow is None and not hasattr(own, "reader") and run.train:
            return source
        encoder = aoe_train.Encoder.load(source, precision=self.at.precision, inference_only=True, **reads)
        encode: Encode = partial(encoder.encode, normalize=False)
        if hasattr(own, "reader"):
            method: Method = own
            encode = method.reader(encoder, Path(source) if run.train else None)
        elif run.whiten is None and run.flow is None:
            return encoder
        if run.whiten is not None:
            encode = whitened(encode, self._texts(run.whiten), run.whiten.dim)
        if run.flow is not None:
            encode = with_flow(encode, self._texts(run.flow), seed=run.seed)
        return encode

    def _backbone(self, run: Run) -> str:
        """The backbone; over word vectors, an untrained BiLSTM."""
        if is_word_vectors(run.backbone):
            return str(bilstm_folder(Path(run.backbone), self.places.work))
        return run.backbone

    def _texts(self, texts: Texts) -> list[str]:
        (frame,) = read_rows(self._material(texts).train).splits.values()
        return list(frame["text"])

    def _material(self, texts: Texts | None) -> Material:
        name = repr(texts)
        if name not in self._materials:
            self._materials[name] = material(self.at.source, self.places, texts)
        return self._materials[name]

    def _decides(self, run: Run) -> dict[str, Any]:
        """All that decides a run's figures."""
        chosen = self._material(run.texts) if run.train else None
        fitted = [self._material(texts).train for texts in (run.whiten, run.flow) if texts is not None]
        named = [chosen.train, chosen.dev] if chosen else []
        return {
            "backbone": {run.backbone: self._hashed(run.backbone)},
            "settings": run.settings if run.train else run.settings.get("encoder"),
            "method": [run.method, dict(run.options or {})],
            "seed": run.seed,
            "labels": chosen and chosen.labels,
            "data": [self._hashed(name) or name for name in named if name],
            "fitted": [self._hashed(name) for name in fitted],
            "whiten": run.whiten and [run.whiten.dim],
            "columns": [column.model_dump(mode="json") for column in self.at.evaluate],
            "precision": self.at.precision,
            "version": __version__,
        }

    def _hashed(self, name: str) -> dict[str, str]:
        """Hashes of the files of a path; none of a Hub id."""
        if name not in self._hashes:
            path = Path(name)
            files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
            self._hashes[name] = {each.name: sha256(each) for each in files if each.is_file()}
        return self._hashes[name]

    def _key(self, run: Run) -> str:
        everything = json.dumps(self._decides(run), sort_keys=True)
        return hashlib.sha256(everything.encode()).hexdigest()[:16]

    def _name(self, run: Run) -> str:
        return f"{slug(run.row)}-{run.seed}-{self._key(run)}"

    def _folder(self, run: Run) -> Path:
        return self.out / "models" / self._name(run)

    def _path(self, run: Run) -> Path:
        return self.out / "runs" / f"{self._name(run)}.json"
