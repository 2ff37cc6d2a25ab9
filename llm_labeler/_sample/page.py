"""A page on which a person says of each pair whether it is right, and takes the answers away as CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files

from llm_labeler._records import digest
from pairkit.look import style
from pairkit.notebook import escape


def answer_page(pairs: Sequence[tuple[str, str]], question: str, name: str) -> str:
    """The page, which needs nothing else: it asks for nothing and sends nothing.

    Args:
        pairs: Both texts of each.
        question: What is asked of each, to be answered by yes or no.
        name: What the pairs are of. Until answers are taken away the browser keeps them under this name and a
            digest of all pairs, as answers go by the numbers of pairs.
    """
    # Within a script neither `</script>` nor `<!--` may stand.
    key = f"label sample {name} {digest(*(text for pair in pairs for text in pair))}"
    data = json.dumps({"key": key, "pairs": pairs}, ensure_ascii=False).replace("<", "\\u003c")
    page = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    page = page.replace("@STYLE@", style("llm_labeler._sample", "page.css"))
    return page.replace("@QUESTION@", escape(question)).replace("@DATA@", data)
