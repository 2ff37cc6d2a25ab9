"""A training run: load, build, fit, write; each stage takes the previous one's result."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from transformers.utils.logging import disable_progress_bar

from aoe_train.data.examples import Say, silent
from aoe_train.data.run_data import Sources
from aoe_train.evaluation.dev import check_judged
from aoe_train.evaluation.overlap import training_digests, write_digests
from aoe_train.model.memory import memory_errors
from aoe_train.model.model_folder import (
    RUN_FILE,
    begin_or_go_on,
    clear,
    mark_diverged,
    work_beside,
    working_folder,
)
from aoe_train.training.build import build
from aoe_train.training.callbacks import SCHEDULERS, stop_signals
from aoe_train.training.fit import Fitted, fit
from aoe_train.training.load import Loaded, load, training_warnings
from aoe_train.training.model_card import model_card
from aoe_train.training.monitoring import Baseline, Diverged
from aoe_train.training.pair_model import check_loss_functions
from aoe_train.training.processes import is_main, on_main, wait_for_all
from aoe_train.training.train_record import format_run_choices, run_identity, run_record
from aoe_train.training.training_arguments import (
    Process,
    idle_processors,
    memory_advice,
    start_processes,
)
from pairkit.base.cli.progress import Display, Listener
from pairkit.base.system.files import whole_folder, write_json, write_text
from pairkit.dataset.records import join_bad_rows, write_bad_rows

if TYPE_CHECKING:
    from transformers import TrainerCallback

    from aoe_train.settings.train_settings import TrainSettings


def train(
    sources: Sources,
    settings: TrainSettings,
    *,
    fresh: bool = False,
    say: Say = print,
    progress: bool | Listener = True,
    callbacks: Sequence[TrainerCallback] = (),
) -> dict[str, Any]:
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
) -> dict[str, Any]:
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


def _write_model_folder(fitted: Fitted, origin: Mapping[str, Any]) -> dict[str, Any]:
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
