"""The `>>>` examples in the docstrings of what is public do as they say, each in a folder of its own."""

from __future__ import annotations

import doctest
import inspect
import shutil
import types
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.test_public_names import PACKAGES

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PAIRS = (
    ("A plane is taking off.", "An aeroplane takes off.", 1),
    ("A plane is taking off.", "A man is eating bread.", 0),
    ("The parser crashes on an empty file.", "Empty input makes the parser panic.", 1),
    ("The parser crashes on an empty file.", "Please add a dark theme.", 0),
    ("A woman plays the flute.", "Someone is playing a flute.", 1),
    ("A woman plays the flute.", "The river runs through the city.", 0),
    ("The window flickers on scroll.", "Scrolling makes the window flicker.", 1),
    ("The window flickers on scroll.", "The child eats an apple.", 0),
)


def with_examples(package: str) -> Iterator[doctest.DocTest]:
    """The examples of a package and of each of its public names, methods included."""
    module = import_module(package)
    public = {package: module, **_public(package, module)}
    for name, thing in public.items():
        docstring = inspect.getdoc(thing) or ""
        names = {"__name__": "__main__"}
        test = doctest.DocTestParser().get_doctest(docstring, names, name, None, 0)
        if test.examples:
            yield test


def _public(path: str, holder: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    names = holder.__all__ if isinstance(holder, types.ModuleType) else vars(holder)
    for name in names:
        thing = getattr(holder, name)
        if not name.startswith("_") and (callable(thing) or isinstance(thing, (property, types.ModuleType))):
            found[f"{path}.{name}"] = thing
            if isinstance(thing, types.ModuleType) or inspect.isclass(thing):
                found |= _public(f"{path}.{name}", thing)
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_examples_do_as_they_say(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, test in enumerate(with_examples(package)):
        home = tmp_path / str(place)
        lay_out(home, package)
        monkeypatch.chdir(home)
        said: list[str] = []
        runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
        runner.run(test, out=said.append)
        assert not said, "".join(said)


def lay_out(home: Path, package: str) -> None:
    """What examples may use: `pairs.tsv`, `sentences.txt`, a small `model`, a saved `tracker`."""
    home.mkdir()
    rows = ["text1\ttext2\tlabel", *("\t".join(map(str, row)) for row in PAIRS)]
    (home / "pairs.tsv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    (home / "sentences.txt").write_text("".join(f"{row[0]}\n" for row in PAIRS[::2]), encoding="utf-8")
    if package == "aoe_train":
        from tests.aoe_train.tiny import save_bert

        save_bert(home / "model")
    if package == "gis_builder":
        sample = Path(__file__).parents[1] / "data" / "sample" / "quarryhq"
        shutil.copytree(sample, home / "tracker" / "quarryhq")
