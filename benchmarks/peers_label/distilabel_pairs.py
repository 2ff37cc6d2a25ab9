"""distilabel's own way to pairs: `GenerateSentencePair` in a pipeline. Runs in an environment of its own.

python distilabel_pairs.py SENTENCES BASE_URL CONCURRENCY    # ends with one line of JSON
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path


def main() -> None:
    """Make a positive and a negative for every sentence; print the number of complete rows."""
    from distilabel.models import OpenAILLM
    from distilabel.pipeline import Pipeline
    from distilabel.steps import LoadDataFromDicts
    from distilabel.steps.tasks import GenerateSentencePair

    path, base_url, concurrency = sys.argv[1:]
    sentences = Path(path).read_text(encoding="utf-8").splitlines()
    llm = OpenAILLM(
        model="emulated",
        base_url=base_url,
        api_key="none",
        generation_kwargs={"max_new_tokens": 512},
    )
    with Pipeline(name="pairs") as pipeline:
        load = LoadDataFromDicts(
            data=[{"anchor": sentence} for sentence in sentences],
            batch_size=int(concurrency),
        )
        # The calls of a batch run concurrently, so its size is the concurrency.
        pair = GenerateSentencePair(
            triplet=True,
            action="paraphrase",
            llm=llm,
            input_batch_size=int(concurrency),
        )
        load >> pair
    start = time.perf_counter()
    rows = pipeline.run(use_cache=False)["default"]["train"]
    wall_s = time.perf_counter() - start
    whole = [row for row in rows if row["positive"] and row["negative"]]
    used = [
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    answer = {
        "sentences": len(sentences),
        "rows": len(rows),
        "whole": len(whole),
        "wall_s": wall_s,
        "cpu_s": sum(u.ru_utime + u.ru_stime for u in used),
    }
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
