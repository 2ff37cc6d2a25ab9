"""`aoe mine`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from aoe_train.commands import options as o
from aoe_train.commands.app import app, examples
from pairkit.app.application import columns_given
from pairkit.app.terminal import next_step, print_json
from pairkit.app.terminal import out as stdout

CANDIDATES, RULES = o.Group("Candidates"), o.Group("Which of them become negatives")


@app.command(
    epilog=examples(
        "aoe mine --data pairs.csv --out mined",
        "aoe mine --data gis --model minilm --by both --relative-margin 0.05 --out mined",
        "aoe mine -d nq.jsonl -m minilm --range 10,50 --sampling random -o mined.jsonl",
        "aoe mine -d questions.tsv -m minilm --corpus passages.txt --negatives 7 -o mined",
    )
)
def mine(
    data: o.Data,
    out: Annotated[Path, o.OUTPUT("--out -o", "A dataset's folder, or a .jsonl or .parquet file.", "PATH")],
    *,
    columns: o.Columns = None,
    labels: o.Labels = None,
    label_range: o.LabelRange = None,
    split: Annotated[str | None, o.INPUT("--split", "Only this split. [default: all]", "NAME")] = None,
    model: Annotated[
        str | None, CANDIDATES("--model -m", "Ranks texts: a folder, a Hub id, minilm or smollm2.", "MODEL")
    ] = None,
    by: Annotated[
        str | None,
        CANDIDATES("--by", "bm25, model or both, in turns. [default: model with --model, else bm25]", "NAME"),
    ] = None,
    corpus: Annotated[
        str | None,
        CANDIDATES("--corpus", "Texts to choose from. [default: those of the same split]", "DATA"),
    ] = None,
    text_column: Annotated[
        str | None, CANDIDATES("--text-column", "The corpus's column. [default: the only one]", "NAME")
    ] = None,
    candidates: Annotated[
        str | None,
        CANDIDATES(
            "--candidates",
            "all texts, or positives: the second ones. [default: all where pairs have labels]",
            "NAME",
        ),
    ] = None,
    negatives: Annotated[
        int | None, RULES("--negatives -n", "At most so many for each row. [default: 5]", "N")
    ] = None,
    rank_range: Annotated[
        str | None,
        RULES("--range", "Candidates to skip, and the last to look at. [default: 0,10N]", "LOW,HIGH"),
    ] = None,
    sampling: Annotated[
        str | None, RULES("--sampling", "top: the nearest that are left, or random. [default: top]", "NAME")
    ] = None,
    margin: Annotated[
        float | None, RULES("--margin", "How far below the positive's score they have to be.", "X")
    ] = None,
    relative_margin: Annotated[
        float | None, RULES("--relative-margin", "The same, as a share of that score, such as 0.05.", "X")
    ] = None,
    max_score: Annotated[
        float | None, RULES("--max-score", "No score above it: a cosine, or BM25's without --model.", "X")
    ] = None,
    min_score: Annotated[float | None, RULES("--min-score", "No score below it.", "X")] = None,
    transitive: Annotated[
        bool,
        RULES("--transitive/--no-transitive", "Positives of positives, and clusters, are no negatives."),
    ] = True,
    threshold: Annotated[
        float | None,
        RULES("--threshold", "Similarity from which texts are near-identical. [default: 0.8]", "X"),
    ] = None,
    scores: Annotated[
        bool, o.OUTPUT("--scores", "Add the scores of the positive and of each negative.")
    ] = False,
    precision: o.EncodingPrecision = None,
    seed: o.Seed = None,
    work: Annotated[
        Path | None,
        o.RUN("--work", "Keeps vectors for runs with other rules. [default: OUT.work, until the end]", "DIR"),
    ] = None,
    fresh: o.Fresh = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Find hard negatives: texts near to an anchor that are no positives of it. Run it again to continue.

    Writes rows of anchor, positive, negative_1 to negative_n, which `aoe train` takes. What is equal or
    near-identical to an anchor or to one of its known positives is never taken, nor is a text of another
    split. The estimate of false negatives is made by the labels: mined as if each row were all that is
    known, so many would be positives.
    """
    import aoe_train

    mined = aoe_train.mine(
        data,
        model=model,
        out=out,
        by=by,
        negatives=negatives,
        rank_range=rank_range,
        sampling=sampling,
        margin=margin,
        relative_margin=relative_margin,
        max_score=max_score,
        min_score=min_score,
        corpus=corpus,
        text_column=text_column,
        candidates=candidates,
        transitive=transitive,
        threshold=threshold,
        scores=scores,
        columns=columns_given(columns),
        labels=labels,
        label_range=label_range,
        split=split,
        precision=precision,
        seed=seed,
        work=work,
        fresh=fresh,
        progress=not quiet,
    )
    if json:
        print_json(mined.to_dict())
        return
    stdout.print(mined.table())
    words = ["aoe", "train", "--data", str(out), "--backbone", model or "minilm", "--out", "model"]
    next_step("train with the negatives", words, quiet=quiet)
