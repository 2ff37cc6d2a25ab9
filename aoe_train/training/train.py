"""A training run: load, build, fit, write; each stage takes the previous one's result. Its identity and record."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from transformers.utils.logging import disable_progress_bar

from aoe_train.data.defaults import format_choices, format_epochs
from aoe_train.data.examples import Say, negative_counts, silent
from aoe_train.data.run_data import Sources
from aoe_train.data.token_batches import describe, format_epoch_share
from aoe_train.evaluation.dev import check_judged
from aoe_train.evaluation.gain import Gain
from aoe_train.evaluation.overlap import training_digests, write_digests
from aoe_train.evaluation.tasks import defined
from aoe_train.model.device import memory_errors
from aoe_train.model.run_folder import (
    RUN_FILE,
    begin_or_go_on,
    clear,
    hash_config,
    hash_examples,
    hash_files,
    hash_tokenizer,
    hash_weights,
    mark_diverged,
    versions,
    work_beside,
    working_folder,
)
from aoe_train.objectives.objective import qualified_name
from aoe_train.settings.train_settings import PAPERS, EncoderSettings
from aoe_train.training.build import build
from aoe_train.training.callbacks import SCHEDULERS, stop_signals
from aoe_train.training.fit import Fitted, fit
from aoe_train.training.load import Loaded, load, training_warnings
from aoe_train.training.model_card import model_card
from aoe_train.training.monitoring import Baseline, Diverged
from aoe_train.training.pair_model import check_loss_functions
from aoe_train.training.processes import is_main, on_main, wait_for_all
from aoe_train.training.teachers import scores_identity
from aoe_train.training.training_arguments import (
    Process,
    idle_processors,
    memory_advice,
    start_processes,
)
from pairkit import __version__
from pairkit.base.cli.progress import Display, Listener
from pairkit.base.system.files import whole_folder, write_json, write_text
from pairkit.base.system.machine import peak_rss_mb
from pairkit.dataset.reading.in_memory import source_name
from pairkit.dataset.records import join_bad_rows, write_bad_rows
from pairkit.similarity.measures import languages

if TYPE_CHECKING:
    from transformers import TrainerCallback

    from aoe_train.evaluation.dev import DevScores
    from aoe_train.settings.train_settings import TrainSettings
    from aoe_train.training.build import Built

Counts = dict[str, int | float]
# Settings that don't change the model, and paths that are replaced by hashes of their files.
_NOT_OF_MODEL: Any = {
    "log": True,
    "card": True,
    "guide": {"model", "revision"},
    "teacher": {"model", "revision", "scores"},
    "datasets": {"__all__": {"data", "dev_data"}},
}


def train(
    sources: Sources,
    settings: TrainSettings,
    *,
    fresh: bool = False,
    say: Say = print,
    progress: bool | Listener = True,
    callbacks: Sequence[TrainerCallback] = (),
) -> dict[str, object]:
    """Start or continue a run, unless it is finished; returns its run.json. Only rank 0 writes and prints."""
    disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers' bar when saving
    check_loss_functions(sources, settings)
    check_judged(sources.judged, settings)
    work = work_beside(sources.out)
    args = start_processes(settings, work)
    writes = is_main()
    if not writes:
        say = silent
        progress = False
    with (
        working_folder(work) if writes else nullcontext(),
        Display(progress) as show,
    ):
        process = Process(args, work, say, show)
        if note := idle_processors(args):
            process.say(note)
        with memory_errors(memory_advice(settings)):
            loaded = load(sources, settings, process)
        with memory_errors(memory_advice(loaded.settings)):
            record = _continue_run(loaded, fresh=fresh, callbacks=callbacks)
        if writes:
            clear(work)
        return record


def _continue_run(
    loaded: Loaded, *, fresh: bool, callbacks: Sequence[TrainerCallback]
) -> dict[str, object]:
    """The record of a finished run, or of a new one, which continues from its newest checkpoint."""
    process = loaded.process
    out = loaded.sources.out
    identity = on_main(lambda: run_identity(loaded))
    record = on_main(lambda: begin_or_go_on(out, process.work, identity, fresh=fresh))
    if record is not None:
        process.say(f"{out}: already finished; give --fresh to train again")
        return record
    for warning in training_warnings(loaded):
        process.say(warning)
    built = build(loaded)
    for line in format_run_choices(built):
        process.say(line)
    with stop_signals(*SCHEDULERS) as ended:
        baseline = Baseline(built)
        # A signal after the last step waits until the model is written.
        with stop_signals(signal.SIGINT) as interrupted:
            try:
                fitted = fit(
                    built, baseline, callbacks, lambda: ended() or interrupted()
                )
            except Diverged as error:
                if is_main():
                    mark_diverged(process.work, identity, str(error))
                wait_for_all()  # the first process that exits ends the others
                raise
            return on_main(lambda: _write_model_folder(fitted, identity))


def _write_model_folder(
    fitted: Fitted, origin: Mapping[str, object]
) -> dict[str, object]:
    """Write the model's folder, and return its run.json; `origin` is what identifies its run."""
    built = fitted.built
    loaded = built.loaded
    data = built.data
    out = loaded.sources.out
    record = run_record(fitted, origin)
    content = record.to_dict()
    card = model_card(out.name, record, loaded.settings, built.encoder.dim)
    examples = [*data.train.values(), *data.dev.values()]
    write_bad_rows(out, join_bad_rows(rows.reading.bad_rows for rows in examples))
    with whole_folder(out) as folder:
        built.save(folder)
        if loaded.settings.log.training_texts:
            trained = data.train.values() if record.training_texts else ()
            write_digests(folder, training_digests(trained), loaded.encoder.folder)
        write_text(folder / "README.md", card)
        write_json(folder / RUN_FILE, content)
    return content


