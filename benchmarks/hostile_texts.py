"""Search for texts that slow down a parser of untrusted text: repeat small units and measure CPU time.

    python benchmarks/hostile_texts.py [--parsers verdict,rendering] [--units 10000] [--seed 0] [--worst 20]

Units are words and phrases of the detector's lexicon, parts of its rules, Markdown and HTML markup, signs,
numbers, tokens, model names, and pairs and triples of all these. Each unit is repeated to 8 kB; the slowest
ones and a sample of the rest are then repeated to 16 kB and to 65,536 characters, GitHub's limit. Prints a
Markdown table for each parser. The exit code is 1 if 65,536 characters took more than a second, or more than
five times as long as 16 kB.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.aoe_parsers import AOE, SIGNS, Parser

SCREENED, SMALL, LARGE = 8_192, 16_384, 65_536  # characters
MOST_SECONDS, MOST_GROWTH = 1.0, 5.0
ONCE = "\x1f"
_WORTH_TIMING = 0.02  # seconds; the growth of shorter times is noise

MARKUP = (
    "~~a ", "~~", "~~~\n", "```", "```\n", "````\n```\n", "`", "`a", "` `` ", "``` `", "<!--", "-->",
    "<!-- a -->", "<details>", "</details>", "<details", "<pre ", "<pre>", "</pre>", "<code>",
    "<blockquote>", "<img ", 'alt="', "> ", ">", "- ", "* [ ] ", "- [x] search ", "# ", "### duplicat", "[",
    "]", "](", "![", "![](", "![a](b ", "[a]: ", "http://", "https://github.com/",
    "https://github.com/o/n/issues/1", "https://github.com/o/n/issues/1#a ", "@", "o/n#1", "a/a/a/a/",
    "a.a.a.", "issues/1", "issues/1-", "issues/1?.", "pull/77 ", "GH-1 ", "gh-1", "#1", "#1,", "#1\n",
    "a#1", "#abc ", "color: #123", "issue ", "issues 1, 2", "issue no. ", "bug #", "PR 1", "dup", "dup of ",
    "edit: ", "edit: #1\n", "edited -", "\n", "\n\n", " ", "  \n", "\t", "    a\n", "\r\n", "-", "--",
    "- -", "->", ".", "...", ". ", ", ", "!", "?", "? ", "e.g. ", "etc.", "...a", "=", "|", "|-", "_", "a_",
    "*", "**a", "\\", "\x00", "On ", "On Monday the 1st\n", "wrote:", "\u0301", "\u0301\u0316", "e\u0301",
    "重複", "相同", "^", "^-", "👍", "İ", "\ud800", "0", "1", "12 ", "1.", "1) ", "0x", "a", "A", "aA", "é",
    "'", "n't ", "a'b", "a-", "(", ")", "()", "{", "{}", '"', '"a',
)  # fmt: skip
LINES = (
    "dup of #12, ", "Duplicate of #2, #3, ", "duplicate of #3 ~~a ",
    "Closing #2, #3 as duplicates of this one. ", "same problem as #2, ", "#2 and #3 and ", "#2\n", "refs ",
    "links ", "if this is a duplicate ", "closing as a duplicate. ", "closing as a dup, ",
    "this is a dup of that one. ", "I meant #1. ", "edit: dup of #1\n", "- dup of #1\n",
    "dups of these:\n- #1\n",
)  # fmt: skip
_BEFORE = ("", "Closing as a duplicate of #1. ", "issue", "same ", "```", "<!--", "@")


class Timing(NamedTuple):
    """CPU seconds of one unit, repeated to both sizes."""

    unit: str
    small: float
    large: float

    @property
    def growth(self) -> float:
        """How many times longer the text of four times the length took."""
        return self.large / max(self.small, _WORTH_TIMING / 4)

    @property
    def is_too_slow(self) -> bool:
        """Whether it breaks one of the two bars."""
        return self.large > MOST_SECONDS or (
            self.large > _WORTH_TIMING and self.growth > MOST_GROWTH
        )


def parsers() -> dict[str, Callable[[], Parser]]:
    """All parsers of untrusted text by name; each imports its package when called."""
    return {
        "verdict": _verdict,
        "rendering": _rendering,
        "answer": _answer,
        "filters": _filters,
        "judge": _judge,
        **AOE,
    }


def _verdict() -> Parser:
    """Decide on a thread with the text as title, body and comments."""
    from gis_builder.detection.decision import decide
    from gis_builder.store.issue_records import Comment, Issue, Kind, Thread

    noon = "2020-01-10T12:00:00Z"

    def decided(text: str) -> object:
        issue = Issue(
            "o/n",
            100,
            text[:256],
            text,
            "closed",
            None,
            "ann",
            "NONE",
            noon,
            noon,
            noon,
            "mia",
        )
        comments = (
            Comment(1, "mia", "MEMBER", noon, text),
            Comment(2, "bob", "NONE", noon, "dup of #1?"),
        )
        return decide(Thread(issue, comments), lambda _: Kind.ISSUE)

    return decided


def _rendering() -> Parser:
    """Render the text of an issue for a dataset."""
    from gis_builder.pairing.text import clean

    return clean


def _answer() -> Parser:
    """Parse an LLM's answer in `label`."""
    from llm_labeler.parsing.answer import parse_answer

    return lambda text: parse_answer(text, text="The cat sat on the mat.")


