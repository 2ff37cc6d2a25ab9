"""Parts of model cards: metadata, prompts, and how to use an exported model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.dataset.making.dataset_folder import table

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

    from aoe_train.settings.prompt_settings import NamedPrompts
    from aoe_train.settings.train_settings import EncoderSettings

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
    if note := prompts_note(prompts):
        lines.append(f"{note}\n")
    lines.append(_TOOLKIT_USAGE.format(name=name))
    return "\n".join(lines)


def graph_usage(
    name: str,
    settings: EncoderSettings,
    file: str,
    loss: str | None,
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
    note = prompts_note(settings.named_prompts)
    if note:
        note += "\n\n"
        if not settings.named_prompts.around_all:
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