class DevSetRecord(BaseModel):
    """Metric and scores of one of several dev sets, before training and with the saved weights."""

    metric: str
    before: float
    dev: float | None


class ResultRecord(BaseModel):
    """What a run has reached; `dev_set` is the name of the deciding dev set, or None for a mean."""

    out: str
    steps: int
    pairs: int
    seconds: float
    pairs_per_s: float
    peak_rss_mb: float
    dev: float | None
    dev_metric: str | None
    dev_before: float | None
    dev_sets: dict[str, DevSetRecord] = {}
    dev_set: str | None = None
    dev_gain: dict[str, Any] | None = None
    judged: dict[str, Any] | None = None

    @property
    def gain(self) -> Gain | None:
        """The model's gain over its backbone on judged pairs."""
        return None if self.judged is None else Gain.of(self.judged)

    @property
    def kept(self) -> str:
        """The saved weights: `model` or `backbone`."""
        return "model" if self.judged is None else str(self.judged["kept"])


class SourceNames(BaseModel):
    """Names of the inputs; `dev_data` is empty if validation splits or nothing were held out."""

    data: dict[str, str]
    backbone: str
    dev_data: dict[str, str]
    judged: str | None


class DatasetRecord(BaseModel):
    """The rows of a dataset, and their share of an epoch."""

    rows: int
    kind: str
    reading: dict[str, Any]
    negatives: dict[str, int]
    epoch: Counts


class RunRecord(BaseModel):
    """The run.json of a finished run; fields that aren't set are left out."""

    made_by: str
    result: ResultRecord
    origin: dict[str, Any]
    sources: SourceNames
    files: dict[str, Any]
    encoder: EncoderSettings
    advisers: dict[str, dict[str, Any]]  # guide, teacher and teacher_scores
    batches: Counts
    datasets: dict[str, DatasetRecord]
    dev_sets: dict[str, int]
    languages: list[str]
    training_texts: bool
    versions: dict[str, str]
    wall_s: float
    history: list[dict[str, Any]]
    dev_history: list[dict[str, Any]]
    best_step: int | None

    @property
    def has_own_metric(self) -> bool:
        """Whether a function of the user scored the model, not the dev data."""
        return "dev_metric" in self.origin

    def to_dict(self) -> dict[str, Any]:
        """The object of run.json."""
        return self.model_dump(exclude_unset=True) | {
            "encoder": self.encoder.model_dump(mode="json")
        }


