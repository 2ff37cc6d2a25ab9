"""The `>>>` examples in public docstrings run with the output shown, each in its own folder."""

import doctest
import inspect
import shutil
import types
from importlib import import_module

import pytest

from tests.support.shorthand import SAMPLE
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


def with_examples(package):
    """Yields the examples of a package and of its public names, including methods."""
    module = import_module(package)
    public = {package: module, **_public_members(package, module)}
    for name, member in public.items():
        docstring = inspect.getdoc(member) or ""
        variables = {"__name__": "__main__"}
        test = doctest.DocTestParser().get_doctest(docstring, variables, name, None, 0)
        if test.examples:
            yield test


def _public_members(path, owner):
    members = {}
    names = owner.__all__ if isinstance(owner, types.ModuleType) else vars(owner)
    for name in names:
        member = getattr(owner, name)
        if not name.startswith("_") and (
            callable(member) or isinstance(member, (property, types.ModuleType))
        ):
            members[f"{path}.{name}"] = member
            if isinstance(member, types.ModuleType) or inspect.isclass(member):
                members |= _public_members(f"{path}.{name}", member)
    return members


@pytest.mark.parametrize("package", PACKAGES)
def test_examples_print_the_output_shown(package, tmp_path, monkeypatch):
    for index, test in enumerate(with_examples(package)):
        home = tmp_path / str(index)
        lay_out(home, package)
        monkeypatch.chdir(home)
        failures = []
        runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
        runner.run(test, out=failures.append)
        assert not failures, "".join(failures)


def lay_out(home, package):
    """Writes the files that examples use: `pairs.tsv`, `sentences.txt`, a small `model`, a `tracker`."""
    home.mkdir()
    rows = ["text1\ttext2\tlabel", *("\t".join(map(str, row)) for row in PAIRS)]
    (home / "pairs.tsv").write_text("".join(f"{row}\n" for row in rows))
    (home / "sentences.txt").write_text("".join(f"{row[0]}\n" for row in PAIRS[::2]))
    if package == "aoe_train":
        from tests.aoe_train.tiny import save_bert

        save_bert(home / "model")
    if package == "gis_builder":
        sample = SAMPLE / "quarryhq"
        shutil.copytree(sample, home / "tracker" / "quarryhq")
