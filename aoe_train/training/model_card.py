"""The model card: README.md of a trained model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train.data.examples import negatives_in_words
from aoe_train.data.mixture import format_epoch_share
from aoe_train.model.backbones.packaged import PACKAGED, Packaged
from aoe_train.settings.prompt_settings import NamedPrompts
from aoe_train.settings.train_settings import CardSettings
from pairkit.base.printable import one_line
from pairkit.dataset.making.dataset_card import table

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

_TAGS = ("sentence-transformers", "feature-extraction", "sentence-similarity", "angle", "aoe")
# Names of dev metrics on the Hub, as in sentence-transformers' evaluators.
_HUB_METRICS = {"spearman": "spearman_cosine", "triplet_accuracy": "cosine_accuracy", "mrr": "cosine_mrr"}
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_NUMBERS = {"binary": "pairs labelled 0 or 1", "graded": "graded pairs", "positive": "positive pairs"}
_NUMBERS |= {"triplet": "triplets", "single": "single texts"}


def model_card(name: str, record: Mapping[str, Any], dim: int, *, about: CardSettings | None = None) -> str:
    """The card of a trained model."""
    about = about or CardSettings()
    backbone = record["sources"]["backbone"]
    from_hub = [hub_id(source.partition(":")[0]) for source in _named(record["sources"]["data"]).values()]
    packaged = PACKAGED.get(backbone)
    base = about.base_model or (packaged.hub_id if packaged else hub_id(backbone))
    head = card_head(
        name,
        library="sentence-transformers",
        tags=_TAGS,
        license_id=about.license,
        language=about.language or record["languages"],
        base_model=base,
        datasets=list(dict.fromkeys(filter(None, from_hub))),
        results=_measured(record),
    )
    sections = [
        *([("", _BACKBONE)] if _kept_backbone(record) else []),
        ("", f"Maps a text to a vector of {dim} numbers; texts with similar meaning have similar vectors."),
        ("Use", _use(record)),
        ("Training data", _data(record)),
        ("Objective", "\n\n".join([_objectives(record), *_teachers(record)])),
        ("Settings", _settings(record)),
        ("Results", _results(record)),
        ("Licence", _licence(about.license, packaged)),
    ]
    body = [f"# {name}"] + [f"## {title}\n\n{text}" if title else text for title, text in sections]
    return head + "\n\n".join(body) + "\n"


_BACKBONE = (
    "**These are the backbone's own weights.** The training below was not shown to improve them on judged"
    " pairs, so the trained weights were discarded."
)


def _kept_backbone(record: Mapping[str, Any]) -> bool:
    return bool(record["result"].get("judged", {}).get("kept") == "backbone")


def card_head(
    name: str,
    *,
    library: str,
    tags: Iterable[str],
    license_id: str = "unknown",
    language: Iterable[str] = (),
    base_model: str | None = None,
    datasets: Iterable[str] = (),
    results: Iterable[EvalResult] = (),
) -> str:
    """The YAML header of a card for model hubs."""
    from huggingface_hub import ModelCardData

    data = ModelCardData(
        library_name=library,
        pipeline_tag="sentence-similarity",
        license=license_id,
        language=[*language] or None,
        base_model=base_model,
        datasets=[*datasets] or None,
        tags=[*tags],
        model_name=name,
        eval_results=[*results] or None,
    )
    return f"---\n{data.to_yaml()}\n---\n\n"


def hub_id(source: str) -> str | None:
    """The source, if it is a Hub id and not a local path."""
    return source if _HUB_ID.fullmatch(source) and not Path(source).exists() else None


def _measured(record: Mapping[str, Any]) -> list[EvalResult]:
    from huggingface_hub import EvalResult

    return [
        EvalResult(
            task_type="sentence-similarity",
            task_name="Sentence similarity",
            dataset_type=hub_id(held_out) or kind,  # the Hub merges results of the same type
            dataset_name=f"{held_out}, {what}",
            metric_type=_HUB_METRICS.get(metric, metric),
            metric_name=metric,
            metric_value=round(value, 4),
        )
        for held_out, kind, what, metric, value in _dev_figures(record)
    ]


def _dev_figures(record: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str, float]]:
    """Each dev set's source, type, purpose, metric and score."""
    result, sources = record["result"], record["sources"]
    if result["dev"] is None:
        return
    held_out = _named(sources.get("dev_data") or sources["data"])
    if "dev_sets" not in result:
        # A single dev set of several datasets is the validation split of one of them.
        names = [name for name in record.get("dev_sets", {}) if name in held_out] or [*held_out]
        chose = "held-out rows that chose the weights"
        yield _base(held_out[names[0]]), "held-out", chose, str(result["dev_metric"]), float(result["dev"])
        return
    for name, dev in result["dev_sets"].items():
        what = "held-out rows" + (" that chose the weights" if result["dev_set"] in (None, name) else "")
        if dev["dev"] is not None:
            yield _base(held_out[name]), f"held-out-{name}", what, str(dev["metric"]), float(dev["dev"])