def run_identity(loaded: Loaded) -> dict[str, object]:
    """What determines a run's model, the `origin` of its record. Only an equal run is continued."""
    data = loaded.data
    encoder = loaded.encoder
    set_names = []
    # The log has the names of several sets; a single one may be renamed.
    if max(len(data.train), len(data.dev)) > 1:
        set_names = [*data.train, *data.dev]
    return _objective_identity(loaded) | {
        "settings": loaded.settings.model_dump(mode="json", exclude=_NOT_OF_MODEL),
        "data": [*map(hash_examples, data.train.values())],
        "dev_data": [*map(hash_examples, data.dev.values())],
        "names": set_names,
        "backbone": hash_weights(encoder.model),
        "config": hash_config(encoder.model.backbone.config),
        "tokenizer": hash_tokenizer(encoder.tokenizer),
        # Settings of the run leave out what the backbone's folder determines.
        "encoder": encoder.settings.model_dump(mode="json"),
        "precision": "no" if loaded.precision == "fp32" else loaded.precision,
        "processes": loaded.process.args.world_size,
    }


def _objective_identity(loaded: Loaded) -> dict[str, object]:
    """The user's own functions, teachers and judged pairs, if there are any."""
    sources = loaded.sources
    result: dict[str, Any] = {}
    if sources.losses:
        names = {name: qualified_name(loss) for name, loss in sources.losses.items()}
        result["objective"] = [names.get(name) for name in sources.data]
    result |= {teacher.role: teacher.identity for teacher in loaded.teachers}
    result |= scores_identity(loaded.settings.teacher)
    if sources.dev_metric is not None:
        result["dev_metric"] = {"name": qualified_name(sources.dev_metric)}
    if loaded.judged is not None:
        result["judged"] = loaded.judged.identity
    return result


def run_record(fitted: Fitted, origin: Mapping[str, object]) -> RunRecord:
    """The record of a finished run."""
    built = fitted.built
    state = fitted.state
    loaded = built.loaded
    sources = loaded.sources
    dev_data = sources.dev_data
    # Some numbers aren't finite, such as gradient norms in fp16's first steps; JSON has no such numbers.
    history = [
        {name: defined(value) for name, value in entry.items()}
        for entry in state.log_history
    ]
    dev_history = [entry for entry in history if "eval_dev" in entry]
    return RunRecord(
        made_by=f"aoe {__version__}",
        result=_result_record(fitted, dev_history),
        origin=dict(origin),
        sources=SourceNames(
            data={name: source_name(source) for name, source in sources.data.items()},
            backbone=sources.backbone,
            dev_data={name: source_name(source) for name, source in dev_data.items()},
            judged=None if sources.judged is None else source_name(sources.judged),
        ),
        files={
            "data": {name: hash_files(source) for name, source in sources.data.items()},
            "dev_data": {name: hash_files(source) for name, source in dev_data.items()},
        },
        encoder=built.encoder.settings,
        advisers=_teacher_records(built),
        batches=describe(built.batches, [dataset.store for dataset in built.datasets]),
        datasets=dataset_records(built),
        dev_sets={name: len(rows) for name, rows in built.data.dev.items()},
        languages=languages(
            [text for rows in built.data.train.values() for text in rows.texts]
        ),
        training_texts=loaded.settings.log.training_texts and fitted.keeps_model,
        versions=versions(),
        wall_s=round(time.perf_counter() - loaded.process.start, 3),
        history=[entry for entry in history if "loss" in entry],
        dev_history=dev_history,
        best_step=(state.best_global_step or None) if fitted.keeps_model else None,
    )


def dataset_records(built: Built) -> dict[str, DatasetRecord]:
    """The rows of each dataset, as the model learns from them."""
    records = {}
    for number, dataset in enumerate(built.datasets):
        rows = dataset.examples
        records[dataset.name] = DatasetRecord(
            rows=len(rows),
            kind=rows.kind,
            reading=rows.reading.record(),
            negatives=negative_counts(rows),
            epoch=built.batches.epoch_share(number),
        )
    return records


