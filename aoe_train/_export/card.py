"""What a model's card says of how to use the model elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train._card import card_head, prompts_told

if TYPE_CHECKING:
    from aoe_train._prompts import NamedPrompts
    from aoe_train._settings import EncoderSettings

_TAGS = ("feature-extraction", "sentence-similarity", "aoe-toolkit")
_THEIRS = """
## Use
```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{name}"{flag})
vectors = model.encode(["A man is playing a flute.", "Someone plays an instrument."])
```
"""
_OURS = """With aoe-toolkit: `from aoe_train import Encoder; Encoder.load("{name}").encode([...])`.
"""
_GRAPH = """
## Use
```python
from sentence_transformers import SentenceTransformer    # with optimum-onnx

model = SentenceTransformer("{name}", backend="onnx")
```
transformers.js (`pipeline("feature-extraction", "{name}")`) and fastembed (`TextEmbedding.add_custom_model`,
with `model_file="onnx/model.onnx"`) read the same files. So does onnxruntime alone:
```python
import onnxruntime
from transformers import AutoTokenizer

texts = ["A man is playing a flute."]
tokens = AutoTokenizer.from_pretrained("{name}")(texts, padding=True, truncation=True, return_tensors="np")
session = onnxruntime.InferenceSession("{name}/onnx/model.onnx")
inputs = {{key: tokens[key] for key in ("input_ids", "attention_mask")}}
(vectors,) = session.run(["sentence_embedding"], inputs)
```
The graph takes int64 `input_ids` and `attention_mask` (texts x tokens, padded on the right). It gives
`last_hidden_state`, a vector a token, and `sentence_embedding`, pooled by {pooling}{normalized}.
`tokenizer.json` does all that comes before, truncation to {max_length} tokens included.
"""


def head(name: str, dim: int, *, library: str, about: Mapping[str, Any]) -> str:
    """The beginning of a card, for a model that has none yet.

    Args:
        name: The model's name.
        dim: Numbers in a vector.
        library: What loads it.
        about: What the source's own card says in its head, if it has one.
    """
    tags = [*_TAGS, "onnx", "transformers.js"] if library == "onnx" else _TAGS
    base = about.get("base_model")
    yaml = card_head(
        name,
        library="sentence-transformers",
        tags=tags,
        license_id=str(about.get("license") or "unknown"),
        language=_words(about.get("language")),
        base_model=base if isinstance(base, str) else None,
        datasets=_words(about.get("datasets")),
    )
    return f"{yaml}# {name}\nText embeddings of {dim} dimensions, exported by aoe-toolkit.\n"


def _words(value: object) -> list[str]:
    """One word or several, as a card's head may have them."""
    return (
        [value] if isinstance(value, str) else [str(one) for one in value] if isinstance(value, list) else []
    )


def card_data(card: Path) -> dict[str, Any]:
    """What a card's head says; nothing where there is none that can be read."""
    from huggingface_hub import ModelCard

    try:
        return dict(ModelCard.load(card, ignore_metadata_errors=True).data.to_dict())
    except (OSError, ValueError, TypeError):  # YAML of anybody's making
        return {}


def usage(name: str, *, prompts: NamedPrompts, needs_toolkit: str | None) -> str:
    """How to encode with a model folder.

    Args:
        name: The folder's or repository's name.
        prompts: The prompts that it knows.
        needs_toolkit: Why sentence-transformers needs this package for it, if it does.
    """
    flag = ", trust_remote_code=True" if needs_toolkit else ""
    lines = [_THEIRS.format(name=name, flag=flag)]
    if needs_toolkit:
        lines.append(
            f"Install aoe-toolkit too (`pip install aoe-toolkit`): {needs_toolkit}. sentence-transformers "
            "asks for `trust_remote_code=True` before it imports another package; this folder has no code.\n"
        )
    lines.append(_prompts(prompts) + _OURS.format(name=name))
    return "\n".join(lines)


def graph_usage(name: str, settings: EncoderSettings) -> str:
    """How to encode with an ONNX graph."""
    text = _GRAPH.format(
        name=name,
        max_length=settings.max_length,
        pooling=settings.pooling,
        normalized=" and of length 1" if settings.normalize else "",
    )
    prompts = settings.named_prompts
    alone = "" if prompts.around_all else "Whoever runs the graph alone puts it before the text.\n"
    told = _prompts(prompts)
    return f"{text}\n{told}{alone if told else ''}"


def _prompts(prompts: NamedPrompts) -> str:
    told = prompts_told(prompts)
    return f"{told}\n\n" if told else ""
