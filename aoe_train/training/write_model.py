"""Write a trained model: its folder with weights, run.json and card."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train.evaluation.overlap import write_digests
from aoe_train.model.backbones.decoder import has_lora, merge_lora
from aoe_train.model.model_folder import RUN_FILE
from aoe_train.model.packing.layers import train_all_rows
from aoe_train.training.model_card import model_card
from aoe_train.training.pair_model import TextObjective
from aoe_train.training.train_record import RunRecord, run_record
from pairkit.base.system.files import whole_folder, write_json, write_text
from pairkit.dataset.reading.bad_rows import joined, write_bad_rows

if TYPE_CHECKING:
    from aoe_train.training.build import Built
    from aoe_train.training.fit import Fitted


def write(fitted: Fitted, origin: Mapping[str, Any]) -> RunRecord:
    """Write the model's folder; `origin` is what identifies its run."""
    built, loaded, record = fitted.built, fitted.built.loaded, run_record(fitted, origin)
    out, data = loaded.sources.out, built.data
    bad_rows = (rows.reading.bad_rows for rows in (*data.train.values(), *data.dev.values()))
    write_bad_rows(out, joined(bad_rows))
    with whole_folder(out) as folder:
        save_model(built, folder)
        if record.training_texts:
            write_digests(folder, chain.from_iterable(rows.texts for rows in data.train.values()))
        write_text(folder / "README.md", model_card(out.name, record, loaded.settings, built.encoder.dim))
        write_json(folder / RUN_FILE, record.to_dict())
    return record


def save_model(built: Built, folder: Path) -> None:
    """Write the encoder, and the files of a `TextObjective`."""
    backbone = built.encoder.model.backbone
    train_all_rows(backbone)
    if has_lora(backbone) and not backbone.name_or_path:  # adapters would refer to no backbone
        merge_lora(backbone)
    built.encoder.save(folder)
    for loss in built.loaded.sources.losses.values():
        if isinstance(loss, TextObjective):
            loss.save(folder)