def _filters() -> Parser:
    """Filter a proposed sentence in `label`."""
    from llm_labeler.parsing.filters import reject
    from llm_labeler.settings import FilterSettings

    settings = FilterSettings(max_length_ratio=1e9)

    def decided(text: str) -> object:
        told = reject(text, "The cat sat on the mat.", "positive", settings)
        return told, reject(text, text[::-1], "negative", settings)

    return decided


def _judge() -> Parser:
    """Parse a judge's answer in `label`."""
    from llm_labeler.judging.questions import judge_asks, read_votes
    from llm_labeler.records import Candidate, Text
    from llm_labeler.settings import JudgeSettings

    source, settings = Text.of("The cat sat on the mat.", 1), JudgeSettings()
    candidates = [
        Candidate(source.text_id, f"A cat sat {n}.", "positive", ("ann",))
        for n in range(8)
    ]
    ((ask, batch),) = judge_asks(source, candidates, "bob", "", settings, 1)
    return lambda text: read_votes(ask, batch, text, "stop")


def units(count: int, seed: int) -> list[str]:
    """`count` distinct units: all single ones, then random pairs and triples of them."""
    from gis_builder.detection.rules import RULES

    single = dict.fromkeys(
        [
            *LINES,
            *MARKUP,
            *SIGNS,
            *(f"{word} " for word in _words()),
            *_words(),
            *_phrase_parts(),
        ]
    )
    rules = list(chain.from_iterable(RULES.values()))
    single |= dict.fromkeys(f"{rule.example} " for rule in rules)
    chosen = random.Random(seed)  # noqa: S311
    found = (
        dict.fromkeys(text for rule in rules for text in _of_rule(rule.pattern, chosen))
        | single
    )
    pool = list(single)
    while len(found) < count:
        found["".join(chosen.choices(pool, k=chosen.choice((2, 2, 3))))] = None
    return list(found)[: max(count, len(single))]


def _words() -> Iterable[str]:
    from gis_builder.detection.lexicon import WORDS

    return WORDS


def _phrase_parts() -> Iterator[str]:
    """The words of phrases, one by one and in sequence."""
    from gis_builder.detection.lexicon import PHRASES

    for _, rule in PHRASES:
        words = re.findall(r"(?<!\\)[^\W\d_]{2,}", rule)
        yield from (f"{word} " for word in words)
        yield " ".join(words[:6]) + " "


def _of_rule(pattern: str, chosen: random.Random) -> Iterator[str]:
    """Words for some codes of a rule, in the order of the rule and in random order."""
    by_code = _words_by_code()
    codes = [name for name in re.findall(r"[A-Z][A-Z_]+", pattern) if name in by_code]
    for size in (2, 3, 4, 6):
        start = chosen.randrange(len(codes))
        for row in (codes[start : start + size], chosen.choices(codes, k=size)):
            yield " ".join(chosen.choice(by_code[code]) for code in row) + " "


