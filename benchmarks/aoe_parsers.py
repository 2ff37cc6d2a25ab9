"""What `aoe` reads foreign text with, for `hostile_texts.py`; each imports its part when it is asked for."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from pairkit.app.errors import PairkitError

Parser = Callable[[str], object]


def _unless_refused(parse: Parser) -> Parser:
    """A refusal ends the reading as well as anything."""

    def parsed(text: str) -> None:
        with contextlib.suppress(PairkitError, ValueError):
            parse(text)

    return parsed


def _tokens() -> Parser:
    """A text of a dataset, cut into tokens and pieces in both usual ways."""
    from aoe_train.model.tokens.tokens import TokenStore
    from tests.aoe_train.tiny import bytelevel, wordpiece

    tokenizers = (wordpiece(), bytelevel())

    def tokenised(text: str) -> None:
        for tokenizer in tokenizers:
            with contextlib.suppress(PairkitError, ValueError):
                TokenStore.build([text], tokenizer, max_length=16, long_text="chunks", overlap=4)

    return tokenised


def _prompt() -> Parser:
    """The prompt of a model's folder."""
    from aoe_train.model.tokens.special_tokens import with_prompt
    from tests.aoe_train.tiny import wordpiece

    tokenizer = wordpiece()
    return _unless_refused(lambda text: with_prompt(tokenizer, text.replace("{text}", "") + "{text}"))


def _digests() -> Parser:
    """A text that a model was trained on."""
    from aoe_train.evaluation.overlap import digests

    return _unless_refused(lambda text: digests([text]))


def _names() -> Parser:
    """Where a model's folder says that it and its parts are from."""
    from aoe_train.model.backbones.load import _HUB_ID, hub_origin
    from aoe_train.model.folder_checks import Listed

    def read(text: str) -> None:
        _HUB_ID.fullmatch(text)
        hub_origin(text)
        Listed(type=text[:200], path=text)

    return _unless_refused(read)


def _senteval() -> Parser:
    """A line of a SentEval file, and a whole file."""
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
    """Words of others in a message."""
    from pairkit.app.printable import one_line

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
    *("##", "[CLS]", "[UNK]", "<s>", "{text}", "{", "models--", "/snapshots/", "http://", "hf://", "..", "/"),
    *("東", "🙂", "\u200d", "ﷺ", "ß", "\u00a0", "\ufeff", ":", "/a", "\\", "DESC:def ", "1\t", "\t", "the "),
)
"""What these parsers look for, alone and as text that tokenizers change."""
