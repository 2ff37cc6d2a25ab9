"""The parts that the cards of trained and of exported models share: metadata, and a note on prompts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pairkit.dataset.making.dataset_folder import table

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

    from aoe_train.settings.prompt_settings import NamedPrompts

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


def card_head(
    name: str,
    *,
    tags: Iterable[str],
    license_id: str,
    language: Iterable[str],
    base_model: str | list[str] | None,
    datasets: Iterable[str],
    results: Iterable[EvalResult] = (),
) -> str:
    """The YAML header of a card for model hubs."""
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
