"""Usage instructions in a model's card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train.training.model_card import card_head, prompts_note

if TYPE_CHECKING:
    from aoe_train.exporting.onnx import Loss
    from aoe_train.settings.prompt_settings import NamedPrompts
    from aoe_train.settings.train_settings import EncoderSettings

_TAGS = ("feature-extraction", "sentence-similarity", "aoe-toolkit")
SENTENCE_TRANSFORMERS_USAGE = """
## Use
```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{name}"{flag})
vectors = model.encode(["A man is playing a flute.", "Someone plays an instrument."])
```
"""
_TOOLKIT_USAGE = """With aoe-toolkit: `from aoe_train import Encoder; Encoder.load("{name}").encode([...])`.
"""
_GRAPH_USAGE = """
## Use
```python
# In an environment of its own: pip install 'optimum-onnx[onnxruntime]' sentence-transformers
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{name}", backend="onnx"{file_name})
```
{other_libraries}
```python
{onnxruntime}
```
Inputs are int64 `input_ids` and `attention_mask` (texts x tokens, padded on the right). Outputs are
`last_hidden_state`, a vector per token, and `sentence_embedding`, pooled by {pooling}{normalized}.
`tokenizer.json` does all preprocessing, including truncation to {max_length} tokens.
"""
_JS_USAGE = """With transformers.js:
```js
const embed = await pipeline("feature-extraction", "{name}"{js});
const vectors = await embed(texts, {{pooling: "{pooling}", normalize: {normalize}}});
```
"""
_JS_POOLINGS = {
    "avg": "mean",
    "first-last-avg": "mean",
    "cls": "cls",
    "last": "last_token",
}
_FASTEMBED_NOTE = """fastembed (`TextEmbedding.add_custom_model`, with `model_file="{file}"`) reads the same files.
With onnxruntime:"""
_ONNXRUNTIME = """import onnxruntime
from transformers import AutoTokenizer

texts = ["A man is playing a flute."]
tokens = AutoTokenizer.from_pretrained("{name}")(texts, padding=True, truncation=True, return_tensors="np")
session = onnxruntime.InferenceSession("{name}/{file}")
inputs = {{key: tokens[key] for key in ("input_ids", "attention_mask")}}
(vectors,) = session.run(["sentence_embedding"], inputs)"""


def exported_card_head(
    name: str,
    dim: int,
    *,
    tags: Sequence[str] = (),
    about: Mapping[str, Any],
) -> str:
    """The metadata and title of an exported model's card; `about` is the source's metadata."""
    base = about.get("base_model")
    yaml = card_head(
        name,
        tags=[*_TAGS, *tags],
        license_id=str(about.get("license") or "unknown"),
        language=_strings(about.get("language")),
        base_model=base if isinstance(base, str) else None,
        datasets=_strings(about.get("datasets")),
    )
    return f"{yaml}# {name}\nText embeddings of {dim} dimensions, exported by aoe-toolkit.\n"


def mix_note(share: float | None) -> str:
    """The card's note on weights that were averaged with the backbone's, if they were."""
    if share is None:
        return ""
    return f"Weights: {share:g} x trained + {1 - share:g} x backbone (WiSE-FT, arXiv 2109.01903).\n"


def _strings(value: object) -> list[str]:
    """A metadata value as a list; it may be one word or several."""
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value] if isinstance(value, list) else []


def card_data(card: Path) -> dict[str, Any]:
    """A card's metadata; empty if it isn't readable."""
    from huggingface_hub import ModelCard

    try:
        return dict(ModelCard.load(card, ignore_metadata_errors=True).data.to_dict())
    except (OSError, ValueError, TypeError):  # the YAML may be invalid
        return {}


def usage(name: str, *, prompts: NamedPrompts, needs_toolkit: str | None) -> str:
    """How to encode with a model folder."""
    flag = ", trust_remote_code=True" if needs_toolkit else ""
    lines = [SENTENCE_TRANSFORMERS_USAGE.format(name=name, flag=flag)]
    if needs_toolkit:
        lines.append(
            f"This needs aoe-toolkit (`pip install aoe-toolkit`): {needs_toolkit}. sentence-transformers "
            "requires `trust_remote_code=True` to import another package; this folder contains no code.\n"
        )
    lines.append(_prompts_section(prompts) + _TOOLKIT_USAGE.format(name=name))
    return "\n".join(lines)


def graph_usage(
    name: str,
    settings: EncoderSettings,
    file: str,
    loss: Loss | None,
) -> str:
    """How to encode with a graph, and the loss by int8."""
    names = {"name": name, "file": file}
    file_name = ""
    js = ""
    if loss is not None:  # int8: the file hasn't the name that these libraries look for
        file_name = f', model_kwargs={{"file_name": "{file}"}}'
        js = f', {{model_file_name: "{Path(file).stem}", dtype: "fp32"}}'
    text = _GRAPH_USAGE.format(
        name=name,
        file_name=file_name,
        other_libraries=_js_usage(name, js, settings) + _FASTEMBED_NOTE.format(**names),
        onnxruntime=_ONNXRUNTIME.format(**names),
        max_length=settings.max_length,
        pooling=settings.pooling,
        normalized=" and of length 1" if settings.normalize else "",
    )
    note = _prompts_section(settings.named_prompts)
    if note and not settings.named_prompts.around_all:
        note += "With onnxruntime, add the prompt before the text yourself.\n"
    loss_section = f"## Loss\n{loss}.\n" if loss else ""
    return f"{text}\n{note}{loss_section}"


def _js_usage(name: str, js: str, settings: EncoderSettings) -> str:
    """The lines for transformers.js, which pools itself, unless it can't pool like this model."""
    pooling = _JS_POOLINGS.get(settings.pooling)
    if pooling is None or settings.dense or settings.dim is not None:
        return ""
    normalize = "true" if settings.normalize else "false"
    return _JS_USAGE.format(name=name, js=js, pooling=pooling, normalize=normalize)


def _prompts_section(prompts: NamedPrompts) -> str:
    note = prompts_note(prompts)
    return f"{note}\n\n" if note else ""
