"""Time and memory of `label parse`: `python benchmarks/label_parse.py [texts …] [--judges N]`.

Every measurement is a process of its own, on a store of made-up texts (see `label_split`), for each of which
an LLM wrote three positives and three negatives as numbered lists; one in twenty is a copy of its text.
Judges, where some are asked for, say anything. The last but one column is what a text adds to the peak, from
the size before to this one, the text itself included; the last stands for the bytes of the dataset and of
the table of candidates.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from label_split import _text
from machine import processor
from similar import _peak, _sentence

SIZES = (20_000, 60_000, 180_000)
_BATCH = 2_000  # texts whose answers are kept in one step


def make(folder: str, count: int, judges: int) -> None:
    """A working folder with so many texts and every answer about them."""
    from llm_labeler.records import Answer, Reply
    from llm_labeler.runs.candidates_by_text import judge_questions, proposed
    from llm_labeler.runs.given import read_given
    from llm_labeler.runs.label import Notes, begin, prepare
    from llm_labeler.runs.tasks import task_of
    from llm_labeler.store import Store, chunks
    from llm_labeler.store.rows import answer_row
    from llm_labeler.store.store import _SAVE_ANSWER
    from llm_labeler.store.workplace import STORE_FILE, remember
    from pairkit.system.database import transaction

    random_ = random.Random(1)  # noqa: S311 - texts
    templates = [_sentence(random_, random_.randrange(10, 18)) for _ in range(1000)]
    names = [f"judge{number}" for number in range(judges)]
    given = {"llms": {"writer": _nobody}, "judges": dict.fromkeys(names, _nobody) or None}
    settings, own = read_given(given | {"strategy": "weighted" if names else None})
    sentences = [_text(random_, templates) for _ in range(count)]
    record, texts, providers = prepare(sentences, None, settings, own)
    by_id = {text.text_id: text for text in texts.texts}
    work = Path(folder)
    work.mkdir(parents=True)
    remember(work, record, texts.texts)
    with Store.open(work / STORE_FILE, create=True) as store:
        begin(store, record, providers, Notes(progress=False))

        def answer(asks: Iterator, say) -> None:
            for some in chunks(asks, _BATCH):
                with transaction(store._connection) as connection:
                    rows = (answer_row(Answer(ask.key, Reply(say(random_, ask)), 0.0)) for ask in some)
                    connection.executemany(_SAVE_ANSWER, rows)

        answer(task_of(record).asks(texts.texts, "writer"), _written)
        for name in names:
            answer(judge_questions(proposed(store, record, by_id), name, record), _voted)


def _nobody(prompt: str) -> str:
    raise NotImplementedError(prompt)  # everything is answered


def _written(random_: random.Random, ask) -> str:
    """Three sentences with a third of the words changed, in a list as LLMs write it."""
    words, lines = ask.text.split(), []
    for number in range(1, 4):
        changed = random_.sample(range(len(words)), len(words) // 3 if random_.random() < 0.95 else 0)
        others = dict(zip(changed, _sentence(random_, len(changed)), strict=True))
        said = " ".join(others.get(place, word) for place, word in enumerate(words))
        lines.append(f"{number}. {said}")
    return "\n".join(lines)


def _voted(random_: random.Random, ask) -> str:
    words = ("same", "opposite", "unrelated", "unsure")
    return json.dumps({str(number): random_.choice(words) for number in range(1, ask.size + 1)})


def measure(work: str, out: str) -> dict[str, float]:
    """Seconds of processor time and MiB at most, in this process."""
    from llm_labeler import parse

    begun = time.process_time()
    labelled = parse(work, out=out, progress=False)
    return {
        "seconds": time.process_time() - begun,
        "mib": _peak(),
        "pairs": labelled.positives + labelled.negatives,
    }


def read(work: str) -> dict[str, float]:
    """MiB of the texts alone."""
    from llm_labeler.store.workplace import recall

    _, texts = recall(Path(work))
    return {"texts_mib": _peak(), "texts": len(texts)}


def digest_of(place: Path) -> str:
    """Twelve digits that stand for a file, or for all files below a folder and their names."""
    whole = hashlib.sha256()
    for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
        if path.is_file():
            whole.update(f"{path.relative_to(place)}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:12]


def main() -> None:
    """Print the curve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("texts", nargs="*", type=int, default=SIZES)
    parser.add_argument("--judges", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="make the stores here, and use those that are there")
    options = parser.parse_args()
    print(f"{processor()}; Python {platform.python_version()}\n")
    print("| texts | pairs | CPU seconds | ms a text | peak MiB | of it the texts | KB a text | files |")
    print("|---:|---:|---:|---:|---:|---:|---:|---|")
    before: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for count in options.texts:
            work = (options.keep or Path(temporary)) / f"{count}-{options.judges}.work"
            if not work.exists():
                _run(f"make({str(work)!r}, {count}, {options.judges})")
            out = Path(temporary) / str(count)
            found = _run(f"read({str(work)!r})") | _run(f"measure({str(work)!r}, {str(out)!r})")
            _line(found, before, f"{digest_of(out)} {digest_of(work / 'candidates.parquet')}")
            before = found


def _run(what: str) -> dict[str, float]:
    """What a function of this file says in a process of its own."""
    code = f"import json, label_parse; print(json.dumps(label_parse.{what}))"
    here = Path(__file__).parent
    paths = os.pathsep.join(filter(None, (str(here), str(here.parent), os.environ.get("PYTHONPATH"))))
    ran = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    return json.loads(ran.stdout.splitlines()[-1]) or {}


def _line(found: dict[str, float], before: dict[str, float], files: str) -> None:
    texts, grown = found["texts"], ""
    if before:
        grown = f"{(found['mib'] - before['mib']) / (texts - before['texts']) * 1048.576:.2f}"
    cells = (
        *(f"{texts:,}", f"{found['pairs']:,}", f"{found['seconds']:.1f}"),
        *(f"{found['seconds'] / texts * 1e3:.2f}", f"{found['mib']:,.0f}", f"{found['texts_mib']:,.0f}"),
        *(grown, files),
    )
    print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
