"""The steps of a run, from data and backbone to a model folder."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import EarlyStoppingCallback, set_seed
from transformers.utils.logging import disable_progress_bar

from aoe_train.data.defaults import FEW_TEXTS, UNSUITED, unused_lengths_warning
from aoe_train.data.examples import Say, silent
from aoe_train.data.run_data import Sources
from aoe_train.evaluation.dev import MOST_RESAMPLED, DevScores, dev_scores, own_metric
from aoe_train.evaluation.overlap import write_digests
from aoe_train.model.backbones.decoder import has_lora, merge_lora
from aoe_train.model.memory import memory_errors
from aoe_train.model.model_folder import (
    RUN_FILE,
    begin_or_go_on,
    cache_dir,
    clear,
    hash_tokenizer,
    hash_weights,
    mark_diverged,
    origin,
    work_beside,
    working_folder,
)
from aoe_train.model.packing.layers import train_all_rows
from aoe_train.model.precision import training_note
from aoe_train.model.tokens.coverage import language_warning
from aoe_train.objectives.objective import LossFunction, qualified_name
from aoe_train.training.build import TrainingSetup, build, load_teachers
from aoe_train.training.callbacks import (
    SCHEDULERS,
    CheckpointCallback,
    ProgressCallback,
    Stopped,
    WeightAverage,
    WeightMix,
    stop_signals,
)
from aoe_train.training.checkpoints import newest_checkpoint, wait_for_all
from aoe_train.training.keep_if_better import JudgedPairs, check_judged
from aoe_train.training.load import Loaded, ResolvedSettings, load, resolve
from aoe_train.training.loss_log import CollapseCheck, Diverged
from aoe_train.training.model_card import model_card
from aoe_train.training.pair_model import TextObjective, check_loss_functions
from aoe_train.training.processes import on_main, shard
from aoe_train.training.step_graphs import make_step_graphs
from aoe_train.training.teachers import Teacher, precompute_vectors, scores_identity
from aoe_train.training.train_record import format_run_choices, run_record
from aoe_train.training.trainer import PairTrainer
from aoe_train.training.training_arguments import (
    evaluation_precision,
    idle_gpus,
    set_evaluation,
    start_processes,
)
from pairkit.base.cli.progress import Display, Listener, Progress
from pairkit.base.errors import ConfigError
from pairkit.base.system.files import whole_folder, write_json, write_text
from pairkit.dataset.records import joined, write_bad_rows

if TYPE_CHECKING:
    import numpy as np
    from transformers import TrainerCallback, TrainingArguments

    from aoe_train.evaluation.gain import Gain
    from aoe_train.evaluation.tasks import Encode
    from aoe_train.model.encoder import Encoder
    from aoe_train.settings.train_settings import TrainSettings

BEFORE_DIVERGENCE = "before-divergence"  # folder of the last sound model, in the working folder


def train(
    sources: Sources,
    settings: TrainSettings,
    *,
    custom_losses: Mapping[str, LossFunction] | None = None,
    fresh: bool = False,
    say: Say = print,
    progress: bool | Listener = True,
    callbacks: Sequence[TrainerCallback] = (),
    dev_metric: Callable[[Encoder], float] | None = None,
) -> dict[str, Any]:
    """Start or continue a run, unless it is finished, and return the contents of its run.json.

    Under torchrun every process calls this; only rank 0 writes and prints. `custom_losses` replace the
    settings' loss parts, by dataset.
    """
    disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers' bar when saving
    check_loss_functions(custom_losses or {}, sources, settings)
    check_judged(sources.judged, settings)
    work = work_beside(sources.out)
    args = start_processes(settings, work)
    main = args.process_index == 0
    with working_folder(work) if main else nullcontext():
        if main and (note := idle_gpus(args)):
            say(note)
        with Display(progress if main else False) as show:
            losses = custom_losses or {}
            run = _Run(sources, losses, work, args, say if main else silent, show, callbacks, dev_metric)
            with memory_errors(lambda: _memory_advice(run.resolved.run if run.resolved else settings)):
                return run.run(settings, fresh=fresh)


def _memory_advice(settings: TrainSettings) -> str:
    run = settings.run
    chunk = f" --set run.chunk=16 (now {run.chunk or 'off'}; same result) or"
    return (
        f"lower --batch-size (now {settings.optim.batch_size}) or --max-length, or use"
        f"{'' if run.shard else chunk} --set run.gradient_checkpointing=true (slower)"
    )


class _Run:
    """The run of one process, with the state that its steps share."""

    def __init__(
        self,
        sources: Sources,
        custom_losses: Mapping[str, LossFunction],
        work: Path,
        args: TrainingArguments,
        say: Say,
        show: Listener,
        callbacks: Sequence[TrainerCallback],
        dev_metric: Callable[[Encoder], float] | None,
    ) -> None:
        self.sources, self.custom_losses, self.work, self.args = sources, custom_losses, work, args
        self.say, self.show, self.callbacks, self.dev_metric = say, show, callbacks, dev_metric
        self.main = args.process_index == 0
        self.start = time.perf_counter()
        self.resolved: ResolvedSettings | None = None

    def run(self, settings: TrainSettings, *, fresh: bool) -> dict[str, Any]:
        """Load everything, and train unless the run is finished."""
        sources, args = self.sources, self.args
        set_seed(settings.seed)
        loaded = load(sources, settings, self.custom_losses.keys(), args.device, self.say, self.show)
        self.resolved = resolved = resolve(sources, loaded, args)
        teachers = load_teachers(resolved, loaded, self.custom_losses.keys(), self.show)
        judged = self._judged(loaded)
        self.origin: dict[str, Any] = on_main(lambda: self._origin(loaded, resolved, teachers, judged))
        record: dict[str, Any] | None = on_main(
            lambda: begin_or_go_on(sources.out, self.work, self.origin, fresh=fresh)
        )
        if record is not None:
            self.say(f"{sources.out}: already finished; give --fresh to train again")
        else:
            if self.main and (note := training_note(resolved.run.run.precision, args.device)):
                self.say(note)
            for note in self._warnings(loaded, resolved):
                self.say(note)
            self.setup, self.teachers = self._build(loaded, resolved, teachers)
            with stop_signals(*SCHEDULERS) as stop_requested:
                record = self._train(resolved.run, judged, stop_requested)
        if self.main:
            clear(self.work)
        return record

    def _judged(self, loaded: Loaded) -> JudgedPairs | None:
        if self.sources.judged is None:
            return None
        judged = JudgedPairs(self.sources.judged, self.say)
        if self.main:
            judged.warn(chain.from_iterable(rows.texts for rows in loaded.data.train.values()), self.say)
        return judged

    def _origin(
        self,
        loaded: Loaded,
        resolved: ResolvedSettings,
        teachers: Sequence[Teacher],
        judged: JudgedPairs | None,
    ) -> dict[str, Any]:
        """The identity of the run's inputs and settings; only a run with the same origin is continued."""
        encoder = loaded.encoder
        return origin(
            resolved.run,
            data=loaded.data.train,
            dev_data=loaded.data.dev,
            backbone=hash_weights(encoder.model),
            tokenizer=hash_tokenizer(encoder.tokenizer),
            prompts=encoder.settings,
            precision=self.args.mixed_precision,
            processes=self.args.world_size,
            own={name: qualified_name(function) for name, function in self.custom_losses.items()},
            advisers={teacher.role: teacher.identity for teacher in teachers}
            | scores_identity(resolved.run.teacher)
            | ({} if self.dev_metric is None else {"dev_metric": {"name": qualified_name(self.dev_metric)}}),
            judged=None if judged is None else judged.identity,
        )

    def _warnings(self, loaded: Loaded, resolved: ResolvedSettings) -> Iterator[str]:
        """Warn of settings that give a worse model or train only a part of the similarity."""
        if not resolved.run.optim.interpolate and "interpolate" not in loaded.settings.optim.model_fields_set:
            yield UNSUITED
        for name, rows in loaded.data.train.items():
            if warning := language_warning(loaded.encoder.tokenizer, rows.texts, self.sources.backbone):
                yield warning
            is_counted = rows.kind in ("single", "triplet")
            if is_counted and (texts := len(set(rows.rows[:, 0].tolist()))) < FEW_TEXTS:
                yield f"warning: {name}: only {texts} texts; use hundreds, as few can make the model worse"
            note = unused_lengths_warning(resolved.datasets[name], rows.kind, loaded.encoder.settings)
            if note is not None and name not in self.custom_losses:
                yield f"{name}: {note}" if self.sources.several else note

    def _build(
        self, loaded: Loaded, resolved: ResolvedSettings, teachers: Sequence[Teacher]
    ) -> tuple[TrainingSetup, dict[str, Any]]:
        """The inputs of the training loop, and the record of guide and teacher by role."""
        data, teacher = loaded.data, resolved.run.teacher
        with self.args.main_process_first(local=False):  # fills the cache for the others
            outputs = precompute_vectors(teachers, data.train, teacher, cache_dir("vectors"), self.show)
            setup = build(loaded, resolved, self.args, self.custom_losses, outputs, self.show)
        for line in format_run_choices(setup, resolved, self.custom_losses):
            self.say(line)
        first, rows = next(iter(data.train.items()))
        record: dict[str, Any] = {
            each.role: each.record(rows, each.dim or outputs[first].vectors[each.role].dim)
            for each in teachers
        }
        if teacher.scores is not None:
            record["teacher_scores"] = {"file": Path(teacher.scores).name}
        return setup, record

    def _train(
        self, settings: TrainSettings, judged: JudgedPairs | None, stop_requested: Callable[[], bool]
    ) -> dict[str, Any]:
        setup, optim = self.setup, settings.optim
        score = self._scorer(settings)
        before: DevScores | None = on_main(score) if score else None
        encode, similarity = self._encoder(settings), setup.encoder.settings.similarity_fn_name
        texts = (rows.texts for rows in (*setup.data.train.values(), *setup.data.dev.values()))
        collapse = CollapseCheck(encode, *texts)
        collapse.before = on_main(collapse.spread)
        if judged is not None:
            on_main(lambda: judged.remember(setup.model, encode, similarity))
        set_evaluation(self.args, settings, len(setup.loader), evaluate=score is not None)
        if settings.run.shard:
            shard(setup.model)
        mix = None if optim.interpolate == 1 else WeightMix(setup.model, optim.interpolate)
        with stop_signals(signal.SIGINT) as interrupted:  # outside there is no step to save
            trainer = PairTrainer(
                setup.model,
                self.args,
                setup.loader,
                work=self.work,
                evaluate_dev=score and (lambda: score().figures),
                dev_sets=[*before.by_set] if before is not None and len(before.by_set) > 1 else [],
                datasets=[dataset.name for dataset in setup.datasets],
                average=WeightAverage(optim.average, mix),
                collapse=collapse,
                callbacks=[
                    CheckpointCallback(settings.log, lambda: stop_requested() or interrupted()),
                    *_early_stopping(optim.patience, has_dev=score is not None),
                    *self.callbacks,
                    ProgressCallback(self.show),
                ],
                graphs=make_step_graphs(setup, settings, self.args, self.say),
            )
            self._fit(trainer)
        dev_gain: dict[str, Any] | None = None
        can_resample = sum(map(len, setup.data.dev.values())) <= MOST_RESAMPLED
        if score is not None and can_resample and self.dev_metric is None and not settings.run.shard:
            dev_gain = on_main(lambda: score().ahead_of(before, seed=settings.seed))
        gain: Gain | None = None
        if judged is not None:
            gain = on_main(lambda: judged.gain(encode, similarity, seed=settings.seed))
        keeps_model = gain is None or optim.if_not_better == "model" or gain.word == "better"
        if judged is not None and self.main and not keeps_model:
            judged.restore(setup.model)
        record = run_record(
            self.sources,
            self.origin,
            settings,
            setup,
            trainer,
            teachers=self.teachers,
            before=before,
            dev_gain=dev_gain,
            gain=gain,
            keeps_model=keeps_model,
            wall_s=time.perf_counter() - self.start,
        )
        if self.main:
            self._write(record, settings)
        wait_for_all()
        return record

    def _fit(self, trainer: PairTrainer) -> None:
        """Train to the end, from the newest checkpoint if one exists."""
        resume = newest_checkpoint(self.work)
        if resume is not None:
            self.say(f"{self.work}: continuing after step {resume.step}")
        try:
            trainer.fit(resume, self.say)
        except Diverged as error:
            raise self._diverged(trainer, error) from error
        except Stopped as stopped:
            self.say(f"{self.work}: {stopped} with a checkpoint")
            raise

    def _scorer(self, settings: TrainSettings) -> Callable[[], DevScores] | None:
        sets, encoder, custom_metric = self.setup.data.dev, self.setup.encoder, self.dev_metric
        if custom_metric is not None:

            def custom_score() -> DevScores:
                with evaluation_precision(self.args):
                    return DevScores({"dev": own_metric(custom_metric, encoder)})

            return custom_score
        if not sets:
            return None

        def progress(at: Progress) -> None:
            self.show(replace(at, stage="evaluate on dev data"))

        # Processes of a sharded model must run the same batches, so none may halve one after an error.
        encode = partial(encoder.encode, halve=not settings.run.shard, progress=progress)

        def score() -> DevScores:
            with evaluation_precision(self.args):
                return dev_scores(encode, sets, encoder.settings.similarity_fn_name, chosen=settings.mix.dev)

        return score

    def _encoder(self, settings: TrainSettings) -> Encode:
        def encode(texts: list[str]) -> np.ndarray:
            with evaluation_precision(self.args):
                return self.setup.encoder.encode(texts, halve=not settings.run.shard)

        return encode

    def _diverged(self, trainer: PairTrainer, error: Diverged) -> ConfigError:
        """Save the last sound weights as a model, and name its folder in the error."""
        restored = trainer.restore_sound()
        message = str(error)
        if restored is not None:
            folder = self.work / BEFORE_DIVERGENCE
            message += f"; {restored} are in {folder}"
            if self.main:
                with whole_folder(folder) as partial:
                    self._save(partial)
        if self.main:
            mark_diverged(self.work, self.origin, message)
        wait_for_all()  # the first process that exits ends the others
        return ConfigError(message)

    def _write(self, record: dict[str, Any], settings: TrainSettings) -> None:
        setup = self.setup
        rows = (*setup.data.train.values(), *setup.data.dev.values())
        write_bad_rows(self.sources.out, joined(each.reading.bad_rows for each in rows))
        with whole_folder(self.sources.out) as folder:
            self._save(folder)
            if record["training_texts"]:
                texts = (rows.texts for rows in setup.data.train.values())
                write_digests(folder, chain.from_iterable(texts))
            card = model_card(self.sources.out.name, record, setup.encoder.dim, about=settings.card)
            write_text(folder / "README.md", card)
            write_json(folder / RUN_FILE, record)

    def _save(self, folder: Path) -> None:
        encoder = self.setup.encoder
        backbone = encoder.model.backbone
        train_all_rows(backbone)
        if has_lora(backbone) and not backbone.name_or_path:  # adapters would refer to no backbone
            merge_lora(backbone)
        encoder.save(folder)
        for loss in self.custom_losses.values():
            if isinstance(loss, TextObjective):
                loss.save(folder)


def _early_stopping(patience: int | None, *, has_dev: bool) -> list[TrainerCallback]:
    if patience is None:
        return []
    if not has_dev:
        raise ConfigError("optim.patience: needs dev data; give --dev-data")
    return [EarlyStoppingCallback(patience)]
