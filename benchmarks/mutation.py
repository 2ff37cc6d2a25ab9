"""What share of small faults do the tests notice? Mutation testing of a sample of mutants.

    python benchmarks/mutation.py --area detect --sample 120 --seed 0 [--results FILE] [--jobs 2]

The mutants (`mutants.py`) of all files of an area have the same chance to be drawn. For each one a process is
forked, in which the changed file takes the place of the file and the area's tests run until the first one
fails. A mutant that exceeds three times the CPU seconds that the tests need counts as killed, too.

`--results` keeps what was found: a run that was stopped goes on, and one after a change runs only what
survived (`--fresh` runs all). Survivors that no test can kill stand in `equivalent_mutants.tsv`, with the
reason, and are not run again. Left out are tests that take seconds, and of properties most of the examples.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import resource
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import NamedTuple

from mutants import Mutant, mutants, read, sample

ROOT = Path(__file__).parents[1]
PACKAGES = ("pairkit", "gis_builder", "llm_labeler", "aoe_train", "tests", "benchmarks")
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.tsv")
KILLED, SURVIVED = "killed", "survived"
# They take seconds: processes, memory and time measured, finite differences.
LEFT_OUT = (
    "tests/aoe_train/test_objectives_contrastive.py::test_gradient_against_finite_differences",
    "tests/llm_labeler/test_parse_properties.py::test_any_string_is_read",
    "tests/llm_labeler/test_parse_properties.py::test_beyond_a_million_characters_nothing_is_read",
    "tests/llm_labeler/test_parse_properties.py::test_what_was_found_is_found_again",
    "tests/pairkit/test_similar.py::test_no_process_or_hash_seed_changes_anything",
    "tests/pairkit/test_similar.py::test_texts_of_one_template_take_little_memory",
)
_MOST_EXAMPLES = 25  # of a property that doesn't say itself how many it needs


class Area(NamedTuple):
    """Files whose mutants are drawn together, and the tests that must notice them: patterns of paths."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


def _named(pattern: str, names: str) -> tuple[str, ...]:
    return tuple(pattern.format(name) for name in names.split())


AREAS = {
    "detect": Area(
        _named("gis_builder/detection/{}.py", "tokens claim_tracker decision reader"),
        _named(
            "tests/gis_builder/test_detect_{}.py",
            "decision markers turns weight claim_tracker grammar verdict sample",
        ),
    ),
    "pairs": Area(
        (
            *_named(
                "gis_builder/pairing/{}.py",
                "references text positives negatives sampler",
            ),
            "gis_builder/pairing/split.py",
        ),
        _named(
            "tests/gis_builder/test_{}.py",
            "references text stubs duplicate_notes positives negatives split matching detect_verdict",
        ),
    ),
    "budget": Area(
        (
            "llm_labeler/dispatch/budget.py",
            "llm_labeler/dispatch/limits.py",
            "pairkit/openai_api/refusals.py",
        ),
        (
            "tests/pairkit/test_openai_refusals.py",
            *_named("tests/llm_labeler/test_{}.py", "budget limits dispatch_budget dispatch"),
        ),
    ),
    "parse": Area(
        ("llm_labeler/parsing/*.py",),
        ("tests/llm_labeler/test_parse*.py", "tests/llm_labeler/test_filters*.py"),
    ),
    "objectives": Area(
        ("aoe_train/objectives/*.py",),
        ("tests/aoe_train/test_objectives_*.py",),
    ),
    "similar": Area(
        _named("pairkit/similarity/{}.py", "near_duplicates jaccard_join"),
        _named("tests/pairkit/test_{}.py", "jaccard_join similar"),
    ),
}


