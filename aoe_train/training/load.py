"""Load the rows and backbone of a run, and choose the settings that depend on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import set_seed

from aoe_train.data.column_prompts import run_prompts
from aoe_train.data.defaults import (
    FEW_TEXTS,
    RANKED_RIGHT,
    UNSUITED,
    DatasetFacts,
    depends_on_auc,
    first_person_share,
    format_decoder_choices,
    learns_neighbours,
    unused_lengths_warning,
    with_decoder_defaults,
    with_defaults,
    with_defaults_for_all,
    with_domain_preset,
)
from aoe_train.data.examples import without_rows
from aoe_train.data.neighbourhoods import draw_texts
from aoe_train.data.run_data import Data, Sources, read_data
from aoe_train.evaluation.dev import JudgedPairs
from aoe_train.evaluation.overlap import read_digests
from aoe_train.evaluation.pair_metrics import binary
from aoe_train.model.backbones.changes import (
    absorb_lora,
    four_bit_config,
    has_deep_layers,
    has_lora,
    is_causal,
)
from aoe_train.model.backbones.load_backbone import find_folder, outline
from aoe_train.model.backbones.static import is_static, refuse_static
from aoe_train.model.encoder import Encoder
from aoe_train.model.encoder_settings import stored_settings
from aoe_train.model.packing.attention import NAME as PACKED_ATTENTION
from aoe_train.model.precision import Computed, choose_precision, training_note
from aoe_train.model.similarity import pair_similarities
from aoe_train.model.tokenizer import language_warning
from aoe_train.objectives.training_rows import (
    ABSENT,
    Examples,
    TextSelection,
    evenly_spread,
)
from aoe_train.training.processes import on_main
from aoe_train.training.teachers import Teacher, load_teachers
from pairkit.base.cli.progress import stage
from pairkit.base.errors import ConfigError
from pairkit.base.system.folders import try_read_json_object
from pairkit.dataset.reading.in_memory import Source, source_name

if TYPE_CHECKING:
    import torch

    from aoe_train.settings.run_settings import Author
    from aoe_train.settings.train_settings import TrainSettings
    from aoe_train.training.training_arguments import Process

# Pairs on which the backbone is scored before training.
_SAMPLE_PAIRS = 1000


@dataclass(frozen=True)
class Loaded:
    """The inputs of a run, and its complete settings."""

    process: Process
    sources: Sources
    data: Data
    encoder: Encoder  # the backbone
    settings: TrainSettings  # with a single dataset, that dataset's
    datasets: Mapping[str, TrainSettings]
    precision: Computed
    teachers: Sequence[Teacher]  # guide and teacher
    judged: JudgedPairs | None  # pairs on which the model must beat its backbone
    keeps_backbone: bool  # because training would only do harm


def load(sources: Sources, settings: TrainSettings, process: Process) -> Loaded:
    """Read the rows, load the backbone, and choose the settings that depend on them.

    Seeds all random generators. Raises ConfigError or DataError for unusable settings, rows or models.
    """
    set_seed(settings.seed)
    show = process.show
    device = process.args.device
    with stage(f"read {', '.join(map(source_name, sources.data.values()))}", show):
        data = read_data(sources, settings, process.say)
    with stage(f"load {sources.backbone}", show):
        encoder, filled = load_backbone(sources, settings, device)
    if encoder.folder is not None:
        # A damaged file is refused now; the trained model inherits it.
        read_digests(encoder.folder)
    if line := format_decoder_choices(settings, filled):
        process.say(line)

    # Only the defaults of a single dataset depend on more than counts of its rows.
    is_single = not (sources.several or sources.losses)
    name, rows = next(iter(data.train.items()))
    if is_single and rows.kind == "single" and has_deep_layers(encoder.model.backbone):
        filled = with_domain_preset(filled)
    neighbours = is_single and learns_neighbours(filled.of(name), rows.kind)
    auc = None
    if neighbours:
        data = _sample_texts(data, sources, filled.seed, process)
    elif is_single and depends_on_auc(filled):
        auc = _score_backbone(sources, data, encoder, filled, process)

    facts = {
        name: _dataset_facts(
            rows, sources.data[name], filled.data.author, auc, neighbours=neighbours
        )
        for name, rows in data.train.items()
    }
    if sources.several:
        resolved = with_defaults_for_all(filled, facts, dim=encoder.dim)
    else:
        resolved = with_defaults(filled.of(name), facts[name], dim=encoder.dim)
    datasets = {name: resolved.of(name) for name in facts}

    judged = None
    if sources.judged is not None:
        judged = JudgedPairs.read(sources.judged, process.say)
    given = filled.optim.model_fields_set
    return Loaded(
        process=process,
        sources=sources,
        data=data,
        encoder=encoder,
        settings=resolved,
        datasets=datasets,
        precision=choose_precision(resolved.run.precision, device),
        teachers=load_teachers(resolved, datasets, sources, encoder, data, show),
        judged=judged,
        keeps_backbone=resolved.optim.interpolate == 0 and "interpolate" not in given,
    )


def training_warnings(loaded: Loaded) -> Iterator[str]:
    """Warnings of a run, before training."""
    data = loaded.data
    if loaded.judged is not None:
        trained = chain.from_iterable(rows.texts for rows in data.train.values())
        if warning := loaded.judged.warning(trained):
            yield warning
    device = loaded.process.args.device
    if note := training_note(loaded.settings.run.precision, device):
        yield note
    if loaded.keeps_backbone:
        yield UNSUITED
    for name, rows in data.train.items():
        yield from _dataset_warnings(name, rows, loaded)
    if data.dev:
        yield from _overlap_warnings(data)


def _sample_texts(data: Data, sources: Sources, seed: int, process: Process) -> Data:
    """The data with a sample of the training texts, without near-duplicates; prints what was left out."""
    ((name, rows),) = data.train.items()
    with stage("draw texts", process.show):
        rows = draw_texts(rows, seed)
    if counts := rows.reading.left_out:
        left_out = [
            f"{count:,} {reason.replace('_', ' ')}" for reason, count in counts.items()
        ]
        source = source_name(sources.data[name])
        process.say(
            f"{source}: {len(rows):,} texts are trained on; {', '.join(left_out)}"
        )
    return replace(data, train={name: rows})


def _dataset_facts(
    rows: Examples,
    source: Source,
    author: Author | None,
    auc: float | None,
    *,
    neighbours: bool,
) -> DatasetFacts:
    """Properties of a dataset that its defaults depend on."""
    is_from_label, author_of_run = read_authorship(source)
    author = author or author_of_run
    is_mostly_written = 2 * rows.reading.written > len(rows)
    first_person = 0.0
    if author == "rules":
        anchors = TextSelection(rows.texts, rows.rows[:, 0])
        first_person = first_person_share(anchors)
    return DatasetFacts(
        rows.kind,
        len(rows),
        written=is_mostly_written or (is_from_label and author != "people"),
        auc=auc,
        author=author,
        first_person=first_person,
        neighbours=neighbours,
    )


def _dataset_warnings(name: str, rows: Examples, loaded: Loaded) -> Iterator[str]:
    """Warnings of rows that make a model worse, unused prompts, and similarities trained only in part."""
    settings = loaded.datasets[name]
    sources = loaded.sources
    encoder = loaded.encoder
    if warning := language_warning(encoder.tokenizer, rows.texts, sources.backbone):
        yield warning
    texts = len(np.unique(rows.rows[:, 0]))
    if rows.kind in ("single", "triplet") and texts < FEW_TEXTS:
        yield f"warning: {name}: only {texts} texts; use hundreds, as few can make the model worse"
    unused = [prompt for prompt, words in encoder.settings.prompts.items() if words]
    default_prompt = settings.prompts or encoder.settings.default_prompt_name
    if unused and default_prompt is None:
        yield (
            f"warning: {name}: texts get none of the model's prompts ({', '.join(unused)}); name one with"
            " --prompts, or one each for the columns query (the first) and document; '{text}' means none"
        )
    note = unused_lengths_warning(settings, rows.kind, encoder.settings)
    if note is not None and name not in sources.losses:
        yield f"{name}: {note}" if sources.several else note


def _overlap_warnings(data: Data) -> Iterator[str]:
    """Warnings of held-out rows of which all texts are training texts."""
    trained = {text for rows in data.train.values() for text in rows.texts}
    for name, rows in data.dev.items():
        is_trained = np.array([text in trained for text in rows.texts])
        is_known_cell = is_trained[rows.rows] | (rows.rows == ABSENT)
        if count := int(is_known_cell.all(axis=1).sum()):
            yield (
                f"warning: {count:,} of the {len(rows):,} dev rows of {name} have only training texts, so"
                " their score is too high"
            )


def _score_backbone(
    sources: Sources,
    data: Data,
    encoder: Encoder,
    settings: TrainSettings,
    process: Process,
) -> float | None:
    """Print and return the backbone's AUC on a sample of the pairs, if their labels are 0 and 1."""
    ((name, rows),) = data.train.items()
    if rows.kind != "binary" or rows.labels is None:
        return None
    sampled_rows = evenly_spread(len(rows), _SAMPLE_PAIRS)
    labels = rows.labels[sampled_rows]
    if len(np.unique(labels)) < 2:
        return None
    sample = without_rows(rows, np.delete(np.arange(len(rows)), sampled_rows))
    prompts, _ = run_prompts(settings, encoder.settings, {name: sample}, data.dev)
    sample = prompts[name].applied(sample)

    def score() -> float:
        vectors = encoder.encode([*sample.texts], prompt=sample.prompts)
        similarity = encoder.settings.similarity_fn_name
        similarities = pair_similarities(vectors, sample.rows, similarity)
        (auc,) = binary(similarities, labels, name).roc_auc(np.ones((1, len(labels))))
        return float(auc)

    with stage(f"score {sources.backbone} on training pairs", process.show):
        auc = on_main(score)
    line = f"AUC of {sources.backbone} on {len(sample):,} training pairs before training: {100 * auc:.2f}"
    if auc >= RANKED_RIGHT:
        line += (
            "; there is little to learn, so the learning rate is small (--lr, --epochs or --interpolate"
            " overrides this)"
        )
    process.say(line)
    return auc