def _named(sources: str | Mapping[str, str]) -> Mapping[str, str]:
    """Sources by name; a single source has no name in run.json."""
    return {"": sources} if isinstance(sources, str) else sources


def _licence(given: str, backbone: Packaged | None) -> str:
    known = f" The backbone's is `{backbone.license}`." if backbone else ""
    if given != "unknown":
        return f"`{given}`, as stated by the model's trainer.{known}"
    return (
        "Unknown. The weights derive from the backbone and the data named above: check their licences before"
        f" you share the model, and set `license:` in the header of this file.{known}"
    )


def _use(record: Mapping[str, Any]) -> str:
    encoder = record["encoder"]
    note = prompts_note(NamedPrompts(encoder["prompts"], encoder["default_prompt_name"]))
    return (
        "```python\n"
        "from aoe_train import Encoder                            # aoe-toolkit\n"
        'vectors = Encoder.load("path/to/this/folder").encode(["a text", "another"])\n\n'
        "from sentence_transformers import SentenceTransformer    # the same vectors\n"
        'vectors = SentenceTransformer("path/to/this/folder").encode(["a text", "another"])\n'
        "```" + (f"\n\n{note}" if note else "")
    )


def prompts_note(prompts: NamedPrompts) -> str:
    """A note on a model's prompts; empty without any."""
    if (words := prompts.around_all) is not None:
        return f"The tokenizer adds the prompt `{words}` to each text; don't add it yourself."
    if not any(prompts.prompts.values()):
        return ""
    rows = [(f"`{name}`", f"`{words}`" if words else "(none)") for name, words in prompts.prompts.items()]
    default = f" The default is `{prompts.default}`." if prompts.default else ""
    return (
        "The model was trained with prompts: choose one with `encode(texts, prompt_name=...)`; `encode_query`"
        f" and `encode_document` use their own.{default}\n\n" + table(("name", "prompt"), rows)
    )


def _data(record: Mapping[str, Any]) -> str:
    rows, sources = record["rows"], record["sources"]
    if "datasets" in record:
        lines = [_datasets(record)]
    else:
        lines = [_of_rows(rows | {"rows": rows["train"]}, sources["data"])]
    if "dev_sets" in record["result"]:
        sizes = ", ".join(f"`{name}` {size:,}" for name, size in record["dev_sets"].items())
        chosen = record["result"]["dev_set"]
        by = "their mean score" if chosen is None else f"`{chosen}`"
        lines.append(f"Held-out rows: {sizes}; {by} chose the best weights.")
    elif "dev" in rows:
        lines.append(f"{rows['dev']:,} held-out rows chose the best weights.")
    truncated = record["batches"]["truncated_texts"]
    if truncated:
        lines.append(
            f"{truncated:,} texts longer than {record['encoder']['max_length']} tokens were truncated."
        )
    if record["training_texts"]:
        lines.append(_HASHES)
    return " ".join(lines)


def _of_rows(rows: Mapping[str, Any], source: str) -> str:
    lines = [f"{rows['rows']:,} {_NUMBERS[rows['kind']]} from `{_base(source)}`."]
    if "negatives" in rows:
        lines.append(f"Negatives: {negatives_in_words(rows['negatives'])}.")
    return " ".join(lines + _reading(rows.get("reading") or {}))


def _datasets(record: Mapping[str, Any]) -> str:
    """A list of the datasets, followed by an empty line."""
    mix = record["origin"]["settings"]["mix"]
    items = [
        f"- **{name}**: {_of_rows(own, record['sources']['data'][name])} In an epoch:"
        f" {format_epoch_share(own['epoch'])}."
        for name, own in record["datasets"].items()
    ]
    head = f"Several datasets; each batch has rows of one, in {mix['order']} order:"
    return "\n".join([head, "", *items, "", ""])


