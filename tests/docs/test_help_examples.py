"""The examples of `--help` read files of a clone, or what other examples write."""

import shlex
from functools import cache

import pytest

from tests.docs.blocks import ROOT
from tests.docs.test_commands_are_known import SCRIPTS, tree

SOURCES = {
    "DATA",
    "DATASET",
    "DATASETS",
    "DIR",
    "DOCUMENTS",
    "DUMP",
    "FILE",
    "FILE|NAMES",
} | {
    "INDEX",
    "INPUT",
    "MODEL",
}
WRITTEN = {"out", "work", "html", "markdown"}
# From a package, the Hub, an API, the network, or downloaded first.
ELSEWHERE = {
    "minilm",
    "-",
    "rust-lang/rust",
    "text-embedding-3-small",
    "data-dir",
    "gharchive",
} | {
    "google/bert_uncased_L-2_H-128_A-2",
    "intfloat/multilingual-e5-small",
    "meta-llama/Llama-3.2-1B",
    "WhereIsAI/github-issue-similarity",
}
# Of `pairs review`, beside its dataset.
ASIDE = {"demo.review", "pairs.review", "results.review"}


def examples():
    """Yields the script, the command, and each line of its examples."""
    for script in SCRIPTS:
        for name, command in tree(script).commands.items():
            for line in command.epilog.split("\n\n")[1:]:
                yield script, name, line.strip("`")


@cache
def arguments(script, name, line):
    """Parses an example; returns its values by name and kind of the parameter."""
    words = shlex.split(line)
    while words and words.pop(0) != name:
        pass
    command = tree(script).commands[name]
    context = command.make_context(name, words)
    return {
        (param.name, param.metavar or ""): {*texts(context.params[param.name])}
        for param in command.params
    }


def texts(value):
    """Yields paths and names in a value of a parameter; a name before `=` is left out."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from texts(each)
    elif value is not None and not isinstance(value, bool):
        yield str(value).rpartition("=")[2]


@cache
def outputs():
    """All files and folders that examples write, with the work folder of each dataset."""
    written = set(ASIDE)
    for example in examples():
        for (name, _), values in arguments(*example).items():
            if name in WRITTEN:
                written |= values | {
                    f"{value}.work" for value in values if name == "out"
                }
    return written


@pytest.mark.parametrize("script", SCRIPTS)
def test_inputs_exist_or_are_written_by_an_example(script):
    known = outputs() | ELSEWHERE
    missing = {
        value: example[2]
        for example in examples()
        if example[0] == script
        for (parameter, kind), values in arguments(*example).items()
        if kind in SOURCES and parameter not in WRITTEN
        for value in values
        if not {value, value.split("/")[0]} & known and not (ROOT / value).exists()
    }
    assert missing == {}


def test_examples_read_the_sample_data():
    lines = [line for _, _, line in examples()]
    assert sum("data/sample" in line for line in lines) > len(lines) / 4
