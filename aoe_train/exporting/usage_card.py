"""Usage instructions in a model's card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train.training.model_card import card_head, prompts_note

if TYPE_CHECKING:
    from aoe_train.exporting.onnx import Loss
    from aoe_train.settings.train_settings import EncoderSettings, NamedPrompts

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

model = SentenceTransformer("{name}", backend="onnx"{file_argument})
```
{libraries}With onnxruntime:
```python
import onnxruntime
from transformers import AutoTokenizer

texts = ["A man is playing a flute."]
tokens = AutoTokenizer.from_pretrained("{name}")(texts, padding=True, truncation=True, return_tensors="np")
session = onnxruntime.InferenceSession("{name}/{file}")
inputs = {{key: tokens[key] for key in ("input_ids", "attention_mask")}}
(vectors,) = session.run(["sentence_embedding"], inputs)
```
Inputs are int64 `input_ids` and `attention_mask` (texts x tokens, padded on the right). Outputs are
`last_hidden_state`, a vector per token, and `sentence_embedding`, pooled by {pooling}{normalized}.
`tokenizer.json` does all preprocessing, including truncation to {max_length} tokens.
"""
_NO_PROMPTS = """transformers.js, fastembed and onnxruntime add no prompt: put it before the text yourself.
"""
# Libraries that pool the vectors of tokens themselves.
_POOLING_LIBRARIES = """With transformers.js:
```js
const embed = await pipeline("feature-extraction", "{name}"{argument});
const vectors = await embed(texts, {{pooling: "{pooling}", normalize: {normalize}}});
```
fastembed (`TextEmbedding.add_custom_model`, with `model_file="{file}"` and the same pooling) reads the same files.
"""
# Their names of poolings. Not `last`: they would take the last token of padded texts, which is padding.
_LIBRARY_POOLINGS = {"avg": "mean", "first-last-avg": "mean", "cls": "cls"}


def exported_card_head(
    name: str, dim: int, *, tags: Sequence[str], source: Path | None
) -> str:
    """The metadata and title of an exported model's card, with metadata of the `source` model's card."""
    about = {} if source is None else _metadata(source)
    metadata = card_head(
        name,
        tags=[*_TAGS, *tags],
        license_id=about.get("license") or "unknown",
        license_name=about.get("license_name"),
        license_link=about.get("license_link"),
        language=_strings(about.get("language")),
        base_model=about.get("base_model"),
        datasets=_strings(about.get("datasets")),
    )
    return f"{metadata}# {name}\nText embeddings of {dim} dimensions, exported by aoe-toolkit.\n"


def mix_note(share: float | None) -> str:
    """The card's note on weights that were averaged with the backbone's, if they were."""
    if share is None:
        return ""
    return f"Weights: {share:g} x trained + {1 - share:g} x backbone (WiSE-FT, arXiv 2109.01903).\n"


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
    file_argument = ""
    # Libraries look for the name of a float32 graph; only int8 has a loss.
    is_int8 = loss is not None
    if is_int8:
        file_argument = f', model_kwargs={{"file_name": "{file}"}}'
    # `dim` cuts vectors of length 1.
    has_length_1 = settings.normalize and settings.dim is None
    text = _GRAPH_USAGE.format(
        name=name,
        file=file,
        file_argument=file_argument,
        libraries=_pooling_libraries(name, settings, file, is_int8=is_int8),
        max_length=settings.max_length,
        pooling=settings.pooling,
        normalized=" and of length 1" if has_length_1 else "",
    )
    note = _prompts_section(settings.named_prompts)
    if note and not settings.named_prompts.around_all:
        note += _NO_PROMPTS
    loss_section = f"## Loss\n{loss}.\n" if loss else ""
    return f"{text}\n{note}{loss_section}"


def _pooling_libraries(
    name: str, settings: EncoderSettings, file: str, *, is_int8: bool
) -> str:
    """How to encode with libraries that pool themselves; empty if they can't do what the model does."""
    pooling = _LIBRARY_POOLINGS.get(settings.pooling)
    if pooling is None or settings.dense or settings.dim is not None:
        return ""
    int8 = f', {{model_file_name: "{Path(file).stem}", dtype: "fp32"}}'
    return _POOLING_LIBRARIES.format(
        name=name,
        file=file,
        argument=int8 if is_int8 else "",
        pooling=pooling,
        normalize="true" if settings.normalize else "false",
    )


def _metadata(card: Path) -> dict[str, Any]:
    """A card's metadata; empty if there is no card, or if its YAML is invalid."""
    from huggingface_hub import metadata_load

    if not card.is_file():
        return {}
    try:
        return metadata_load(card) or {}
    except Exception:  # noqa: BLE001 - of a YAML library that we don't import
        return {}


def _strings(value: object) -> list[str]:
    """A metadata value as a list; it may be one word or several."""
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value] if isinstance(value, list) else []


def _prompts_section(prompts: NamedPrompts) -> str:
    note = prompts_note(prompts)
    return f"{note}\n\n" if note else ""