def main() -> None:
    """Read the flags, run the mutants, print the survivors and a row of the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--area", choices=AREAS, required=True)
    parser.add_argument("--sample", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--fresh", action="store_true")
    options = parser.parse_args()
    os.chdir(ROOT)
    os.nice(10)
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    sys.path.insert(0, str(ROOT))
    area = AREAS[options.area]
    trees = {path: read(ROOT, path) for path in _files(area.files)}
    everything = [one for path, tree in trees.items() for one in mutants(path, tree)]
    chosen = sample(everything, options.sample, options.seed)
    excused = _known(EQUIVALENT)
    outcomes = dict.fromkeys(excused, SURVIVED)
    if options.results and not options.fresh:
        outcomes |= _known(options.results)
    todo = [one for one in chosen if one.name not in excused and outcomes.get(one.name) != KILLED]
    for mutant, outcome in _outcomes(todo, trees, _files(area.tests), options.jobs):
        outcomes[mutant.name] = outcome
        if options.results:
            with options.results.open("a", encoding="utf-8") as file:
                print(outcome, mutant.name, sep="\t", file=file)
    survivors = [one for one in chosen if outcomes[one.name] == SURVIVED]
    left = [one for one in survivors if one.name not in excused]
    for one in left:
        line = (ROOT / one.path).read_text("utf-8").splitlines()[one.line - 1].strip()
        print(f"{one.name}\n    line {one.line}: {line}")
    killed = len(chosen) - len(survivors)
    equivalent = len(survivors) - len(left)
    share = killed / max(1, len(chosen) - equivalent)
    cells = (options.area, len(everything), len(chosen), killed, equivalent, len(left), f"{share:.3f}")
    print("| area | mutants | sampled | killed | equivalent | left | killed of those that can be |")
    print("|---|---|---|---|---|---|---|")
    print(f"| {' | '.join(map(str, cells))} |")


def _files(patterns: Iterable[str]) -> list[str]:
    """The files that match, in order of the patterns; one without a file would test less than it says."""
    found: list[str] = []
    for pattern in patterns:
        matching = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(pattern))
        if not matching:
            sys.exit(f"No file matches {pattern}: correct AREAS in {Path(__file__).name}.")
        found += matching
    return list(dict.fromkeys(found))


def _known(path: Path) -> dict[str, str]:
    """What is said of each mutant in a file of two columns: that, and its name. A later line counts."""
    if not path.exists():
        return {}
    lines = path.read_text("utf-8").splitlines()
    return {name: outcome for outcome, _, name in (line.partition("\t") for line in lines)}


def _outcomes(
    todo: list[Mutant], trees: dict[str, ast.Module], tests: Sequence[str], jobs: int
) -> Iterator[tuple[Mutant, str]]:
    """Run the tests on each mutant, `jobs` at a time, in forks that have the foreign modules from here."""
    if not todo:
        return
    limit = 3 * _warm_up(tests) + 10
    running: dict[int, Mutant] = {}
    for mutant in todo:
        if len(running) == jobs:
            yield _next_outcome(running)
        pid = os.fork()
        if not pid:
            _put_in_place(ROOT / mutant.path, mutant.source(trees[mutant.path]))
            _run_and_exit(_own_first(tests, mutant.path), limit)
        running[pid] = mutant
    while running:
        yield _next_outcome(running)


def _next_outcome(running: dict[int, Mutant]) -> tuple[Mutant, str]:
    pid, status = os.wait()
    return running.pop(pid), KILLED if status else SURVIVED


def _warm_up(tests: Sequence[str]) -> int:
    """Import what the tests import, but none of our modules; the CPU seconds that the tests take."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        status = _run(tests)
        ours = {name for name in sys.modules if name.partition(".")[0] in (*PACKAGES, "__main__", "mutants")}
        foreign = [name for name in sys.modules if name not in ours]
        with os.fdopen(writing, "w") as pipe:
            json.dump((status, int(sum(os.times()[:2])), foreign), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        status, seconds, foreign = json.load(pipe)
    os.waitpid(pid, 0)
    if status:
        sys.exit(f"The tests fail without any mutant (pytest's exit code {status}): {' '.join(tests)}")
    for name in foreign:
        _import(name)
    return int(seconds)


def _import(name: str) -> None:
    try:
        __import__(name)
    except ImportError:  # a name that another module made up
        return


def _put_in_place(path: Path, source: str) -> None:
    """Let every import of the file read `source` instead, past the bytecode that Python keeps."""
    get_data, path_stats = SourceFileLoader.get_data, SourceFileLoader.path_stats

    def changed_data(self: SourceFileLoader, name: str) -> bytes:
        return source.encode() if Path(name) == path else get_data(self, name)

    def changed_stats(self: SourceFileLoader, name: str) -> object:
        if Path(name) == path:
            raise OSError
        return path_stats(self, name)

    SourceFileLoader.get_data = changed_data  # type: ignore[method-assign, assignment]
    SourceFileLoader.path_stats = changed_stats  # type: ignore[method-assign, assignment]


def _run_and_exit(tests: Sequence[str], limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 2))
    signal.alarm(20 * limit)  # for what waits without computing
    status = 1
    try:
        status = _run(tests)
    finally:
        os._exit(status)


def _run(tests: Sequence[str]) -> int:
    """Run file after file until one fails, as most mutants need only the first; pytest's exit code."""
    import pytest

    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    flags = ["-x", "-q", "-p", "no:cacheprovider", *(f"--deselect={one}" for one in LEFT_OUT)]
    for test in tests:
        if status := pytest.main([*flags, test], plugins=[_SameExamples()]):
            return int(status)
    return 0


def _own_first(tests: Iterable[str], path: str) -> list[str]:
    """The tests that are named after the file before the others of its area."""
    return sorted(tests, key=lambda test: not Path(test).stem.endswith(f"_{Path(path).stem}"))


class _SameExamples:
    """Hypothesis draws the same examples for every mutant and keeps none."""

    def pytest_configure(self) -> None:
        from hypothesis import settings

        parent = settings.get_profile("house")
        settings.register_profile(
            "mutation", parent, derandomize=True, database=None, max_examples=_MOST_EXAMPLES
        )
        settings.load_profile("mutation")


if __name__ == "__main__":
    main()
