"""The model card: README.md of a trained model, and the parts that cards of exported models share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train.data.examples import negatives_in_words
from aoe_train.data.token_batches import format_epoch_share
from aoe_train.model.backbones.packaged import PACKAGED, Packaged
from pairkit.base.printable import one_line
from pairkit.dataset.making.dataset_folder import table

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

    from aoe_train.objectives.objective_settings import ObjectiveSettings
    from aoe_train.settings.train_settings import (
        EncoderSettings,
        NamedPrompts,
        TrainSettings,
    )
    from aoe_train.training.train import DatasetRecord, RunRecord


_TAGS = (
    "sentence-transformers",
    "feature-extraction",
    "sentence-similarity",
    "angle",
    "aoe",
)
# Names of dev metrics on the Hub by similarity, as in sentence-transformers' evaluators.
_HUB_METRICS = {
    "spearman": "spearman_{}",
    "triplet_accuracy": "{}_accuracy",
    "mrr": "{}_mrr",
}
_KINDS_OF_ROWS = {
    "binary": "pairs labelled 0 or 1",
    "graded": "graded pairs",
    "positive": "positive pairs",
    "triplet": "triplets",
    "single": "single texts",
}
_BACKBONE = (
    "**These are the backbone's own weights.** The training below was not shown to improve them on judged"
    " pairs, so the trained weights were discarded."
)
_HASHES = (
    "`training_texts.npy` has a 64-bit hash of each text, with which `aoe evaluate` reports overlaps with"
    " test sets. Texts can't be read from it, but anyone who has a text can check whether it is among them."
    " Delete the file if that must stay private."
)
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_FRAMEWORKS = """

LangChain and LlamaIndex use these prompts only if you give them:

