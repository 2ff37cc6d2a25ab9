"""Load the rows and backbone of a run, and choose the settings that depend on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aoe_train.data.column_prompts import run_prompts
from aoe_train.data.defaults import (
    RANKED_RIGHT,
    DatasetFacts,
    depends_on_auc,
    first_person_share,
    format_decoder_choices,
    learns_neighbours,
    with_decoder_defaults,
    with_defaults,
    with_defaults_for_all,
    with_domain_preset,
)
from aoe_train.data.neighbourhoods import draw_texts
from aoe_train.data.run_data import Data, Sources, read_data
from aoe_train.evaluation.pair_metrics import binary
from aoe_train.model.backbones.decoder import absorb_lora, four_bit_config, has_lora, is_causal
from aoe_train.model.backbones.depth import has_deep_layers
from aoe_train.model.backbones.load_backbone import check_pin, find_folder, outline, recompute_layers
from aoe_train.model.backbones.static import is_static, refuse_static
from aoe_train.model.encoder import Encoder
from aoe_train.model.encoder_settings import stored_settings
from aoe_train.model.folder_checks import read_object
from aoe_train.model.packing.attention import NAME as PACKED_ATTENTION
from aoe_train.model.precision import Computed, choose_precision
from aoe_train.model.similarity import pair_similarities
from aoe_train.records import TextSelection
from aoe_train.training.processes import on_main
from aoe_train.training.training_arguments import set_optim
from pairkit.base.cli.progress import stage
from pairkit.base.errors import ConfigError, DataError
from pairkit.dataset.reading.in_memory import Source, source_name

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from aoe_train.data.examples import Say
    from aoe_train.settings.train_settings import Author, TrainSettings
    from pairkit.base.cli.progress import Listener

_SAMPLE = 1000  # pairs on which the backbone is scored before training


@dataclass(frozen=True)
class Loaded:
    """Rows, the backbone, and the settings with defaults for decoders."""

    data: Data
    encoder: Encoder
    settings: TrainSettings
    auc: float | None = None  # the backbone's, on the training pairs; only if defaults depend on it
    neighbours: bool = False  # whether single texts are trained on with their neighbourhoods


def load(
    sources: Sources, settings: TrainSettings, custom: Collection[str], device: Any, say: Say, show: Listener
) -> Loaded:
    """Read the rows and load the backbone; datasets named in `custom` have the user's own loss."""
    with stage(f"read {', '.join(map(source_name, sources.data.values()))}", show):
        data = read_data(sources, settings, say, ranked=sources.data.keys() - custom)
    with stage(f"load {sources.backbone}", show):
        encoder, filled = load_backbone(sources, settings, device)
    if line := format_decoder_choices(settings, filled):
        say(line)
    if sources.several or custom:
        return Loaded(data, encoder, filled)
    ((name, rows),) = data.train.items()
    if rows.kind == "single" and has_deep_layers(encoder.model.backbone):
        filled = with_domain_preset(filled)
    if learns_neighbours(filled.of(name), rows.kind):
        with stage("draw texts", show):
            rows = draw_texts(rows, filled.seed)
        if left_out := rows.reading.left_out:
            reasons = (f"{count:,} {reason.replace('_', ' ')}" for reason, count in left_out.items())
            say(
                f"{source_name(sources.data[name])}: {len(rows):,} texts are trained on; {', '.join(reasons)}"
            )
        return Loaded(replace(data, train={name: rows}), encoder, filled, neighbours=True)
    auc = _backbone_auc(sources, data, encoder, filled, say, show) if depends_on_auc(filled) else None
    return Loaded(data, encoder, filled, auc)


