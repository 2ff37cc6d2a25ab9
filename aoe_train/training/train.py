"""Training, from data and backbone to a model folder."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import EarlyStoppingCallback, set_seed
from transformers.utils.logging import disable_progress_bar

from aoe_train.data.conflicts import Say, silent
from aoe_train.data.defaults import only_directions, told_of_decoder
from aoe_train.data.run_data import Data, Sources, one_or_all, read_data
from aoe_train.evaluation.dev import DevScores, dev_scores
from aoe_train.evaluation.overlap import write_digests
from aoe_train.evaluation.task import defined
from aoe_train.model.backbones.decoder import has_lora, merge_lora
from aoe_train.model.cache_dir import cache_dir
from aoe_train.model.memory import memory_errors
from aoe_train.model.origin import hash_files, hash_tokenizer, hash_weights, origin, versions
from aoe_train.model.packing.rows import train_all_rows
from aoe_train.model.precision import training_note
from aoe_train.model.run_folder import (
    RUN_FILE,
    begin_or_go_on,
    clear,
    mark_diverged,
    work_beside,
    working_folder,
)
from aoe_train.objectives.own import OwnObjective, qualified_name
from aoe_train.training.advisers import Adviser, advisers_of, check, consult, scores_identity
from aoe_train.training.card import model_card
from aoe_train.training.datasets import told_in_record, told_of
from aoe_train.training.guard import Guard, check_guarded
from aoe_train.training.preparation import Prepared, choose, load_encoder, prepare
from aoe_train.training.text_objective import TextObjective, check_text_objective
from aoe_train.training.trainer.arguments import (
    evaluation_precision,
    idle_gpus,
    set_evaluation,
    set_precision,
    start_processes,
)
from aoe_train.training.trainer.average import Soup, WeightAverage
from aoe_train.training.trainer.callbacks import PaceCallback, ProgressCallback, Stopped, asked_to_stop
from aoe_train.training.trainer.checkpoints import newest_checkpoint, wait_for_all
from aoe_train.training.trainer.divergence import Diverged, Watch
from aoe_train.training.trainer.gather import is_distributed
from aoe_train.training.trainer.sharding import shard
from aoe_train.training.trainer.trainer import PairTrainer
from pairkit import __version__
from pairkit.app.errors import ConfigError
from pairkit.app.progress import Display, Listener, Progress, stage
from pairkit.dataset.in_memory import source_name
from pairkit.system.files import whole_folder, write_json, write_text
from pairkit.system.machine import peak_rss_mb

if TYPE_CHECKING:
    import numpy as np
    from transformers import TrainerCallback, TrainingArguments

    from aoe_train.data.batches import Batches
    from aoe_train.data.mixture import Mixture
    from aoe_train.evaluation.gain import Gain
    from aoe_train.evaluation.task import Encode
    from aoe_train.model.encoder import Encoder
    from aoe_train.settings.training import TrainSettings
    from pairkit.dataset.in_memory import Source

_KEPT = {True: "model", False: "backbone"}  # whose weights are saved
SOUND = "before-divergence"  # the folder of a model, in the working folder of a run that diverged


def train(
    sources: Sources,
    settings: TrainSettings,
    *,
    own: Mapping[str, OwnObjective] | None = None,
    fresh: bool = False,
    say: Say = print,
    progress: bool | Listener = True,
    callbacks: Sequence[TrainerCallback] = (),
) -> dict[str, Any]:
    """Train a model, or go on with it, or find it finished.

    Under torchrun every process calls this; rank 0 alone writes and tells.

    Args:
        sources: What to train on what, and where to put it.
        settings: How.
        own: By dataset, a loss of one's own in place of the settings' parts.
        fresh: Begin anew, whatever another run left.
        say: Told what goes on.
        progress: Shown on stderr, or told to a function.
        callbacks: Further ones that hear how the run goes, and may end it by an error of theirs.

    Returns:
        The run's record, as in run.json; its `result` is what `aoe train --json` prints.

    Raises:
        ConfigError: settings, data and backbone don't go together, memory is short, another run is in the
            way, or training diverged.
        KeyboardInterrupt: a SIGTERM or SIGUSR1 came while it trained; it left a checkpoint.
        DataError: rows that can't be used, or a first loss that is not finite.
        RemoteError: the Hub could not be asked.
    """
    disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers' own, at each saving
    check_text_objective(own or {}, sources, settings)
    if sources.judged is not None:
        check_guarded(settings)
    work = work_beside(sources.out)
    args = start_processes(settings, work)
    main = args.process_index == 0
    with working_folder(work) if main else nullcontext():
        if main and (idle := idle_gpus(args)):
            say(idle)
        with Display(progress if main else False) as show:
            told = say if main else silent
            run = _Run(sources, settings, own or {}, work, args, told, show, callbacks)
            with memory_errors(lambda: _less_memory(run.settings)):
                return run.run(fresh=fresh)


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
        settings: TrainSettings,
        own: Mapping[str, OwnObjective],
        work: Path,
        args: TrainingArguments,
        say: Say,
        show: Listener,
        callbacks: Sequence[TrainerCallback] = (),
    ) -> None:
        self.sources, self.settings, self.work, self.args = sources, settings, work, args
        self.own, self.say, self.show, self.callbacks = own, say, show, callbacks
        self.main = args.process_index == 0
        self.begun = time.perf_counter()
        self.advised: dict[str, Any] = {}  # by role, for the record
        self.guard: Guard | None = None

    def run(self, *, fresh: bool) -> dict[str, Any]:
        sources, args = self.sources, self.args
        set_seed(self.settings.seed)
        with stage(f"read {', '.join(map(source_name, sources.data.values()))}", self.show):
            ranked = sources.data.keys() - self.own.keys()
            data = read_data(sources, self.settings, self.say, ranked=ranked, show=self.show)
        with stage(f"load {sources.backbone}", self.show):
            encoder, settings = load_encoder(sources, self.settings, args.device)
        if line := told_of_decoder(self.settings, settings):
            self.say(line)
        self.settings = settings = choose(settings, sources, data, encoder, args)
        set_precision(args, settings.run.precision)
        advisers = self._advisers(data, encoder)
        self.guard = self._guard(data)
        self.origin: dict[str, Any] = self._on_main(
            lambda: origin(
                settings,
                data=data.train,
                dev_data=data.dev,
                backbone=hash_weights(encoder.model),
                tokenizer=hash_tokenizer(encoder.tokenizer),
                prompts=encoder.settings,
                precision=args.mixed_precision,
                processes=args.world_size,
                own={name: qualified_name(function) for name, function in self.own.items()},
                advisers={adviser.role: adviser.identity for adviser in advisers}
                | scores_identity(settings.teacher),
                judged=None if self.guard is None else self.guard.identity,
            )
        )
        finished: dict[str, Any] | None = self._on_main(
            lambda: begin_or_go_on(sources.out, self.work, self.origin, fresh=fresh)
        )
        if finished is not None:
            self.say(f"{sources.out}: is finished already; give --fresh to train anew")
        else:
            if self.main and (note := training_note(settings.run.precision, args.device)):
                self.say(note)
            for note in self._directions(data, encoder):
                self.say(note)
            with args.main_process_first(local=False):  # the others find tokens and vectors in the cache
                advice = consult(advisers, data.train, settings.teacher, cache_dir("vectors"), self.show)
                prepared = prepare(
                    encoder, data, settings, args, own=self.own, advice=advice, progress=self.show
                )
            for line in told_of(prepared, settings, self.own):
                self.say(line)
            first, rows = next(iter(data.train.items()))
            self.advised = {
                adviser.role: adviser.record(rows, advice[first].vectors[adviser.role].dim)
                for adviser in advisers
            }
            if settings.teacher.scores is not None:
                self.advised["teacher_scores"] = {"file": Path(settings.teacher.scores).name}
            with asked_to_stop() as asked:
                finished = self._train(prepared, asked)
        if self.main:
            clear(self.work)
        return finished

    def _guard(self, data: Data) -> Guard | None:
        if self.sources.judged is None:
            return None
        guard = Guard(self.sources.judged, self.say)
        if self.main:
            guard.warn(chain.from_iterable(rows.texts for rows in data.train.values()), self.say)
        return guard

    def _directions(self, data: Data, encoder: Encoder) -> Iterator[str]:
        """What to tell of a model whose vectors are compared by more than what the objectives train."""
        for name, rows in data.train.items():
            note = only_directions(self.settings.of(name), rows.kind, encoder.settings)
            if note is not None and name not in self.own:
                yield f"{name}: {note}" if self.sources.several else note

    def _advisers(self, data: Data, encoder: Encoder) -> list[Adviser]:
        """Those of the run; rank 0 alone loads them, to find out who they are."""
        found = advisers_of(self.settings)
        with stage("load advisers", self.show) if found else nullcontext():
            known = self._on_main(lambda: [adviser.identity for adviser in found])
        for adviser, identity in zip(found, known, strict=True):
            adviser.know(identity)
        for name, rows in data.train.items():
            wanted, teacher = self.settings.of(name).objective, self.settings.teacher
            check(found, wanted, encoder, rows, teacher, own=name in self.own)
        return found

    def _on_main(self, action: Callable[[], Any]) -> Any:
        """What `action` returns on rank 0, on every rank."""
        found = [action() if self.main else None]
        if is_distributed():
            torch.distributed.broadcast_object_list(found, src=0)
        return found[0]

    def _train(self, prepared: Prepared, asked: Callable[[], bool]) -> dict[str, Any]:
        score = self._scorer(prepared)
        before: DevScores | None = self._on_main(score) if score else None
        watch = self._watch(prepared)
        encode, similarity = self._encode(prepared), prepared.encoder.settings.similarity_fn_name
        if (guard := self.guard) is not None:
            self._on_main(lambda: guard.remember(prepared.model, encode, similarity))
        set_evaluation(self.args, self.settings, len(prepared.loader), evaluate=score is not None)
        if self.settings.run.shard:
            shard(prepared.model)
        optim = self.settings.optim
        trainer = PairTrainer(
            prepared.model,
            self.args,
            prepared.loader,
            work=self.work,
            evaluate_dev=score and (lambda: score().figures),
            dev_sets=[*prepared.data.dev] if len(prepared.data.dev) > 1 else [],
            datasets=[dataset.name for dataset in prepared.datasets],
            average=WeightAverage(
                optim.average, None if optim.soup == 1 else Soup(prepared.model, optim.soup)
            ),
            watch=watch,
            callbacks=[PaceCallback(self.settings.log, asked), *self._stopping(score), *self.callbacks],
        )
        trainer.add_callback(ProgressCallback(self.show))
        resume = newest_checkpoint(self.work)
        if resume is not None:
            self.say(f"{self.work}: continues after step {resume.step}")
        try:
            trainer.fit(resume, self.say)
        except Diverged as error:
            raise self._diverged(prepared, trainer, error) from error
        except Stopped as stopped:
            self.say(f"{self.work}: {stopped}, as asked; its checkpoint is there")
            raise
        gain: Gain | None = None
        if guard is not None:
            gain = self._on_main(lambda: guard.gain(encode, similarity, seed=self.settings.seed))
            if self.main and not self._keeps(gain):
                guard.restore(prepared.model)
        record = self._record(prepared, trainer, before, gain)
        if self.main:
            self._write(prepared, record)
        wait_for_all()
        return record

    def _scorer(self, prepared: Prepared) -> Callable[[], DevScores] | None:
        sets, encoder = prepared.data.dev, prepared.encoder
        if not sets:
            return None
        # A process that begins a batch anew would take part in what others do later.
        encode = partial(encoder.encode, halve=not self.settings.run.shard, progress=self._dev_progress)

        def score() -> DevScores:
            with evaluation_precision(self.args):
                return dev_scores(
                    encode, sets, encoder.settings.similarity_fn_name, chosen=self.settings.mix.dev
                )

        return score

    def _keeps(self, gain: Gain | None) -> bool:
        """Whether what was learnt is kept, by what judged pairs say of it."""
        return gain is None or self.settings.optim.keep == "always" or gain.word == "ship"

    def _encode(self, prepared: Prepared) -> Encode:
        def encode(texts: list[str]) -> np.ndarray:
            with evaluation_precision(self.args):
                return prepared.encoder.encode(texts, halve=not self.settings.run.shard)

        return encode

    def _watch(self, prepared: Prepared) -> Watch:
        data = prepared.data
        texts = (rows.texts for rows in (*data.train.values(), *data.dev.values()))
        watch = Watch(self._encode(prepared), *texts)
        watch.before = self._on_main(watch.spread)
        return watch

    def _diverged(self, prepared: Prepared, trainer: PairTrainer, error: Diverged) -> ConfigError:
        """Leave weights from before as a model that can be used, and say where."""
        restored = trainer.restore_sound()
        message = str(error)
        if restored is not None:
            folder = self.work / SOUND
            message += f"; {restored} are in {folder}"
            if self.main:
                with whole_folder(folder) as partial:
                    self._save(prepared, partial)
        if self.main:
            mark_diverged(self.work, self.origin, message)
        wait_for_all()  # torchrun ends all processes with the first
        return ConfigError(message)

    def _dev_progress(self, at: Progress) -> None:
        self.show(replace(at, stage="evaluate on dev data"))

    def _stopping(self, score: object) -> list[TrainerCallback]:
        patience = self.settings.optim.patience
        if patience is None:
            return []
        if score is None:
            raise ConfigError("optim.patience: there is no held-out data to judge by; give --dev-data")
        return [EarlyStoppingCallback(patience)]

    def _record(
        self, prepared: Prepared, trainer: PairTrainer, before: DevScores | None, gain: Gain | None
    ) -> dict[str, Any]:
        steps, history = trainer.state.global_step, [_finite(entry) for entry in trainer.state.log_history]
        pairs = rows_trained(prepared.batches, steps, self.settings.optim.accumulation)
        sources, seconds = self.sources, trainer.clock.seconds
        best, keeps = trainer.state.best_global_step, self._keeps(gain)
        dev_history = [entry for entry in history if "eval_dev" in entry]
        return {
            "made_by": f"aoe {__version__}",
            "result": {
                "out": str(sources.out),
                "steps": steps,
                "pairs": pairs,
                "seconds": round(seconds, 3),
                "pairs_per_s": round(pairs / seconds, 2),
                "peak_rss_mb": peak_rss_mb(),
                "dev": trainer.state.best_metric if keeps or before is None else before.deciding.value,
                "dev_metric": before and before.deciding.name,
                "dev_before": before and before.deciding.value,
            }
            | _dev_sets(before, [entry for entry in dev_history if entry["step"] == best], trained=keeps)
            | ({} if gain is None else {"judged": {**gain.to_dict(), "kept": _KEPT[keeps]}}),
            "origin": self.origin,
            "sources": sources.names(),
            "files": {"data": _hashes(sources.data), "dev_data": _hashes(sources.dev_data or {})},
            "encoder": prepared.encoder.settings.model_dump(mode="json"),
            **({"advisers": self.advised} if self.advised else {}),
            **told_in_record(prepared),
            "training_texts": self.settings.log.training_texts and keeps,
            "versions": versions(),
            "wall_s": round(time.perf_counter() - self.begun, 3),
            "history": [entry for entry in history if "loss" in entry],
            "dev_history": dev_history,
            "best_step": (best or None) if keeps else None,
        }

    def _write(self, prepared: Prepared, record: dict[str, Any]) -> None:
        with whole_folder(self.sources.out) as folder:
            self._save(prepared, folder)
            if record["training_texts"]:
                texts = (rows.texts for rows in prepared.data.train.values())
                write_digests(folder, chain.from_iterable(texts))
            card = model_card(self.sources.out.name, record, prepared.encoder.dim, about=self.settings.card)
            write_text(folder / "README.md", card)
            write_json(folder / RUN_FILE, record)

    def _save(self, prepared: Prepared, folder: Path) -> None:
        backbone = prepared.encoder.model.backbone
        train_all_rows(backbone)
        if has_lora(backbone) and not backbone.name_or_path:  # adapters are of use beside their backbone only
            merge_lora(backbone)
        prepared.encoder.save(folder)
        for own in self.own.values():
            if isinstance(own, TextObjective):
                own.save(folder)


def _finite(entry: dict[str, Any]) -> dict[str, Any]:
    """A log entry as JSON can hold it: a gradient norm that overflowed, as in fp16's first steps, is None."""
    return {name: defined(value) if isinstance(value, float) else value for name, value in entry.items()}


def _hashes(sources: Mapping[str, Source]) -> dict[str, Any]:
    """Of each source's files; without a name where there is but one."""
    found: dict[str, Any] = one_or_all({name: hash_files(source) for name, source in sources.items()})
    return found


def _dev_sets(
    before: DevScores | None, best: Sequence[Mapping[str, Any]], *, trained: bool
) -> dict[str, Any]:
    """Of several dev sets, what each measures, before training and with the weights kept."""
    if before is None or len(before.by_set) == 1:
        return {}
    told = {
        name: {
            "metric": metric.name,
            "before": metric.value,
            "dev": (best[0][f"eval_dev.{name}"] if best else None) if trained else metric.value,
        }
        for name, metric in before.by_set.items()
    }
    return {"dev_sets": told, "dev_set": before.chosen}


def rows_trained(batches: Batches | Mixture, steps: int, accumulation: int) -> int:
    """Rows in the batches of so many optimiser steps, of all processes together."""
    epochs, rest = divmod(steps, math.ceil(len(batches) / accumulation))
    begun = batches.plan(epochs)[: rest * accumulation]
    return batches.rows_seen(epochs) + sum(map(len, begun))
