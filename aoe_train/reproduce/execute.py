"""One run of a recipe: train, score, and write down what came of it."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train import train as training
from aoe_train.encoder import Encoder
from aoe_train.evaluate.embedders.local import LocalEmbedder
from aoe_train.origin import hash_files, versions
from aoe_train.preparation import Say, Sources
from aoe_train.reproduce.material import dev_data, training_file
from aoe_train.reproduce.scoring import Scoring, score
from pairkit.files import write_json

if TYPE_CHECKING:
    from aoe_train.reproduce.plan import Places, Run
    from aoe_train.reproduce.recipe import Source


@dataclass(frozen=True)
class Record:
    """What came of a run.

    Attributes:
        scores: Column to figure, in the metric's own range.
        dev: The best figure on the held-out rows; None where nothing was trained or held out.
        seconds: Of training steps alone; `wall_s` is everything.
        backbone: What it was trained from.
        key: See `Run.key`.
    """

    row: str
    seed: int
    key: str
    backbone: str
    scores: dict[str, float]
    dev: float | None = None
    steps: int = 0
    seconds: float = 0.0
    wall_s: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)


class Bench:
    """Where runs are done: folder, data, tasks.

    Args:
        out: Holds runs/, a record for each run, and models/.
        source: What is trained on.
        places: Where things lie.
        scorings: The table's columns.
        keep: Keep the models.
        say: Told what goes on.
    """

    def __init__(
        self,
        out: Path,
        source: Source,
        places: Places,
        scorings: Sequence[Scoring],
        *,
        keep: bool,
        say: Say,
    ) -> None:
        self.out, self.source, self.places, self.scorings = out, source, places, scorings
        self.keep, self.say = keep, say
        columns = {scoring.column.model_dump_json(): "" for scoring in scorings}
        self._digests = {
            **hash_files(places.fill(source.train)),
            **hash_files(dev_data(source, places)),
            **columns,
        }

    def record(self, run: Run) -> Record | None:
        """What an earlier start of the same run left."""
        path = self._path(run)
        return Record(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None

    def do(self, run: Run) -> Record:
        """Train and score; a training that was killed goes on where it was.

        Raises:
            ConfigError, DataError, RemoteError: see `aoe_train.train.train`.
        """
        begun = time.perf_counter()
        model = self.out / "models" / f"{_slug(run.row)}-{run.seed}-{self._key(run)}"
        trained = self._train(run, model) if run.settings else {}
        source = str(model) if run.settings else run.backbone
        scores = score(LocalEmbedder(Encoder.load(source), source), self.scorings)
        found = Record(
            row=run.row,
            seed=run.seed,
            key=self._key(run),
            backbone=run.backbone,
            scores=scores,
            dev=trained.get("dev"),
            steps=trained.get("steps", 0),
            seconds=trained.get("seconds", 0.0),
            wall_s=round(time.perf_counter() - begun, 1),
            versions=versions(),
        )
        write_json(self._path(run), asdict(found))
        if run.settings and not self.keep:
            shutil.rmtree(model)
        return found

    def _train(self, run: Run, model: Path) -> dict[str, Any]:
        if run.settings is None:
            return {}
        data = training_file(self.source, self.places, texts=run.texts)
        whole = data == self.places.fill(self.source.train)
        sources = Sources(
            data,
            run.backbone,
            model,
            dev_data=dev_data(self.source, self.places),
            label_values=self.source.labels if whole else None,
        )
        result: dict[str, Any] = training.train(sources, run.settings, say=lambda _: None, quiet=True)[
            "result"
        ]
        return result

    def _key(self, run: Run) -> str:
        return run.key(self.source, self._digests)

    def _path(self, run: Run) -> Path:
        return self.out / "runs" / f"{_slug(run.row)}-{run.seed}-{self._key(run)}.json"


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower()).strip("-")