def _backbone_auc(
    sources: Sources, data: Data, encoder: Encoder, settings: TrainSettings, say: Say, show: Listener
) -> float | None:
    """The backbone's AUC on a sample of the pairs, if their labels are 0 and 1."""
    ((name, rows),) = data.train.items()
    if rows.kind != "binary":
        return None
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLE)).astype(np.int64))
    used, indices = np.unique(rows.rows[chosen], return_inverse=True)
    sample = replace(
        rows,
        texts=TextSelection(rows.texts, used),
        rows=indices.reshape(len(chosen), -1),
        labels=None if rows.labels is None else rows.labels[chosen],
    )
    sample = run_prompts(settings, encoder.settings, {name: sample}, data.dev).of(name).applied(sample)
    if sample.labels is None or len(np.unique(sample.labels)) < 2:
        return None

    def score() -> float:
        vectors = encoder.encode([*sample.texts], prompt=sample.prompts)
        similarities = pair_similarities(vectors, sample.rows, encoder.settings.similarity_fn_name)
        return binary(similarities, np.asarray(sample.labels), name).scores()["roc_auc"]

    with stage(f"score {sources.backbone} on training pairs", show):
        auc: float = on_main(score)
    line = f"AUC of {sources.backbone} on {len(sample):,} training pairs before training: {100 * auc:.2f}"
    if auc >= RANKED_RIGHT:
        line += (
            "; there is little to learn, so the learning rate is small (--lr, --epochs or --interpolate"
            " overrides this)"
        )
    say(line)
    return auc


def load_backbone(sources: Sources, settings: TrainSettings, device: Any) -> tuple[Encoder, TrainSettings]:
    """The backbone to train, and the settings with defaults for decoders.

    Trained weights are float32; weights frozen under adapters have the run's precision.
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
                f"{sources.backbone}: has adapters, which can't be merged into 4-bit weights; merge them with"
                " `aoe export` first, or set lora.four_bit=false"
            )
        absorb_lora(backbone)
    if settings.run.gradient_checkpointing:
        _recompute_layers(encoder)
    return encoder, settings


def _for_decoder(settings: TrainSettings, folder: Path, *, trust_remote_code: bool) -> TrainSettings:
    """Defaults for a decoder, before its weights are read; remote code can't be recognised as a decoder."""
    is_encoder = is_static(folder) or "pooling" in stored_settings(folder)
    if is_encoder or trust_remote_code or not is_causal(outline(folder)):
        return settings
    return with_decoder_defaults(settings)


def _recompute_layers(encoder: Encoder) -> None:
    backbone = encoder.model.backbone
    try:
        recompute_layers(backbone)
    except ValueError as error:
        raise ConfigError(
            f"run.gradient_checkpointing: {type(backbone).__name__} doesn't support it; use run.chunk"
        ) from error
    if encoder.model.packed:
        # The backward pass runs layers outside the code that sets the attention.
        backbone.config._attn_implementation = PACKED_ATTENTION


@dataclass(frozen=True)
class ResolvedSettings:
    """The complete settings of a run.

    Attributes:
        run: Settings of the run; with a single dataset, that dataset's.
        datasets: Settings of each dataset.
        precision: Precision of the computation.
    """

    run: TrainSettings
    datasets: Mapping[str, TrainSettings]
    precision: Computed


def resolve(sources: Sources, loaded: Loaded, args: TrainingArguments) -> ResolvedSettings:
    """Fill unset settings with defaults for the rows and the backbone, and update `args`."""
    settings, dim = loaded.settings, loaded.encoder.dim
    facts = {}
    for name, rows in loaded.data.train.items():
        written, author = read_authorship(sources.data[name])
        author = settings.data.author or author
        written = (written and author != "people") or 2 * rows.reading.written > len(rows)
        anchors = [rows.texts[int(text)] for text in rows.rows[:, 0]] if author == "rules" else []
        facts[name] = DatasetFacts(
            rows.kind,
            len(rows),
            written,
            loaded.auc,
            author,
            first_person_share(anchors),
            loaded.neighbours,
        )
    if sources.several:
        resolved = with_defaults_for_all(settings, facts, dim=dim)
    else:
        ((name, only),) = facts.items()
        resolved = with_defaults(settings.of(name), only, dim=dim)
    precision = choose_precision(resolved.run.precision, args.device)
    set_optim(args, resolved.optim, precision)
    return ResolvedSettings(resolved, {name: resolved.of(name) for name in facts}, precision)


def read_authorship(source: Source) -> tuple[bool, Author | None]:
    """Whether a dataset's run.json is from `label`, and whether only rules wrote its rows."""
    path = Path(source_name(source))
    for folder in (path, path.parent):  # `triplet` and `positive` are subfolders of the dataset
        with suppress(DataError, OSError, ValueError):  # not a path, or another program's run.json
            run = read_object(folder / "run.json")
            if str(run.get("made_by")).startswith("label "):
                llms = run.get("llms")
                kinds = {llm.get("kind") for llm in llms.values()} if isinstance(llms, dict) else set()
                return True, "rules" if kinds == {"wordnet"} else None
    return False, None
