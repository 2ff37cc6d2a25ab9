"""What the filters `nothing_shared` and `not_a_question` drop of true paraphrases, and of what is none.

    python benchmarks/label_gate.py ../shared/data

True ones are the pairs of STS-B rated 4 and above and the positives of MRPC and QQP; what is none is made of
their sentences: a question with a statement or another question drawn at random. Prints a Markdown table. The
exit code is 1 if more than two in a hundred true ones of any set are dropped.
"""

from __future__ import annotations

import gzip
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from llm_labeler.dataset.filters import turned_down
from llm_labeler.settings.labelling import FilterSettings

MOST_DROPPED = 0.02
_REASONS = ("nothing_shared", "not_a_question")
Pairs = list[tuple[str, str]]


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Lines of a TSV file with a header and without quoting."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    names, *lines = (line.split("\t") for line in text.rstrip("\n").split("\n"))
    for line in lines:
        yield dict(zip(names, line, strict=False))


def paraphrases(data: Path) -> dict[str, Pairs]:
    """True ones by set."""
    found: dict[str, Pairs] = {}
    for part in ("train", "dev", "test"):
        table = rows(data / "stsb" / f"stsb-{part}.tsv")
        found[f"STS-B {part}, 4 and above"] = [
            (r["sentence1"], r["sentence2"]) for r in table if float(r["score"]) >= 4
        ]
    for part in ("train", "test"):
        table = rows(data / "pairs" / f"mrpc-{part}.tsv")
        found[f"MRPC {part}"] = [(r["sentence1"], r["sentence2"]) for r in table if r["label"] == "1"]
    for part in ("dev", "test"):
        table = rows(data / "pairs" / f"qqp-{part}.tsv.gz")
        found[f"QQP {part}"] = [(r["question1"], r["question2"]) for r in table if r["label"] == "1"]
    return found


def dropped(pairs: Pairs) -> dict[str, float]:
    """Share dropped for each of the reasons."""
    settings = FilterSettings(min_length_ratio=0, max_length_ratio=1e9)
    said = [turned_down(candidate, text, "positive", settings) for text, candidate in pairs]
    return {reason: said.count(reason) / len(said) for reason in _REASONS}


def main() -> None:
    """Measure and print."""
    data, chosen = Path(sys.argv[1]), random.Random(0)  # noqa: S311 - no secret
    sets = paraphrases(data)
    questions = [text for text, _ in sets["QQP dev"]]
    statements = [text for text, _ in sets["STS-B train, 4 and above"]]
    others = {
        "a question, a statement at random": [(q, chosen.choice(statements)) for q in questions],
        "a question, another at random": [(q, chosen.choice(questions)) for q in questions],
        "a statement, another at random": [(s, chosen.choice(statements)) for s in statements],
    }
    print("| pairs | number | nothing_shared | not_a_question | both |\n|---|---|---|---|---|")
    worst = 0.0
    for name, pairs in {**sets, **others}.items():
        shares = dropped(pairs)
        total = sum(shares.values())
        worst = max(worst, total) if name in sets else worst
        told = " | ".join(f"{share:.2%}" for share in (*shares.values(), total))
        print(f"| {name} | {len(pairs):,} | {told} |")
    sys.exit(1 if worst > MOST_DROPPED else 0)


if __name__ == "__main__":
    main()
