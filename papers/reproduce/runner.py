"""One run of a recipe: train a model, score it and write a record."""

from __future__ import annotations

import gc
import hashlib
import json
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import aoe_train
from pairkit import __version__
from pairkit.base.system.files import remove, sha256, write_json
from pairkit.base.system.folders import read_json_object, work_beside
from pairkit.dataset.reading.reader import read_rows
from papers.methods.fitted import whitened, with_flow
from papers.methods.word_vectors import WordVectors, bilstm_folder, is_word_vectors
from papers.reproduce.recipe import slug
from papers.reproduce.training_data import TrainingData, training_data

if TYPE_CHECKING:
    from papers.methods.base import Encode, Method
    from papers.reproduce.plan import Folders, Run
    from papers.reproduce.recipe import AtScale, Source, Texts
    from papers.reproduce.scoring import Scoring


CLAIMS = "claims"


@dataclass(frozen=True)
class Record:
    """The result of a run."""

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


class Runner:
    """Does runs and stores their records in a folder."""

    def __init__(
        self,
        out: Path,
        at: AtScale,
        folders: Folders,
        scoring: Scoring,
        *,
        keep_models: bool,
    ) -> None:
        self.out = out
        self.at = at
        self.folders = folders
        self.scoring = scoring
        self.keep_models = keep_models
        self._data: dict[str, TrainingData] = {}
        self._hashes: dict[str, dict[str, str]] = {}

    def record(self, run: Run) -> Record | None:
        """The record of a finished run, or None."""
        path = self._path(run)
        if not path.is_file():
            return None
        return Record(**read_json_object(path))

    def claim(self, run: Run) -> Path:
        """The folder that a process locks while it does a run."""
        return self.out / CLAIMS / self._name(run)

    def do(self, run: Run) -> Record:
        """Train and score; a killed training continues from its checkpoint."""
        start = time.perf_counter()
        result = self._train(run) if run.train else {}
        scores, overlap = self.scoring.score(self._model(run), run.precision)
        record = Record(
            row=run.row,
            seed=run.seed,
            key=self._key(run),
            backbone=run.backbone,
            scores=scores,
            dev=result.get("dev"),
            overlap=overlap,
            steps=result.get("steps", 0),
            seconds=result.get("seconds", 0.0),
            wall_s=round(time.perf_counter() - start, 1),
            made_from=self._inputs(run),
        )
        write_json(self._path(run), asdict(record))
        return record

    def remove_model(self, run: Run) -> None:
        """Remove the model of a finished run, unless models are kept."""
        if not self.keep_models:
            remove(self._folder(run))
            remove(work_beside(self._folder(run)))

    def _train(self, run: Run) -> dict[str, Any]:
        data = self._training_data(run.texts, run.source)
        labels = {} if data.labels is None else {"data.labels": dict(data.labels)}
        trained = aoe_train.train(
            data.train,
            backbone=self._backbone(run),
            out=self._folder(run),
            dev_data=data.dev,
            objective=run.objective(),
            settings={**run.settings, **labels},
            progress=False,
        )
        result: dict[str, Any] = dict(trained.record["result"])
        del trained
        gc.collect()  # reference cycles of the trainer keep the model, which is loaded again for scoring
        if torch.accelerator.is_available():
            torch.accelerator.empty_cache()
        return result

    def _model(self, run: Run) -> Any:
        """The model as `aoe_train.evaluate` accepts it: a folder, an encoder or a function."""
        if not run.train and is_word_vectors(run.backbone):
            return WordVectors(Path(run.backbone))
        folder = self._folder(run) if run.train else None
        objective = run.objective()
        has_reader = hasattr(objective, "reader")
        is_plain = run.whiten is None and run.flow is None and not has_reader
        if folder and is_plain:
            return str(folder)
        encoder = aoe_train.Encoder.load(
            str(folder or run.backbone),
            precision=run.precision,
            inference_only=True,
            **({} if folder else run.settings.get("encoder", {})),
        )
        if is_plain:
            return encoder
        encode: Encode = partial(encoder.encode, normalize=False)
        if has_reader:
            method: Method = objective
            encode = method.reader(encoder, folder)
        if run.whiten is not None:
            encode = whitened(encode, self._texts(run.whiten), run.whiten.dim)
        if run.flow is not None:
            encode = with_flow(encode, self._texts(run.flow), seed=run.seed)
        return encode

    def _backbone(self, run: Run) -> str:
        """The backbone; for a file of word vectors, an untrained BiLSTM over them."""
        if is_word_vectors(run.backbone):
            return str(bilstm_folder(Path(run.backbone), self.folders.work))
        return run.backbone

    def _texts(self, texts: Texts) -> list[str]:
        (frame,) = read_rows(
            self._training_data(texts, self.at.source).train
        ).splits.values()
        return list(frame["text"])

    def _training_data(self, texts: Texts | None, source: Source) -> TrainingData:
        name = repr((texts, source))
        if name not in self._data:
            self._data[name] = training_data(source, self.folders, texts)
        return self._data[name]

    def _inputs(self, run: Run) -> dict[str, Any]:
        """Everything that the scores of a run depend on."""
        data = self._training_data(run.texts, run.source) if run.train else None
        sources = [name for name in (data.train, data.dev) if name] if data else []
        fitted = []
        for texts in (run.whiten, run.flow):
            if texts is not None:
                file = self._training_data(texts, self.at.source).train
                fitted.append(self._file_hashes(file))
        return {
            "backbone": self._file_hashes(run.backbone) or run.backbone,
            "settings": run.settings if run.train else run.settings.get("encoder"),
            "method": [run.method, dict(run.options or {})],
            "seed": run.seed,
            "labels": data and data.labels,
            "data": [self._file_hashes(name) or name for name in sources],
            "fitted": fitted,
            "whiten": run.whiten and [run.whiten.dim],
            "columns": [column.model_dump(mode="json") for column in self.at.evaluate],
            "precision": run.precision,
            "version": __version__,
        }

    def _file_hashes(self, name: str) -> dict[str, str]:
        """The hashes of a file or of all files in a folder; empty for a Hub id."""
        if name not in self._hashes:
            path = Path(name)
            paths = sorted(path.rglob("*")) if path.is_dir() else [path]
            self._hashes[name] = {
                file.name: sha256(file) for file in paths if file.is_file()
            }
        return self._hashes[name]

    def _key(self, run: Run) -> str:
        inputs = json.dumps(self._inputs(run), sort_keys=True)
        return hashlib.sha256(inputs.encode()).hexdigest()[:16]

    def _name(self, run: Run) -> str:
        return f"{slug(run.row)}-{run.seed}-{self._key(run)}"

    def _folder(self, run: Run) -> Path:
        return self.out / "models" / self._name(run)

    def _path(self, run: Run) -> Path:
        return self.out / "runs" / f"{self._name(run)}.json"
