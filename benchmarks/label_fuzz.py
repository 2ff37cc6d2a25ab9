"""Fuzz the parsers of LLM answers in `label`: no exception, and no input that takes long.

    python benchmarks/label_fuzz.py [--inputs 1000000] [--seed 0] [--processes 2]

Each input is an invented answer of tests/llm_labeler/answers that is cut, doubled, spliced with others and
mixed with strings that are hard to parse. It is read as an answer and as a judge's vote, and its sentences
are filtered. Prints the number of inputs and candidates and the longest time. The exit code is 1 if an input
raised, had an unlisted reason, or took more than a second.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from llm_labeler.judging.questions import judge_asks, read_votes
from llm_labeler.parsing.answer import REASONS, parse_answer
from llm_labeler.parsing.filters import REASONS as FILTER_REASONS
from llm_labeler.parsing.filters import screen
from llm_labeler.records import AskKey, Candidate, Text
from llm_labeler.settings import FilterSettings, JudgeSettings
from tests.llm_labeler.answer_formats import FOLDER, Format, read

MOST_SECONDS = 1.0
_PORTION = 10_000  # inputs per seed
_MAX_LENGTH = 3_000  # characters of an input; `hostile_texts.py` measures long ones
_INSERTED = (
    "\n", "\n\n", "\t", " ", "1. ", "2) ", "- ", "* ", "**", "__", "#", "##", '"', "“", "”", "'", "`",
    "```", "「", "[", "]", "{", "}", "(", ")", ":", "：", ",", ";", "|", "|---|", "\\", "\\n", "\\item ",
    "<li>", "</", "<a>", "&lt;", "<think>", "</think>", "[INST]", "[/INST]", "<|im_end|>", "</s>",
    "Input sentence: ", "Output:", "User: ", "Original: ", "Antonyms:", "Synonym 1: ", "Final answer:",
    "(note ", "->", "→", " - ", "—", "#1 ", "①", "²", "１．", "\x00", "\ud83d", "\ufeff", "\u200b", "😊", "ﷺ",
    "İ", "ß", "同义句：", "same", "opposite", '{"1": "same"}', "9" * 30,
)  # fmt: skip
_FINISHES = ("stop", "length", "", "refusal", "content_filter", "MAX_TOKENS", "error")


class Outcome(NamedTuple):
    """The result of one process."""

    inputs: int
    sentences: int
    slowest: float
    faults: list[str]


def mutated(formats: Sequence[Format], chosen: random.Random) -> tuple[Format, str]:
    """A format, and its answer with random changes."""
    one = chosen.choice(formats)
    raw = one.raw
    for _ in range(chosen.randint(1, 5)):
        at, end = sorted(chosen.randint(0, len(raw)) for _ in range(2))
        match chosen.randrange(7):
            case 0:
                raw = raw[:at] + raw[end:]
            case 1:
                raw = raw[:at] + raw[at:end] * 2 + raw[end:]
            case 2:
                other = chosen.choice(formats).raw
                raw = raw[:at] + other[chosen.randint(0, len(other)) :]
            case 3:
                lines = raw.split("\n")
                chosen.shuffle(lines)
                raw = "\n".join(lines)
            case 4:
                raw = raw[:at] + raw[at:end].swapcase() + raw[end:]
            case _:
                raw = (
                    raw[:at]
                    + chosen.choice(_INSERTED) * chosen.choice((1, 1, 1, 2, 7))
                    + raw[at:]
                )
    return one, raw[:_MAX_LENGTH]


def read_all(one: Format, raw: str, chosen: random.Random) -> int:
    """Read one input in every way, and return the number of its candidates."""
    finish, size = chosen.choice(_FINISHES), chosen.choice((None, one.size, 1))
    source = Text.of(one.text, 1)
    items = parse_answer(
        raw, text=one.text, finish=finish, size=size, polarity=one.polarity
    )
    key = AskKey(source.text_id, "llm", one.polarity, "", "")
    proposals, found = screen(source, [(key, items)], FilterSettings())
    reasons = {item.reason for item in items} | {each.reason for each in proposals}
    if not items or not reasons <= {None, *REASONS, *FILTER_REASONS}:
        raise AssertionError(f"{reasons}")
    said = one.expected[0] if one.expected else "Nothing was found."
    candidates = found or (Candidate(source.text_id, said, one.polarity, ("llm",)),)
    for ask, batch in judge_asks(source, candidates, "judge", "", JudgeSettings(), 1):
        if len(read_votes(ask, batch, raw, finish)) != len(batch):
            raise AssertionError("a candidate without a judgement")
    return len(found)


def fuzz(inputs: int, seed: int) -> Outcome:
    """Read `inputs` random inputs."""
    formats = [one for path in sorted(FOLDER.glob("*.txt")) for one in read(path.stem)]
    chosen = random.Random(seed)  # noqa: S311 - no secret
    done, sentences, slowest = 0, 0, 0.0
    faults: list[str] = []
    for done in range(1, inputs + 1):  # noqa: B007 - the loop may end early
        one, raw = mutated(formats, chosen)
        start = time.process_time()
        try:
            sentences += read_all(one, raw, chosen)
        except Exception as error:  # noqa: BLE001 - any exception is a fault
            faults.append(f"{type(error).__name__}: {error}: {one.text!r} {raw!r}")
        seconds = time.process_time() - start
        slowest = max(slowest, seconds)
        if seconds > MOST_SECONDS:
            faults.append(f"{seconds:.1f} s: {one.text!r} {raw!r}")
        if len(faults) > 20:
            break
    return Outcome(done, sentences, slowest, faults)


def main() -> None:
    """Fuzz in several processes and print the result."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    parts = -(-given.inputs // _PORTION)
    done, sentences, slowest = 0, 0, 0.0
    faults: list[str] = []
    with ProcessPoolExecutor(given.processes) as pool:
        for outcome in pool.map(
            fuzz, [_PORTION] * parts, range(given.seed, given.seed + parts)
        ):
            done, sentences = done + outcome.inputs, sentences + outcome.sentences
            slowest, faults = max(slowest, outcome.slowest), faults + outcome.faults
            print(
                f"{done:,} inputs, {sentences:,} candidates, slowest {slowest:.3f} s of CPU",
                flush=True,
            )
    print("\n".join(faults[:20]))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