```python
HuggingFaceEmbeddings(
    model_name="path/to/this/folder",
    encode_kwargs={{"prompt_name": {document}}},
    query_encode_kwargs={{"prompt_name": {query}}},
)  # langchain_huggingface
HuggingFaceEmbedding(
    "path/to/this/folder",
    query_instruction={query_words},
    text_instruction={document_words},
)  # llama_index.embeddings.huggingface
```"""


def model_card(name: str, record: RunRecord, settings: TrainSettings, dim: int) -> str:
    """The card of a trained model."""
    about = settings.card
    backbone = record.sources.backbone
    packaged = PACKAGED.get(backbone)
    base_model = packaged.hub_id if packaged else hub_id(backbone)
    datasets = [
        hub_id(source.partition(":")[0]) for source in record.sources.data.values()
    ]
    head = card_head(
        name,
        tags=_TAGS,
        license_id=about.license,
        language=about.language or record.languages,
        base_model=about.base_model or base_model,
        datasets=dict.fromkeys(filter(None, datasets)),
        results=_eval_results(record),
    )
    body = [f"# {name}"]
    if record.result.kept == "backbone":
        body.append(_BACKBONE)
    body.append(
        f"Maps a text to a vector of {dim} numbers; texts with similar meaning have similar vectors."
    )
    objective = [
        _objective_section(record, settings),
        *_describe_teachers(record, settings),
    ]
    sections = {
        "Use": _use_section(record.encoder),
        "Training data": _data_section(record, settings),
        "Objective": "\n\n".join(objective),
        "Settings": _settings_section(record, settings),
        "Results": _results_section(record),
        "Licence": _licence_section(about.license, packaged),
    }
    body += [f"## {title}\n\n{text}" for title, text in sections.items()]
    return head + "\n\n".join(body) + "\n"


def _eval_results(record: RunRecord) -> Iterator[EvalResult]:
    """Each dev set's score; the Hub merges results of the same type.

    A score of the user's own function isn't one of the data, so it is left out.
    """
    from huggingface_hub import EvalResult

    result = record.result
    if result.dev is None or record.has_own_metric:
        return
    similarity = record.encoder.similarity_fn_name
    held_out = record.sources.dev_data or record.sources.data
    scores = {name: (dev.metric, dev.dev) for name, dev in result.dev_sets.items()}
    if not scores:
        name = next(iter([*record.dev_sets, *held_out]))
        scores = {name: (str(result.dev_metric), result.dev)}
    for name, (metric, value) in scores.items():
        source = _base_name(held_out[name])
        other_type = "held-out" if len(scores) == 1 else f"held-out-{name}"
        chose = " that chose the weights" if result.dev_set in (None, name) else ""
        if value is not None:
            yield EvalResult(
                task_type="sentence-similarity",
                task_name="Sentence similarity",
                dataset_type=hub_id(source) or other_type,
                dataset_name=f"{source}, held-out rows{chose}",
                metric_type=_HUB_METRICS[metric].format(similarity),
                metric_name=metric,
                metric_value=round(value, 4),
            )


def _licence_section(license_id: str, backbone: Packaged | None) -> str:
    """The model's licence, and its backbone's."""
    known = f" The backbone's is `{backbone.license}`." if backbone else ""
    if license_id != "unknown":
        return f"`{license_id}`, as stated by the model's trainer.{known}"
    return (
        "Unknown. The weights derive from the backbone and the data named above: check their licences before"
        f" you share the model, and set `license:` in the header of this file.{known}"
    )


def _use_section(encoder: EncoderSettings) -> str:
    """How to load the model and encode texts, with a note on its prompts."""
    note = prompts_note(encoder.named_prompts)
    return (
        "```python\n"
        "from aoe_train import Encoder                            # aoe-toolkit\n"
        'vectors = Encoder.load("path/to/this/folder").encode(["a text", "another"])\n\n'
        "from sentence_transformers import SentenceTransformer    # the same vectors\n"
        'vectors = SentenceTransformer("path/to/this/folder").encode(["a text", "another"])\n'
        "```" + (f"\n\n{note}" if note else "")
    )


def _data_section(record: RunRecord, settings: TrainSettings) -> str:
    """The training and held-out rows."""
    rows = {
        name: _describe_rows(dataset, record.sources.data[name])
        for name, dataset in record.datasets.items()
    }
    notes = [*_data_notes(record)]
    if len(rows) == 1:
        return " ".join([*rows.values(), *notes])
    items = []
    for name, dataset in record.datasets.items():
        share = format_epoch_share(dataset.epoch)
        items.append(f"- **{name}**: {rows[name]} In an epoch: {share}.")
    order = (
        f"Several datasets; each batch has rows of one, in {settings.mix.order} order:"
    )
    paragraphs = [order, "\n".join(items), " ".join(notes)]
    return "\n\n".join(filter(None, paragraphs))


def _data_notes(record: RunRecord) -> Iterator[str]:
    """Notes on held-out rows, truncated texts and stored hashes."""
    num_dev_rows = sum(record.dev_sets.values())
    if record.result.dev_sets:
        sizes = [f"`{name}` {size:,}" for name, size in record.dev_sets.items()]
        deciding = "their mean score"
        if record.result.dev_set is not None:
            deciding = f"`{record.result.dev_set}`"
        yield f"Held-out rows: {', '.join(sizes)}; {deciding} chose the best weights."
    elif num_dev_rows and not record.has_own_metric:
        yield f"{num_dev_rows:,} held-out rows chose the best weights."
    if truncated := record.batches["truncated_texts"]:
        limit = record.encoder.max_length
        yield f"{truncated:,} texts longer than {limit} tokens were truncated."
    if record.training_texts:
        yield _HASHES


def _describe_rows(dataset: DatasetRecord, source: str) -> str:
    """Number and kind of rows, the meaning of their labels, and rows left out."""
    lines = [
        f"{dataset.rows:,} {_KINDS_OF_ROWS[dataset.kind]} from `{_base_name(source)}`."
    ]
    reading = dataset.reading
    if dataset.negatives:
        lines.append(f"Negatives: {negatives_in_words(dataset.negatives)}.")
    if labels := reading.get("labels"):
        lines.append(f"Labels: {_as_code(labels)}.")
    if left_out := reading.get("left_out"):
        counts = [
            f"{count:,} {_as_code(reason.replace('_', ' '))}"
            for reason, count in left_out.items()
        ]
        lines.append(f"Rows left out: {', '.join(counts)}.")
    if conflicts := reading.get("conflicts"):
        lines.append(f"{conflicts:,} pairs had different labels.")
    return " ".join(lines)


def _as_code(text: str) -> str:
    """Untrusted text as code, which Markdown doesn't interpret."""
    return f"`{one_line(text, 200).replace('`', chr(39))}`"


