"""Texts of one unit, over and over: 65,536 characters take a second of CPU at most, in every parser.

By hand, with more units: `python -m tests.aoe_train.test_linear_time 10000`.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aoe_train.backbones.load import _HUB_ID, hub_origin
from aoe_train.evaluate.overlap import digests
from aoe_train.evaluate.suites.senteval_files import _fields, _lines
from aoe_train.longtext import pieces
from aoe_train.model_folder.modules import Listed
from aoe_train.prompts import with_prompt
from aoe_train.reproduce.recipe import slug
from aoe_train.reproduce.stranger import check_command
from aoe_train.tokens import TokenStore
from pairkit.errors import PairkitError
from pairkit.printable import one_line
from tests.aoe_train.tiny import bytelevel, wordpiece

LENGTH = 65_536
ALPHABET = ["a", "A", "0", " ", "\t", "\n", "\r\n", ".", ",", "-", "/", "\\", "'", '"', "[", "]", "{", "}"]
ALPHABET += [
    "##",
    "[CLS]",
    "[UNK]",
    "{text}",
    "\u0301",
    "é",
    "東",
    "🙂",
    "\u200d",
    "ﷺ",
    "İ",
    "\x00",
    ":",
    "=",
]
ALPHABET += ["=", "--", "models--", "/snapshots/", "http://", "..", "\u00a0", "ß", "<s>", "the ", "\ufeff"]
UNITS = [*ALPHABET, *map("".join, random.Random(0).sample(list(itertools.product(ALPHABET, repeat=2)), 20))]
WORDPIECE, BYTES = wordpiece(), bytelevel()


def _tokens(text: str) -> None:
    for tokenizer in (WORDPIECE, BYTES):
        TokenStore.build([text], tokenizer, max_length=16, long_text="chunks", overlap=4)


def _prompt(text: str) -> None:
    with_prompt(WORDPIECE, text.replace("{text}", "") + "{text}")


def _recipe(text: str) -> None:
    slug(text)
    check_command(("gis", "import", text))


def _names(text: str) -> None:
    _HUB_ID.fullmatch(text)
    hub_origin(text)
    Listed(type=text[:200], path=text)


def _file(text: str) -> None:
    for task in ("TREC", "SST2", "MRPC"):
        _fields(task, text)


PARSERS: dict[str, Callable[[str], object]] = {
    "tokens": _tokens,
    "prompt": _prompt,
    "digests": lambda text: digests([text]),
    "pieces": lambda text: pieces(list(text.encode(errors="replace")), 16, "chunks", 4),
    "recipe": _recipe,
    "names": _names,
    "senteval": _file,
    "one line": one_line,
}


def slowest(parse: Callable[[str], object], units: list[str]) -> tuple[float, str]:
    """The most CPU seconds that a unit takes, and the unit."""
    worst = 0.0, ""
    for unit in units:
        text = (unit * (LENGTH // len(unit) + 1))[:LENGTH]
        began = time.process_time()
        with contextlib.suppress(PairkitError, ValueError):
            parse(text)
        worst = max(worst, (time.process_time() - began, unit))
    return worst


@pytest.mark.parametrize("name", PARSERS)
def test_no_repetition_takes_long(name: str) -> None:
    seconds, unit = slowest(PARSERS[name], UNITS)
    assert seconds <= 1, repr(unit)


def test_lines_of_a_file(tmp_path: Path) -> None:
    def read(text: str) -> None:
        (tmp_path / "lines").write_text(text, encoding="utf-8")
        _lines(tmp_path / "lines")

    seconds, unit = slowest(read, UNITS)
    assert seconds <= 1, repr(unit)


if __name__ == "__main__":
    choice = random.Random(1)
    many = ["".join(choice.choices(ALPHABET, k=choice.randint(1, 3))) for _ in range(int(sys.argv[1]))]
    for parser, parse in PARSERS.items():
        print(parser, *slowest(parse, many))