def _result_record(
    fitted: Fitted, dev_history: Sequence[Mapping[str, object]]
) -> ResultRecord:
    """What the run has reached, with the scores of the weights that are saved."""
    state = fitted.state
    before = fitted.before
    keeps_model = fitted.keeps_model
    pairs = fitted.built.rows(state.global_step)
    deciding = None if before is None else before.deciding
    dev_before = None if deciding is None else deciding.value
    # Fields that aren't set are left out of run.json.
    optional: dict[str, Any] = {}
    if before is not None and len(before.by_set) > 1:
        optional["dev_sets"] = _dev_sets(fitted, before, dev_history)
        optional["dev_set"] = before.chosen
    if keeps_model and fitted.dev_gain is not None:
        optional["dev_gain"] = fitted.dev_gain
    if fitted.gain is not None:
        kept = "model" if keeps_model else "backbone"
        optional["judged"] = {**fitted.gain.to_dict(), "kept": kept}
    return ResultRecord(
        out=str(fitted.built.loaded.sources.out),
        steps=state.global_step,
        pairs=pairs,
        seconds=round(fitted.seconds, 3),
        pairs_per_s=round(pairs / fitted.seconds, 2),  # at least one step was timed
        peak_rss_mb=peak_rss_mb(),
        dev=state.best_metric if keeps_model else dev_before,
        dev_metric=None if deciding is None else deciding.name,
        dev_before=dev_before,
        **optional,
    )


def _dev_sets(
    fitted: Fitted, before: DevScores, dev_history: Sequence[Mapping[str, Any]]
) -> dict[str, DevSetRecord]:
    """The scores of each of several dev sets."""
    by_step = {entry["step"]: entry for entry in dev_history}
    best = by_step.get(fitted.state.best_global_step, {})
    records = {}
    for name, metric in before.by_set.items():
        dev = best.get(f"eval_dev.{name}") if fitted.keeps_model else metric.value
        records[name] = DevSetRecord(metric=metric.name, before=metric.value, dev=dev)
    return records


def _teacher_records(built: Built) -> dict[str, dict[str, object]]:
    """Guide, teacher and file of scores by role."""
    loaded = built.loaded
    first, *_ = built.datasets
    rows = loaded.data.train[first.name]
    records: dict[str, dict[str, Any]] = {}
    for teacher in loaded.teachers:
        dim = teacher.dim or first.teacher_outputs.vectors[teacher.role].dim
        records[teacher.role] = teacher.record(rows, dim)
    scores = loaded.settings.teacher.scores
    if scores is not None:
        records["teacher_scores"] = {"file": Path(scores).name}
    return records


def format_run_choices(built: Built) -> Iterator[str]:
    """Lines on the chosen settings of a run; with several datasets, on each."""
    loaded = built.loaded
    settings = loaded.settings
    optim = settings.optim
    if truncated := sum(dataset.store.truncated for dataset in built.datasets):
        texts = sum(len(dataset.examples.texts) for dataset in built.datasets)
        limit = built.encoder.settings.max_length
        yield f"{truncated:,} of {texts:,} texts are truncated to {limit} tokens (--max-length)"
    for number, dataset in enumerate(built.datasets):
        rows = dataset.examples
        parts = dataset.loss_weights
        if loaded.sources.several:
            share = format_epoch_share(built.batches.epoch_share(number))
            yield f"{dataset.name}: {len(rows):,} {rows.kind} rows: {' + '.join(parts)}; {share}"
        elif not settings.preset.endswith(PAPERS):
            seen = built.rows(built.steps)
            yield format_choices(
                settings, rows.kind, rows=len(rows), seen=seen, parts=parts
            )
    if not loaded.sources.several:
        return
    yield (
        f"{len(built.datasets)} datasets, {settings.mix.order}: {len(built.batches):,} batches an"
        f" epoch, {format_epochs(optim.epochs)}, learning rate {optim.lr:g}, batches of {optim.batch_size}"
    )