def _reading(reading: Mapping[str, Any]) -> list[str]:
    """Meaning of labels and rows left out; records of earlier versions lack them."""
    lines = [f"Labels: {_code(reading['labels'])}."] if reading.get("labels") else []
    if left_out := reading.get("left_out"):
        reasons = ", ".join(f"{count:,} {_code(why.replace('_', ' '))}" for why, count in left_out.items())
        lines.append(f"Rows left out: {reasons}.")
    if reading.get("conflicts"):
        lines.append(f"{reading['conflicts']:,} pairs had different labels.")
    return lines


def _code(words: str) -> str:
    """Untrusted words as code, which Markdown doesn't interpret."""
    return f"`{one_line(words, 200).replace('`', chr(39))}`"


_HASHES = (
    "`training_texts.npy` has a 64-bit hash of each text, with which `aoe evaluate` reports overlaps with"
    " test sets. Texts can't be read from it, but anyone who has a text can check whether it is among them."
    " Delete the file if that must stay private."
)


def _objectives(record: Mapping[str, Any]) -> str:
    """The objective, or the objectives of all datasets."""
    settings, custom = record["origin"]["settings"], record["origin"].get("objective")
    if "datasets" not in record:
        return _objective(settings["objective"], custom)
    return "\n\n".join(
        f"### {name}\n\n{_objective(settings['datasets'][name]['objective'], (custom or {}).get(name))}"
        for name in record["datasets"]
    )


def _objective(objective: Mapping[str, Any], custom: str | None) -> str:
    sizes = [*_sizes(objective), *_layers(objective)]
    if custom:
        return "\n\n".join([f"A custom loss: {_code(custom)}.", *sizes])
    parts = {part: weight for part, weight in objective["weights"].items() if weight}
    rows = [(part, f"{weight:g}", _tau(objective, part)) for part, weight in parts.items()]
    forms = [
        f"Form of {part}: `{objective[form]}`."
        for part, form in (("embed_distill", "embed_form"), ("score_distill", "score_form"))
        if part in parts
    ]
    return "\n\n".join([table(("part", "weight", "tau"), rows), *forms, *sizes])


def _teachers(record: Mapping[str, Any]) -> list[str]:
    """The guide and teacher."""
    objective, backbone = record["origin"]["settings"]["objective"], record["sources"]["backbone"]
    lines = []
    for role, teacher in (record.get("advisers") or {}).items():
        if role == "teacher_scores":
            lines.append(f"Scores of a teacher: {_code(teacher['file'])}.")
            continue
        revision = f" at {_code(teacher['revision'])}" if teacher["revision"] else ""
        hashed = "weights" if "weights" in teacher else "file"
        line = (
            f"{role.capitalize()}: {_code(_base(teacher['model'] or backbone))}{revision},"
            f" {teacher['dim']} numbers, SHA-256 of its {hashed} `{str(teacher[hashed])[:16]}…`."
        )
        prompts = {column: words for column, words in teacher.get("prompts", {}).items() if words}
        if prompts:
            listed = ", ".join(f"{column} {_code(words)}" for column, words in prompts.items())
            line += f" Its prompts: {listed}."
        if role == "guide":
            line += _guide_effect(objective)
        else:
            line += " Its vectors were computed before training; the model does not need it."
        if (
            role == "teacher"
            and (given := record["origin"]["settings"]["teacher"]).get("smoothing") is not None
        ):
            line += (
                f" Smoothing {given['smoothing']:g} over {given['neighbours']} mutual neighbours, weight of"
                f" TF-IDF {given['lexical_weight']:g}."
            )
        lines.append(line)
    return lines


def _guide_effect(objective: Mapping[str, Any]) -> str:
    margin, strategy = objective["guide_margin"], objective["guide_margin_strategy"]
    minus = f" minus a margin of {margin:g} ({strategy})" if margin else ""
    return f" Candidates that it finds more similar to the anchor than the positive{minus} are not negatives."