def load_backbone(
    sources: Sources, settings: TrainSettings, device: torch.device
) -> tuple[Encoder, TrainSettings]:
    """The backbone, and the settings with defaults for decoders.

    It is in float32, or in the run's precision if it is frozen under adapters. Raises ConfigError if it can't
    be trained with these settings.
    """
    folder = find_folder(
        sources.backbone,
        revision=sources.revision,
        trust_remote_code=sources.trust_remote_code,
    )
    is_encoder = is_static(folder) or "pooling" in stored_settings(folder)
    # Remote code can't be recognised as a decoder.
    if not (is_encoder or sources.trust_remote_code) and is_causal(outline(folder)):
        settings = with_decoder_defaults(settings)
    precision: Computed = "fp32"
    if settings.lora:
        precision = choose_precision(settings.run.precision, device)
    encoder = Encoder.load(
        folder,
        trust_remote_code=sources.trust_remote_code,
        device=device,
        precision=precision,
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


def _recompute_layers(encoder: Encoder) -> None:
    """Recompute activations in the backward pass instead of storing them (gradient checkpointing)."""
    backbone: Any = encoder.model.backbone
    # transformers 5.23 renamed the method, and warns about the old name.
    enable = getattr(backbone, "activation_checkpointing_enable", None)
    try:
        (enable or backbone.gradient_checkpointing_enable)({"use_reentrant": False})
    except ValueError as error:
        raise ConfigError(
            f"run.gradient_checkpointing: {type(backbone).__name__} doesn't support it; use run.chunk"
        ) from error
    if encoder.model.packed:
        # The backward pass runs layers outside the code that sets the attention.
        backbone.config._attn_implementation = PACKED_ATTENTION


def read_authorship(source: Source) -> tuple[bool, Author | None]:
    """Whether a dataset's run.json is from `label`, and whether only rules wrote its rows."""
    path = Path(source_name(source))
    # `triplet` and `positive` are subfolders of the dataset.
    for folder in (path, path.parent):
        # The source may be no path, and run.json another program's.
        run = try_read_json_object(folder / "run.json") or {}
        if str(run.get("made_by")).startswith("label "):
            llms = run.get("llms") or {}
            is_by_rules = isinstance(llms, dict) and all(
                isinstance(llm, dict) and llm.get("kind") == "wordnet"
                for llm in llms.values()
            )
            return True, "rules" if llms and is_by_rules else None
    return False, None
