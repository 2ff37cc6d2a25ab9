"""Load the rows and backbone of a run, and resolve its settings once by what they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aoe_train.data.defaults import (
    RANKED_RIGHT,
    DatasetFacts,
    depends_on_auc,
    first_person_share,
    format_decoder_choices,
    with_decoder_defaults,
    with_defaults,
    with_defaults_for_all,
)
from aoe_train.data.run_data import Data, Sources, read_data, run_prompts
from aoe_train.evaluation.pair_metrics import binary
from aoe_train.model.backbones.decoder import absorb_lora, four_bit_config, has_lora, is_causal
from aoe_train.model.backbones.load import check_pin, find_folder, outline, recompute_layers
from aoe_train.model.backbones.static import is_static, refuse_static
from aoe_train.model.encoder import Encoder
from aoe_train.model.encoder_settings import stored_settings
from aoe_train.model.folder_checks import read_object
from aoe_train.model.packing.attention import NAME as PACKED_ATTENTION
from aoe_train.model.precision import Computed, choose_precision
from aoe_train.model.similarity import pair_similarities
from aoe_train.records import TextSelection
from aoe_train.training.arguments import set_chosen
from aoe_train.training.processes import on_main
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.progress import stage
from pairkit.dataset.in_memory import Source, source_name

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from aoe_train.data.examples import Say
    from aoe_train.data.run_data import Sources
    from aoe_train.settings.training import Author, TrainSettings
    from pairkit.app.progress import Listener

_SAMPLE = 1000  # pairs by which the backbone is scored before training


@dataclass(frozen=True)
class Loaded:
    """Rows, the backbone, and the settings with what suits a decoder."""

    data: Data
    encoder: Encoder
    settings: TrainSettings
    auc: float | None = None  # of the backbone on the pairs to train on, where defaults depend on it


def load(
    sources: Sources, settings: TrainSettings, own: Collection[str], device: Any, say: Say, show: Listener
) -> Loaded:
    """Read the rows and load the backbone; datasets named in `own` have a loss of the user's."""
    with stage(f"read {', '.join(map(source_name, sources.data.values()))}", show):
        data = read_data(sources, settings, say, ranked=sources.data.keys() - own)
    with stage(f"load {sources.backbone}", show):
        encoder, found = load_backbone(sources, settings, device)
    if line := format_decoder_choices(settings, found):
        say(line)
    auc = None
    if not (sources.several or own) and depends_on_auc(found):
        auc = _backbone_auc(sources, data, encoder, found, say, show)
    return Loaded(data, encoder, found, auc)


def _backbone_auc(
    sources: Sources, data: Data, encoder: Encoder, settings: TrainSettings, say: Say, show: Listener
) -> float | None:
    """How well the backbone ranks pairs of labels 0 and 1 before training, by a sample of them."""
    ((name, rows),) = data.train.items()
    if rows.kind != "binary":
        return None
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLE)).astype(np.int64))
    used, numbers = np.unique(rows.rows[chosen], return_inverse=True)
    sample = replace(
        rows,
        texts=TextSelection(rows.texts, used),
        rows=numbers.reshape(len(chosen), -1),
        labels=None if rows.labels is None else rows.labels[chosen],
    )
    sample = run_prompts(settings, encoder.settings, {name: sample}, data.dev).of(name).applied(sample)
    if sample.labels is None or len(np.unique(sample.labels)) < 2:
        return None

    def score() -> float:
        vectors = encoder.encode([*sample.texts], prompt=sample.prompts)
        alike = pair_similarities(vectors, sample.rows, encoder.settings.similarity_fn_name)
        return binary(alike, np.asarray(sample.labels), name).scores()["roc_auc"]

    with stage(f"score {sources.backbone} on the rows to train on", show):
        auc: float = on_main(score)
    line = f"AUC of {sources.backbone} on {len(sample):,} of the rows before training: {100 * auc:.2f}"
    if auc >= RANKED_RIGHT:
        line += (
            "; it ranks them right already, so the learning rate is small, to keep what it can do (--lr,"
            " --epochs or --weight-mix overrides that)"
        )
    say(line)
    return auc


