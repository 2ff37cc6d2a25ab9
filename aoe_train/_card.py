"""The model card: the README.md that model hubs read, and people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairkit.card import table

_TAGS = ("sentence-transformers", "feature-extraction", "sentence-similarity", "angle", "aoe")
_NUMBERS = {"binary": "pairs labelled 0 or 1", "graded": "graded pairs", "positive": "positive pairs"}
_NUMBERS |= {"triplet": "triplets", "single": "single texts"}


def model_card(name: str, record: Mapping[str, Any], dim: int) -> str:
    """The card of a trained model.

    Args:
        name: The model's name.
        record: The run's record, as in run.json.
        dim: Numbers in a vector.
    """
    head = ["---", "library_name: sentence-transformers", "pipeline_tag: sentence-similarity", "tags:"]
    head += [f"- {tag}" for tag in _TAGS]
    sections = [
        ("", f"Maps a text to {dim} numbers, so that texts of like meaning get vectors of like direction."),
        ("Use", _use(record)),
        ("Training data", _data(record)),
        ("Objective", _objective(record["origin"]["settings"]["objective"])),
        ("Settings", _settings(record)),
        ("Results", _results(record)),
        ("Licence", _LICENCE),
    ]
    body = [f"# {name}"] + [f"## {title}\n\n{text}" if title else text for title, text in sections]
    return "\n".join([*head, "---", ""]) + "\n" + "\n\n".join(body) + "\n"


_LICENCE = (
    "None is stated here. The weights derive from the backbone and the data named above: look up what their "
    "licences ask for before you pass the model on, then add a `license:` to the head of this file."
)


def _use(record: Mapping[str, Any]) -> str:
    prompt = record["encoder"]["prompt"]
    note = f"\n\nThe tokenizer puts the prompt `{prompt}` around each text; don't add it." if prompt else ""
    return (
        "```python\n"
        "from aoe_train import Encoder                            # aoe-toolkit\n"
        'vectors = Encoder.load("path/to/this/folder").encode(["a text", "another"])\n\n'
        "from sentence_transformers import SentenceTransformer    # the same vectors\n"
        'vectors = SentenceTransformer("path/to/this/folder").encode(["a text", "another"])\n'
        "```" + note
    )


def _data(record: Mapping[str, Any]) -> str:
    rows, sources = record["rows"], record["sources"]
    lines = [f"{rows['train']:,} {_NUMBERS[rows['kind']]} from `{_base(sources['data'])}`."]
    if "dev" in rows:
        lines.append(f"{rows['dev']:,} held-out rows chose the best weights.")
    truncated = record["batches"]["truncated_texts"]
    if truncated:
        lines.append(
            f"{truncated:,} texts were longer than {record['encoder']['max_length']} tokens and were cut."
        )
    if record["training_texts"]:
        lines.append(_DIGESTS)
    return " ".join(lines)


_DIGESTS = (
    "`training_texts.npy` holds a 64-bit digest of each text, by which `aoe evaluate` tells what a test set "
    "shares with them. No text can be read from it, but whoever has a text can ask whether it was among "
    "them: delete the file where that must not be known."
)


def _objective(objective: Mapping[str, Any]) -> str:
    parts = {part: weight for part, weight in objective["weights"].items() if weight}
    rows = [(part, f"{weight:g}", _tau(objective, part)) for part, weight in parts.items()]
    form = f"\n\nForm of the angle: `{objective['angle_form']}`." if "angle" in parts else ""
    return table(("part", "weight", "tau"), rows) + form


def _tau(objective: Mapping[str, Any], part: str) -> str:
    tau = objective["tau"].get(part)
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
    return table(("setting", "value"), rows) + "\n\nAll of them, and hashes of what went in: `run.json`."


def _results(record: Mapping[str, Any]) -> str:
    result = record["result"]
    if result["dev"] is None:
        return "No held-out data was given."
    rows = [("before training", f"{result['dev_before']:.4f}")]
    rows += [(f"step {entry['step']}", f"{entry['eval_dev']:.4f}") for entry in record["dev_history"][-10:]]
    best = f"The weights are those of step {record['best_step']}."
    return table(("weights", f"{result['dev_metric']} on held-out rows"), rows) + f"\n\n{best}"


def _base(source: str) -> str:
    """A path's last part: the rest is this machine's business."""
    return source.rstrip("/").rpartition("/")[2] if source.startswith(("/", "./", "../", "~")) else source
