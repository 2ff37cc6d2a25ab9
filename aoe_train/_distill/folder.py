"""A static model as a folder, with its card and its record."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from aoe_train._distill.static import Distilled, Static
from aoe_train._evaluate.overlap import write_digests
from aoe_train._export.card import card_data, head
from aoe_train._interchange import write_static
from pairkit import __version__
from pairkit.files import whole_folder, write_json, write_text

if TYPE_CHECKING:
    from collections.abc import Iterable

_CARD = """
A static model: each token has a vector, and a text's vector is the mean of its tokens', scaled to length 1.
It was distilled from {model} on {texts:,} texts without labels, with a vector for each of {tokens:,} tokens,
{seen:,} of which stand in these texts. On {held_out:,} texts that it was not fitted on, the mean cosine of
its vectors and the model's {about}is {agreement:.3f}.

## Use
```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{name}", device="cpu")
vectors = model.encode(["A man is playing a flute.", "Someone plays an instrument."])
```
"""


def write(
    static: Static, done: Distilled, *, model: str, source: Path, wide: int, texts: Iterable[str]
) -> None:
    """Write the folder, whole or not at all.

    Args:
        static: The model.
        done: What it was made from, and where it goes.
        model: The name of what it was distilled from.
        source: Where that lies; what its card says of language and licence is taken along.
        wide: Numbers of that model's vectors.
        texts: What it learnt from, so that evaluation can say what it has seen.
    """
    name = done.out.name
    card = source / "README.md"
    about = card_data(card) if card.is_file() else {}
    words = _CARD.format(
        **asdict(done),
        model=model,
        name=name,
        about="" if done.dim == wide else f"on their {done.dim} principal axes ",
    )
    facts = {**asdict(done), "out": name, "model": model, "version": __version__}
    with whole_folder(done.out) as folder:
        write_static(folder, static.tokenizer.to_str(), static.table)
        write_digests(folder, texts)
        write_text(folder / "README.md", head(name, done.dim, tags=["static"], about=about) + words)
        write_json(folder / "run.json", {"distilled": facts})