def _objective_section(record: RunRecord, settings: TrainSettings) -> str:
    """The objective, or the objectives of all datasets."""
    custom_losses = record.origin.get("objective") or [None] * len(record.datasets)
    if len(record.datasets) == 1:
        return _describe_objective(settings.objective, *custom_losses)
    sections = []
    for name, custom_loss in zip(record.datasets, custom_losses, strict=True):
        objective = _describe_objective(settings.of(name).objective, custom_loss)
        sections.append(f"### {name}\n\n{objective}")
    return "\n\n".join(sections)


def _describe_objective(objective: ObjectiveSettings, custom_loss: str | None) -> str:
    """The parts of an objective, or the name of a custom loss, and the sizes and layers."""
    lines = []
    if dims := objective.dims:
        weights = objective.dim_weights or [1] * len(dims)
        sizes = [
            str(dim) if weight == 1 else f"{dim} (weight {weight:g})"
            for dim, weight in zip(dims, weights, strict=True)
        ]
        lines.append(
            f"Vector sizes (Matryoshka): {', '.join(sizes)}. Vectors can be truncated to these sizes:"
            f" `encode(texts, dim={min(dims)})`, in sentence-transformers"
            f" `SentenceTransformer(folder, truncate_dim={min(dims)})`."
        )
    if layers := objective.layers:
        listed = "all" if layers == "all" else ", ".join(map(str, layers))
        lines.append(
            f"Earlier layers trained as outputs: {listed}. The model can be cut to these depths:"
            " `Encoder.load(folder, layers=…)`, `aoe export --layers …`."
        )
    if custom_loss:
        return "\n\n".join([f"A custom loss: {_as_code(custom_loss)}.", *lines])
    parts = objective.weights.active
    taus = objective.tau.model_dump()
    rows = [
        (part, f"{weight:g}", f"{taus[part]:g}" if part in taus else "–")
        for part, weight in parts.items()
    ]
    return "\n\n".join([table(("part", "weight", "tau"), rows), *lines])


def _describe_teachers(record: RunRecord, settings: TrainSettings) -> Iterator[str]:
    """The guide and teacher."""
    objective = settings.objective
    taught = settings.teacher
    for role, teacher in record.advisers.items():
        if role == "teacher_scores":
            yield f"Scores of a teacher: {_as_code(teacher['file'])}."
            continue
        model = _base_name(teacher["model"])
        revision = f" at {_as_code(teacher['revision'])}" if teacher["revision"] else ""
        hashed = "weights" if "weights" in teacher else "file"
        line = (
            f"{role.capitalize()}: {_as_code(model)}{revision}, {teacher['dim']} numbers, SHA-256 of its"
            f" {hashed} `{teacher[hashed][:16]}…`."
        )
        prompts = [
            f"{column} {_as_code(words)}"
            for column, words in teacher.get("prompts", {}).items()
            if words
        ]
        if prompts:
            line += f" Its prompts: {', '.join(prompts)}."
        if role == "guide":
            margin = f"{objective.guide_margin:g} ({objective.guide_margin_strategy})"
            minus = f" minus a margin of {margin}" if objective.guide_margin else ""
            line += (
                f" Candidates that it finds more similar to the anchor than the positive{minus} are not"
                " negatives."
            )
        else:
            line += " Its vectors were computed before training; the model does not need it."
        if role == "teacher" and taught.smoothing is not None:
            line += (
                f" Smoothing {taught.smoothing:g} over {taught.neighbours} mutual neighbours, weight of"
                f" TF-IDF {taught.lexical_weight:g}."
            )
        yield line


def _settings_section(record: RunRecord, settings: TrainSettings) -> str:
    """A table of the main settings."""
    optim = settings.optim
    precision = record.origin["precision"]
    rows = [
        ("backbone", f"`{_base_name(record.sources.backbone)}`"),
        ("pooling", record.encoder.pooling),
        ("max length", str(record.encoder.max_length)),
        ("epochs", f"{optim.epochs:g}"),
        ("batch size", f"{optim.batch_size} × {record.origin['processes']} processes"),
        ("learning rate", f"{optim.lr:g}, {optim.scheduler}, warm-up {optim.warmup:g}"),
        ("precision", "fp32" if precision == "no" else precision),
        ("seed", str(settings.seed)),
        ("LoRA", "yes" if settings.lora else "no"),
    ]
    note = "`run.json` has all settings and the hashes of all inputs."
    return f"{table(('setting', 'value'), rows)}\n\n{note}"