def load_backbone(sources: Sources, settings: TrainSettings, device: Any) -> tuple[Encoder, TrainSettings]:
    """The backbone to train, and the settings with what suits a decoder.

    Weights that learn are float32; those frozen under adapters have the precision that the run computes in.
    """
    check_pin(sources.backbone, sources.revision, trust_remote_code=sources.trust_remote_code)
    folder = find_folder(sources.backbone, revision=sources.revision)
    settings = _for_decoder(settings, folder, trust_remote_code=sources.trust_remote_code)
    encoder = Encoder.load(
        folder,
        trust_remote_code=sources.trust_remote_code,
        device=device,
        precision=choose_precision(settings.run.precision, device) if settings.lora else "fp32",
        packing=settings.run.packing,
        quantization=settings.lora and four_bit_config(settings.lora),
        **settings.encoder.model_dump(exclude_unset=True),
    )
    backbone = encoder.model.backbone
    refuse_static(backbone, f"{sources.backbone}: training")
    if has_lora(backbone):
        if settings.lora and settings.lora.four_bit:
            raise ConfigError(
                f"{sources.backbone}: has adapters, which 4-bit weights can't take in; `aoe export` it to a "
                "whole model first, or set lora.four_bit=false"
            )
        absorb_lora(backbone)
    if settings.run.gradient_checkpointing:
        _recompute_layers(encoder)
    return encoder, settings


def _for_decoder(settings: TrainSettings, folder: Path, *, trust_remote_code: bool) -> TrainSettings:
    """Defaults for a decoder are known before its weights are read.

    A folder with a stored pooling is an encoder already, and a configuration with code of its own is unknown.
    """
    encodes = is_static(folder) or "pooling" in stored_settings(folder)
    if encodes or trust_remote_code or not is_causal(outline(folder)):
        return settings
    return with_decoder_defaults(settings)


def _recompute_layers(encoder: Encoder) -> None:
    backbone = encoder.model.backbone
    try:
        recompute_layers(backbone)
    except ValueError as error:
        raise ConfigError(
            f"run.gradient_checkpointing: {type(backbone).__name__} can't recompute its layers; use run.chunk"
        ) from error
    if (
        encoder.model.packed
    ):  # layers run again in the backward pass, outside the code that sets the attention
        backbone.config._attn_implementation = PACKED_ATTENTION


@dataclass(frozen=True)
class ResolvedSettings:
    """The settings of a run with nothing left open.

    Attributes:
        run: What holds for the whole run; of a single dataset, that dataset's.
        datasets: What holds for each dataset.
        precision: What the run computes in.
    """

    run: TrainSettings
    datasets: Mapping[str, TrainSettings]
    precision: Computed


def resolve(sources: Sources, loaded: Loaded, args: TrainingArguments) -> ResolvedSettings:
    """Choose what was not given, and put it into the arguments too."""
    given, dim = loaded.settings, loaded.encoder.dim
    facts = {}
    for name, rows in loaded.data.train.items():
        written, author = read_authorship(sources.data[name])
        author = given.data.author or author
        written = (written and author != "people") or 2 * rows.reading.written > len(rows)
        anchors = [rows.texts[int(text)] for text in rows.rows[:, 0]] if author == "rules" else []
        facts[name] = DatasetFacts(
            rows.kind, len(rows), written, loaded.auc, author, first_person_share(anchors)
        )
    if sources.several:
        chosen = with_defaults_for_all(given, facts, dim=dim)
    else:
        ((name, one),) = facts.items()
        chosen = with_defaults(given.of(name), one, dim=dim)
    precision = choose_precision(chosen.run.precision, args.device)
    set_chosen(args, chosen.optim, precision)
    return ResolvedSettings(chosen, {name: chosen.of(name) for name in facts}, precision)


def read_authorship(source: Source) -> tuple[bool, Author | None]:
    """Whether `label` made the dataset, by its run.json, and whether rules alone wrote its rows."""
    folder = Path(source_name(source))
    for place in (folder, folder.parent):  # `triplet` and `positive` are folders within the dataset's
        with suppress(DataError, OSError, ValueError):  # a run.json of others; a name that is no path
            run = read_object(place / "run.json")
            maker = str(run.get("made_by"))
            if maker.startswith("label "):
                llms = run.get("llms")
                kinds = {one.get("kind") for one in llms.values()} if isinstance(llms, dict) else set()
                return True, "rules" if kinds == {"wordnet"} else None
    return False, None