def _sizes(objective: Mapping[str, Any]) -> list[str]:
    """Vector sizes for truncation; records of earlier versions lack them."""
    dims = objective.get("dims") or ()
    if not dims:
        return []
    weights = objective["dim_weights"] or [1] * len(dims)
    sizes = ", ".join(
        str(dim) if weight == 1 else f"{dim} (weight {weight:g})"
        for dim, weight in zip(dims, weights, strict=True)
    )
    smallest = min(dims)
    return [
        f"Vector sizes (Matryoshka): {sizes}. Vectors can be truncated to these sizes:"
        f" `encode(texts, dim={smallest})`, in sentence-transformers"
        f" `SentenceTransformer(folder, truncate_dim={smallest})`."
    ]


def _layers(objective: Mapping[str, Any]) -> list[str]:
    """Numbers of layers that the model can be cut to; records of earlier versions lack them."""
    layers = objective.get("layers") or ()
    if not layers:
        return []
    listed = "all" if layers == "all" else ", ".join(map(str, layers))
    return [
        f"Earlier layers trained as outputs: {listed}. The model can be cut to these depths:"
        " `Encoder.load(folder, layers=…)`, `aoe export --layers …`."
    ]


def _tau(objective: Mapping[str, Any], part: str) -> str:
    ranked = part != "score_distill" or objective["score_form"] != "mse"
    tau = objective["tau"].get(part) if ranked else None
    return "–" if tau is None else f"{tau:g}"


def _settings(record: Mapping[str, Any]) -> str:
    optim, encoder = record["origin"]["settings"]["optim"], record["encoder"]
    rows = [
        ("backbone", f"`{_base(record['sources']['backbone'])}`"),
        ("pooling", encoder["pooling"]),
        ("max length", str(encoder["max_length"])),
        ("epochs", f"{optim['epochs']:g}"),
        ("batch size", f"{optim['batch_size']} × {record['origin']['processes']} processes"),
        ("learning rate", f"{optim['lr']:g}, {optim['scheduler']}, warm-up {optim['warmup']:g}"),
        ("precision", {"no": "fp32"}.get(record["origin"]["precision"], record["origin"]["precision"])),
        ("seed", str(record["origin"]["settings"]["seed"])),
        ("LoRA", "yes" if record["origin"]["settings"]["lora"] else "no"),
    ]
    return table(("setting", "value"), rows) + "\n\n`run.json` has all settings and the hashes of all inputs."


def _results(record: Mapping[str, Any]) -> str:
    judged = record["result"].get("judged")
    return "\n\n".join([_dev_results(record), *([] if judged is None else [_judged(record, judged)])])


def _judged(record: Mapping[str, Any], judged: Mapping[str, Any]) -> str:
    low, high = judged["ci95"]
    corrected = "" if judged["reliability"] == 1 else ", including the uncertainty of the labels"
    kept = "the model's" if judged["kept"] == "model" else "the backbone's"
    return (
        f"On {judged['pairs']:,} judged pairs of `{_base(record['sources']['judged'])}`: {judged['metric']}"
        f" {judged['before']:.4f} before training and {judged['after']:.4f} after it, a gain of"
        f" {judged['difference']:+.4f} (95 % interval {low:.4f} to {high:.4f}{corrected}). The weights are"
        f" {kept}."
    )


def _dev_results(record: Mapping[str, Any]) -> str:
    result = record["result"]
    if result["dev"] is None:
        return "There was no held-out data."
    sets = result.get("dev_sets", {})
    before = [dev["before"] for dev in sets.values()]
    rows = [_figures("before training", [result["dev_before"], *before])]
    rows += [
        _figures(f"step {entry['step']}", [entry["eval_dev"], *(entry[f"eval_dev.{name}"] for name in sets)])
        for entry in record["dev_history"][-10:]
    ]
    rows_name = result.get("dev_set") or "held-out rows"
    head = [
        "weights",
        f"{result['dev_metric']} on {rows_name}",
        *(f"{name}: {dev['metric']}" for name, dev in sets.items()),
    ]
    if _kept_backbone(record):
        return table(head, rows)
    best = f"The weights are those of step {record['best_step']}."
    return table(head, rows) + f"\n\n{best}"


def _figures(weights: str, figures: Iterable[float]) -> list[str]:
    return [weights, *(f"{figure:.4f}" for figure in figures)]


def _base(source: str) -> str:
    """The last part of a path, since the rest is private to this machine."""
    return source.rstrip("/").rpartition("/")[2] if source.startswith(("/", "./", "../", "~")) else source
