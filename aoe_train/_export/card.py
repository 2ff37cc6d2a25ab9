"""What a model's card says of how to use the model elsewhere."""

from __future__ import annotations

_HEAD = """---
library_name: {library}
pipeline_tag: sentence-similarity
tags: [feature-extraction, sentence-similarity, aoe-toolkit]
---
# {name}
Text embeddings of {dim} dimensions, exported by aoe-toolkit.
"""
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
`model.onnx` takes int64 `input_ids` and `attention_mask` (texts x tokens, padded on the right) and gives
`sentence_embedding`, pooled{normalized}. `tokenizer.json` does all that comes before, truncation to
{max_length} tokens included.
```python
import onnxruntime
from transformers import AutoTokenizer

texts = ["A man is playing a flute."]
tokens = AutoTokenizer.from_pretrained("{name}")(texts, padding=True, truncation=True, return_tensors="np")
session = onnxruntime.InferenceSession("{name}/model.onnx")
inputs = {{key: tokens[key] for key in ("input_ids", "attention_mask")}}
(vectors,) = session.run(None, inputs)
```
"""


def head(name: str, dim: int, library: str) -> str:
    """The beginning of a card, for a model that has none yet."""
    return _HEAD.format(name=name, dim=dim, library=library)


def usage(name: str, *, prompt: str | None, needs_toolkit: str | None) -> str:
    """How to encode with a model folder.

    Args:
        name: The folder's or repository's name.
        prompt: The prompt that its tokenizer adds, if any.
        needs_toolkit: Why sentence-transformers needs this package for it, if it does.
    """
    flag = ", trust_remote_code=True" if needs_toolkit else ""
    lines = [_THEIRS.format(name=name, flag=flag)]
    if needs_toolkit:
        lines.append(
            f"Install aoe-toolkit too (`pip install aoe-toolkit`): {needs_toolkit}. sentence-transformers "
            "asks for `trust_remote_code=True` before it imports another package; this folder has no code.\n"
        )
    lines.append(_prompt(prompt) + _OURS.format(name=name))
    return "\n".join(lines)


def graph_usage(name: str, *, prompt: str | None, normalize: bool, max_length: int | None) -> str:
    """How to encode with an ONNX graph."""
    text = _GRAPH.format(name=name, max_length=max_length, normalized=" and of length 1" if normalize else "")
    return text + "\n" + _prompt(prompt)


def _prompt(prompt: str | None) -> str:
    return (
        ""
        if prompt is None
        else f"The tokenizer puts the prompt `{prompt}` around each text: pass texts as they are.\n"
    )