def _results_section(record: RunRecord) -> str:
    """The scores on held-out rows, and the gain on judged pairs."""
    on_dev = _dev_table(record)
    gain = record.result.gain
    if gain is None:
        return on_dev
    pairs = _base_name(str(record.sources.judged))
    kept = f"The weights are the {record.result.kept}'s."
    if not gain.is_judged:
        return f"{on_dev}\n\nThe judged pairs of `{pairs}` show no gain: {gain}. {kept}"
    low, high = gain.ahead.interval
    corrected = (
        "" if gain.reliability == 1 else ", including the uncertainty of the labels"
    )
    return (
        f"{on_dev}\n\nOn {gain.pairs:,} judged pairs of `{pairs}`:"
        f" {gain.metric} {gain.before:.4f} before training and {gain.after:.4f} after it, a gain of"
        f" {gain.ahead.difference:+.4f} (95 % interval {low:.4f} to {high:.4f}{corrected}). {kept}"
    )


def _dev_table(record: RunRecord) -> str:
    """The scores before training and at the last evaluations, as a table."""
    result = record.result
    if result.dev is None or result.dev_before is None:
        return "There was no held-out data."
    deciding = str(result.dev_metric)
    if not record.has_own_metric:
        deciding += f" on {result.dev_set or 'held-out rows'}"
    head = ["weights", deciding]
    before = ["before training", f"{result.dev_before:.4f}"]
    columns = ["eval_dev"]
    for name, dev in result.dev_sets.items():
        head.append(f"{name}: {dev.metric}")
        before.append(f"{dev.before:.4f}")
        columns.append(f"eval_dev.{name}")
    rows = [before]
    for entry in record.dev_history[-10:]:
        scores = [f"{entry[column]:.4f}" for column in columns]
        rows.append([f"step {entry['step']}", *scores])
    scores_table = table(head, rows)
    if result.kept == "backbone":
        return scores_table
    return f"{scores_table}\n\nThe weights are those of step {record.best_step}."


def _base_name(source: str) -> str:
    """The last part of a path, since the rest is private to this machine."""
    is_local = source.startswith(("/", "./", "../", "~")) or Path(source).exists()
    return Path(source).name if is_local else source


def card_head(
    name: str,
    *,
    tags: Iterable[str],
    license_id: str,
    language: Iterable[str],
    base_model: str | list[str] | None,
    datasets: Iterable[str],
    results: Iterable[EvalResult] = (),
    **license_terms: Any,
) -> str:
    """The YAML header of a card for model hubs; `license_terms` are those of a licence without an id."""
    from huggingface_hub import ModelCardData

    data = ModelCardData(
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        license=license_id,
        language=[*language] or None,
        base_model=base_model,
        datasets=[*datasets] or None,
        tags=[*tags],
        model_name=name,
        eval_results=[*results] or None,
        **license_terms,
    )
    return f"---\n{data.to_yaml()}\n---\n\n"


def hub_id(source: str) -> str | None:
    """The source, if it is a Hub id and not a local path."""
    return source if _HUB_ID.fullmatch(source) and not Path(source).exists() else None


def prompts_note(prompts: NamedPrompts) -> str:
    """A note on a model's prompts; empty without any."""
    if (prompt := prompts.around_all) is not None:
        return f"The tokenizer adds the prompt `{prompt}` to each text; don't add it yourself."
    if not any(prompts.prompts.values()):
        return ""
    rows = [
        (f"`{name}`", f"`{prompt}`" if prompt else "(none)")
        for name, prompt in prompts.prompts.items()
    ]
    default = f" The default is `{prompts.default}`." if prompts.default else ""
    return (
        "The model was trained with prompts: choose one with `encode(texts, prompt_name=...)`; `encode_query`"
        f" and `encode_document` use their own.{default}\n\n{table(('name', 'prompt'), rows)}"
        f"{_framework_note(prompts)}"
    )


def _framework_note(prompts: NamedPrompts) -> str:
    """How libraries that don't read prompts by name use them; empty if they can't."""
    if prompts.after_text is not None:
        return ""
    query = prompts.query or prompts.chosen()
    document = prompts.document or prompts.chosen()
    names = {words: name for name, words in prompts.known.items()}
    return _FRAMEWORKS.format(
        query=repr(names[query]),
        document=repr(names[document]),
        query_words=repr(query),
        document_words=repr(document),
    )
