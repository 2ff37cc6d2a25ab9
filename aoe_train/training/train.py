"""Training, from data and backbone to a model folder."""

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

from aoe_train.data.defaults import UNSUITED, unused_lengths_warning
from aoe_train.data.examples import Say, silent
from aoe_train.data.run_data import Sources
from aoe_train.evaluation.dev import MOST_RESAMPLED, DevScores, dev_scores, own_metric
from aoe_train.evaluation.overlap import write_digests
from aoe_train.model.backbones.decoder import has_lora, merge_lora
from aoe_train.model.memory import memory_errors
from aoe_train.model.packing.layers import train_all_rows
from aoe_train.model.precision import training_note
from aoe_train.model.run_folder import (
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
from aoe_train.objectives.objective import OwnObjective, qualified_name
from aoe_train.training.arguments import (
    evaluation_precision,
    idle_gpus,
    set_evaluation,
    start_processes,
)
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
from aoe_train.training.card import model_card
from aoe_train.training.checkpoints import newest_checkpoint, wait_for_all
from aoe_train.training.keep_if_better import JudgedPairs, check_judged
from aoe_train.training.load import Loaded, ResolvedSettings, load, resolve
from aoe_train.training.loss_log import CollapseCheck, Diverged
from aoe_train.training.pair_model import TextObjective, check_own_objectives
from aoe_train.training.processes import on_main, shard
from aoe_train.training.record import choices_in_words, run_record
from aoe_train.training.teachers import Teacher, precompute_vectors, scores_identity
from aoe_train.training.trainer import PairTrainer
from pairkit.app.errors import ConfigError
from pairkit.app.progress import Display, Listener, Progress
from pairkit.dataset.bad_rows import joined, write_bad_rows
from pairkit.system.files import whole_folder, write_json, write_text

if TYPE_CHECKING:
    import numpy as np
    from transformers import TrainerCallback, TrainingArguments

    from aoe_train.evaluation.gain import Gain
    from aoe_train.evaluation.tasks import Encode
    from aoe_train.model.encoder import Encoder
    from aoe_train.settings.training import TrainSettings

BEFORE_DIVERGENCE = "before-divergence"  # the folder of a model, in the working folder of a run that diverged


def train(
    sources: Sources,
    settings: TrainSettings,
    *,
    own: Mapping[str, OwnObjective] | None = None,
    fresh: bool = False,
    say: Say = print,
    progress: bool | Listener = True,
    callbacks: Sequence[TrainerCallback] = (),
    dev_metric: Callable[[Encoder], float] | None = None,
) -> dict[str, Any]:
    """Train a model, or go on with it, or find it finished; returns the record that run.json has.

    Under torchrun every process calls this; rank 0 alone writes and prints. `own` has losses of one's own by
    dataset, in place of the settings' parts.
    """
    disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers' own, at each saving
    check_own_objectives(own or {}, sources, settings)
    check_judged(sources.judged, settings)
    work = work_beside(sources.out)
    args = start_processes(settings, work)
    main = args.process_index == 0
    with working_folder(work) if main else nullcontext():
        if main and (idle := idle_gpus(args)):
            say(idle)
        with Display(progress if main else False) as show:
            run = _Run(sources, own or {}, work, args, say if main else silent, show, callbacks, dev_metric)
            with memory_errors(lambda: _less_memory(run.resolved.run if run.resolved else settings)):
                return run.run(settings, fresh=fresh)


def _less_memory(settings: TrainSettings) -> str:
    optim, run = settings.optim, settings.run
    chunk = f"embed fewer texts at once with the same result: --set run.chunk=16 (now {run.chunk or 'all'})"
    slower = "slower, --set run.gradient_checkpointing=true"
    ways = slower if run.shard else f"{chunk}, or, {slower}"
    return f"lower --batch-size (now {optim.batch_size}) or --max-length, or {ways}"


class _Run:
    """One process's part of a run; the attributes are what its steps share."""

    def __init__(
        self,
        sources: Sources,
        own: Mapping[str, OwnObjective],
        work: Path,
        args: TrainingArguments,
        say: Say,
        show: Listener,
        callbacks: Sequence[TrainerCallback],
        dev_metric: Callable[[Encoder], float] | None,
    ) -> None:
        self.sources, self.own, self.work, self.args = sources, own, work, args
        self.say, self.show, self.callbacks, self.dev_metric = say, show, callbacks, dev_metric
        self.main = args.process_index == 0
        self.begun = time.perf_counter()
        self.resolved: ResolvedSettings | None = None

    def run(self, settings: TrainSettings, *, fresh: bool) -> dict[str, Any]:
        """Load, choose, look for what an earlier run left, and train on."""
        sources, args = self.sources, self.args
        set_seed(settings.seed)
        loaded = load(sources, settings, self.own.keys(), args.device, self.say, self.show)
        self.resolved = resolved = resolve(sources, loaded, args)
        teachers = load_teachers(resolved, loaded, self.own.keys(), self.show)
        judged = self._judged(loaded)
        self.origin: dict[str, Any] = on_main(lambda: self._origin(loaded, resolved, teachers, judged))
        finished: dict[str, Any] | None = on_main(
            lambda: begin_or_go_on(sources.out, self.work, self.origin, fresh=fresh)
        )
        if finished is not None:
            self.say(f"{sources.out}: is finished already; give --fresh to train anew")
        else:
            if self.main and (note := training_note(resolved.run.run.precision, args.device)):
                self.say(note)
            for note in self._warnings(loaded, resolved):
                self.say(note)
            self.setup, self.teachers = self._build(loaded, resolved, teachers)
            with stop_signals(*SCHEDULERS) as asked:
                finished = self._train(resolved.run, judged, asked)
        if self.main:
            clear(self.work)
        return finished

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
        """What tells this run from another; a run goes on only with what was begun from the same."""
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
            own={name: qualified_name(function) for name, function in self.own.items()},
            advisers={teacher.role: teacher.identity for teacher in teachers}
            | scores_identity(resolved.run.teacher)
            | ({} if self.dev_metric is None else {"dev_metric": {"name": qualified_name(self.dev_metric)}}),
            judged=None if judged is None else judged.identity,
        )

    def _warnings(self, loaded: Loaded, resolved: ResolvedSettings) -> Iterator[str]:
        """Warn of a model whose vectors are compared by more than the objectives train."""
        if not resolved.run.optim.weight_mix and "weight_mix" not in loaded.settings.optim.model_fields_set:
            yield UNSUITED
        for name, rows in loaded.data.train.items():
            note = unused_lengths_warning(resolved.datasets[name], rows.kind, loaded.encoder.settings)
            if note is not None and name not in self.own:
                yield f"{name}: {note}" if self.sources.several else note

    def _build(
        self, loaded: Loaded, resolved: ResolvedSettings, teachers: Sequence[Teacher]
    ) -> tuple[TrainingSetup, dict[str, Any]]:
        """What the loop takes, and what the record has of guide and teacher, by role."""
        data, given = loaded.data, resolved.run.teacher
        with self.args.main_process_first(local=False):  # the others find tokens and vectors in the cache
            advice = precompute_vectors(teachers, data.train, given, cache_dir("vectors"), self.show)
            setup = build(loaded, resolved, self.args, self.own, advice, self.show)
        for line in choices_in_words(setup, resolved, self.own):
            self.say(line)
        first, rows = next(iter(data.train.items()))
        known: dict[str, Any] = {
            teacher.role: teacher.record(rows, advice[first].vectors[teacher.role].dim)
            for teacher in teachers
        }
        if given.scores is not None:
            known["teacher_scores"] = {"file": Path(given.scores).name}
        return setup, known

    def _train(
        self, settings: TrainSettings, judged: JudgedPairs | None, asked: Callable[[], bool]
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
        mix = None if optim.weight_mix == 1 else WeightMix(setup.model, optim.weight_mix)
        with stop_signals(signal.SIGINT) as interrupted:  # before and after, there is no step to save
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
                    CheckpointCallback(settings.log, lambda: asked() or interrupted()),
                    *_early_stopping(optim.patience, has_dev=score is not None),
                    *self.callbacks,
                    ProgressCallback(self.show),
                ],
            )
            self._fit(trainer)
        ahead: dict[str, Any] | None = None
        few = sum(map(len, setup.data.dev.values())) <= MOST_RESAMPLED
        if score is not None and few and self.dev_metric is None and not settings.run.shard:
            ahead = on_main(lambda: score().ahead_of(before, seed=settings.seed))
        gain: Gain | None = None
        if judged is not None:
            gain = on_main(lambda: judged.gain(encode, similarity, seed=settings.seed))
        keeps = gain is None or optim.if_not_better == "model" or gain.word == "ship"
        if judged is not None and self.main and not keeps:
            judged.restore(setup.model)
        record = run_record(
            self.sources,
            self.origin,
            settings,
            setup,
            trainer,
            teachers=self.teachers,
            before=before,
            ahead=ahead,
            gain=gain,
            keeps=keeps,
            wall_s=time.perf_counter() - self.begun,
        )
        if self.main:
            self._write(record, settings)
        wait_for_all()
        return record

    def _fit(self, trainer: PairTrainer) -> None:
        """Train to the end, from the newest checkpoint if there is one."""
        resume = newest_checkpoint(self.work)
        if resume is not None:
            self.say(f"{self.work}: continues after step {resume.step}")
        try:
            trainer.fit(resume, self.say)
        except Diverged as error:
            raise self._diverged(trainer, error) from error
        except Stopped as stopped:
            self.say(f"{self.work}: {stopped}, as asked; its checkpoint is there")
            raise

    def _scorer(self, settings: TrainSettings) -> Callable[[], DevScores] | None:
        sets, encoder, own = self.setup.data.dev, self.setup.encoder, self.dev_metric
        if own is not None:

            def own_score() -> DevScores:
                with evaluation_precision(self.args):
                    return DevScores({"dev": own_metric(own, encoder)})

            return own_score
        if not sets:
            return None

        def progress(at: Progress) -> None:
            self.show(replace(at, stage="evaluate on dev data"))

        # A process that begins a batch anew would take part in what the others do later.
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
        """Leave weights from before as a usable model, and name its folder."""
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
        wait_for_all()  # torchrun ends all processes with the first
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
        if has_lora(backbone) and not backbone.name_or_path:  # adapters need their backbone beside them
            merge_lora(backbone)
        encoder.save(folder)
        for own in self.own.values():
            if isinstance(own, TextObjective):
                own.save(folder)


def _early_stopping(patience: int | None, *, has_dev: bool) -> list[TrainerCallback]:
    if patience is None:
        return []
    if not has_dev:
        raise ConfigError("optim.patience: there is no held-out data to judge by; give --dev-data")
    return [EarlyStoppingCallback(patience)]
