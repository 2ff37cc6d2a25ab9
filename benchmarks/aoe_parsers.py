"""The parsers of untrusted text in `aoe`, for `hostile_texts.py`. Each imports its modules when called."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from pairkit.base.errors import PairkitError

Parser = Callable[[str], object]


def _unless_refused(parse: Parser) -> Parser:
    """Ignore a refusal: a parser may reject a text, but not take long."""

    def parsed(text: str) -> None:
        with contextlib.suppress(PairkitError, ValueError):
            parse(text)

    return parsed


def _tokens() -> Parser:
    """Tokenise a text of a dataset, by WordPiece and by byte-level BPE."""
    from aoe_train.model.tokenised import TokenStore
    from tests.aoe_train.tiny import bytelevel, wordpiece

    tokenizers = (wordpiece(), bytelevel())

    def tokenised(text: str) -> None:
        for tokenizer in tokenizers:
            with contextlib.suppress(PairkitError, ValueError):
                TokenStore.build([text], tokenizer, max_length=16)

    return tokenised


def _prompt() -> Parser:
    """Read the prompt of a model folder."""
    from aoe_train.model.tokenizer import with_prompt
    from tests.aoe_train.tiny import wordpiece

    tokenizer = wordpiece()
    return _unless_refused(
        lambda text: with_prompt(tokenizer, text.replace("{text}", "") + "{text}")
    )


def _digests() -> Parser:
    """Hash a training text."""
    from aoe_train.evaluation.overlap import digests

    return _unless_refused(lambda text: digests([text]))


def _names() -> Parser:
    """Read the origin of a model and of its parts from a model folder."""
    from aoe_train.model.backbones.changes import hub_origin
    from aoe_train.model.backbones.load_backbone import _HUB_ID
    from aoe_train.model.folder_checks import Listed

    def read(text: str) -> None:
        _HUB_ID.fullmatch(text)
        hub_origin(text)
        Listed(type=text[:200], path=text)

    return _unless_refused(read)


def _senteval() -> Parser:
    """Read a line of a SentEval file, and a whole file."""
    from papers.suites.transfer import _fields, _lines

    path = Path(tempfile.mkdtemp()) / "lines"

    def read(text: str) -> None:
        for task in ("TREC", "SST2", "MRPC"):
            with contextlib.suppress(PairkitError, ValueError):
                _fields(task, text)
        path.write_text(text, encoding="utf-8", errors="replace")
        _lines(path)

    return _unless_refused(read)


def _printed() -> Parser:
    """Print untrusted text in a message."""
    from pairkit.base.printable import one_line

    return _unless_refused(one_line)


AOE: dict[str, Callable[[], Parser]] = {
    "tokens": _tokens,
    "prompt": _prompt,
    "digests": _digests,
    "names": _names,
    "senteval": _senteval,
    "printed": _printed,
}

SIGNS = (
    *(
        "##",
        "[CLS]",
        "[UNK]",
        "<s>",
        "{text}",
        "{",
        "models--",
        "/snapshots/",
        "http://",
        "hf://",
        "..",
        "/",
    ),
    *(
        "東",
        "🙂",
        "\u200d",
        "ﷺ",
        "ß",
        "\u00a0",
        "\ufeff",
        ":",
        "/a",
        "\\",
        "DESC:def ",
        "1\t",
        "\t",
        "the ",
    ),
)
"""Strings that these parsers look for or that tokenizers change."""