def _words_by_code() -> dict[str, list[str]]:
    from gis_builder.detection.lexicon import WORDS

    by_code = {
        "REFERENCE": ["#1", "#2"],
        "TARGETS": ["#1", "#2"],
        "SUBJECT": ["#1"],
        "QUESTION": ["?"],
    }
    by_code |= {
        "FAVOUR": ["in favour of"],
        "SAME_AS": ["same issue as"],
        "SAME": ["the same issue"],
    }
    by_code |= {
        "MOVED": ["merged into"],
        "TRACKED": ["tracked in"],
        "REPORTED": ["already reported"],
    }
    by_code |= {
        "PART_OF": ["part of"],
        "THAT_ONE": ["that one"],
        "CORRECTION": ["I meant"],
    }
    by_code |= {"COMMA": [",", ":"], "WORD": ["window"], "UNDECIDED": ["no idea"]}
    for word, code in WORDS.items():
        by_code.setdefault(code.name, []).append(word)
    return by_code


def repeated(unit: str, size: int) -> str:
    """Repeat the unit to `size` characters; the part before `ONCE` is not repeated."""
    before, _, unit = unit.rpartition(ONCE)
    return (before + unit * (size // len(unit) + 1))[:size]


def search(parse: Parser, found: list[str], worst: int, seed: int) -> list[Timing]:
    """Time all units as short texts, then the slowest and a sample as long ones; the slowest first."""
    screened = {unit: seconds(parse, repeated(unit, SCREENED)) for unit in found}
    slowest = sorted(found, key=lambda unit: -screened[unit])[: 5 * worst]
    sample = random.Random(seed).sample(found, min(len(found), 5 * worst))  # noqa: S311
    timings = [_timing(parse, unit) for unit in dict.fromkeys([*slowest, *sample])]
    return sorted(timings, key=lambda timing: -timing.large)


def _timing(parse: Parser, unit: str) -> Timing:
    timing = Timing(
        unit, *(seconds(parse, repeated(unit, size)) for size in (SMALL, LARGE))
    )
    if not timing.is_too_slow or timing.large > 10 * MOST_SECONDS:
        return timing
    # On a busy machine, single measurements have outliers.
    again = (
        min(seconds(parse, repeated(unit, size)) for _ in range(3))
        for size in (SMALL, LARGE)
    )
    return Timing(unit, *again)


def seconds(parse: Parser, text: str) -> float:
    """CPU seconds of this process for one text."""
    started = time.process_time()
    parse(text)
    return time.process_time() - started


def table(timings: Iterable[Timing]) -> str:
    """A Markdown row for each unit."""
    rows = (
        f"| {t.unit[:40]!r} | {t.small:.3f} | {t.large:.3f} | {t.growth:.1f} |"
        for t in timings
    )
    return "\n".join(
        ["| unit | 16 kB, s | 64 kB, s | growth |", "|---|---|---|---|", *rows]
    )


def main() -> None:
    """Search with each parser and print the slowest units."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parsers", default=",".join(parsers()))
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--worst", type=int, default=20, help="how many units to show for each parser"
    )
    options = parser.parse_args()
    found = units(options.units, options.seed)
    found += [
        f"{before}{ONCE}{unit}" for before in _BEFORE[1:] for unit in (*MARKUP, *LINES)
    ]
    is_slow = False
    for name in options.parsers.split(","):
        timings = search(parsers()[name](), found, options.worst, options.seed)
        slow = [timing for timing in timings if timing.is_too_slow]
        print(f"\n{name}: {len(found)} units, {len(slow)} too slow\n")
        print(table([*slow, *timings][: options.worst]), flush=True)
        is_slow = is_slow or bool(slow)
    sys.exit(int(is_slow))


if __name__ == "__main__":
    main()
