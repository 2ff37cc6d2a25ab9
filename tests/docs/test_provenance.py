"""Each script that results, benchmarks, documents and comments name exists."""

import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from tests.docs.test_links import COMMITTED
from tests.support.shorthand import table

# In benchmarks/README.md and the scripts, names of other scripts of the folder have no path.
_PATH = re.compile(
    r"(?<![\w./-])(?:benchmarks|docs/scripts|papers|tests)/[\w/]+\.(?:py|csv|tsv)\b"
)
_NAME = re.compile(r"`([\w]+\.py)\b")
_MODULE = re.compile(r"python -m (papers|benchmarks|docs|tests)((?:\.\w+)*)")
NAMING = [
    path
    for path in COMMITTED
    if path.suffix in {".py", ".md", ".csv", ".toml"} or path.name == "Makefile"
]
pytestmark = pytest.mark.skipif(not COMMITTED, reason="not a checkout of git")


def test_named_scripts_exist():
    texts = {path: path.read_text() for path in NAMING if path != Path(__file__)}
    missing = {
        str(path.relative_to(ROOT)): [*missing_scripts(path, text)]
        for path, text in texts.items()
    }
    assert {path: names for path, names in missing.items() if names} == {}


def missing_scripts(page, text):
    """Yields the scripts and results that a text names and the repository lacks."""
    yield from (name for name in _PATH.findall(text) if not (ROOT / name).is_file())
    if page.is_relative_to(ROOT / "benchmarks"):
        yield from (
            name for name in _NAME.findall(text) if not any(page.parent.rglob(name))
        )
    for package, rest in _MODULE.findall(text):
        path = ROOT / package / rest.lstrip(".").replace(".", "/")
        if not path.is_dir() and not path.with_suffix(".py").is_file():
            yield f"{package}{rest}"


@table("""
    page, text, expected
    aoe_train/x.py | # `benchmarks/domain.py` and benchmarks/gone.py chose it | ['benchmarks/gone.py']
    benchmarks/results/x.csv | # Seconds: benchmarks/gone.py --all | ['benchmarks/gone.py']
    benchmarks/README.md | by `domain.py --out F` and `gone.py` | ['gone.py']
    docs/concepts.md | your own `gone.py` | []
    benchmarks/README.md | `python -m papers.gone` and `python -m tests.forked` | ['papers.gone']
""")
def test_missing_scripts_are_found(page, text, expected):
    assert [*missing_scripts(ROOT / page, text)] == expected
