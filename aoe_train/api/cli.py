"""The `aoe` command line. Heavy imports stay inside the functions."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Any

from aoe_train.api.encoding import encode
from aoe_train.api.evaluation import evaluate
from aoe_train.api.exporting import distill, export
from aoe_train.api.mining import mine, sample_pairs
from aoe_train.api.searching import duplicates, index, search, search_every, serve
from aoe_train.api.training import plan, train
from pairkit.base.cli.commands import add_command, application
from pairkit.base.cli.options import INPUT, OUTPUT, RUN, Option
from pairkit.base.cli.terminal import err as stderr
from pairkit.base.cli.terminal import out as stdout
from pairkit.base.cli.terminal import print_json, say
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line
from pairkit.dataset.shared_options import SHARED

app = application(
    "aoe",
    "Train and evaluate text-embedding models (AnglE, AoE); encode, search, serve and export with them.",
)


@SHARED(dry_run=Option("Estimate memory and time without training.", panel=RUN, main=True))
def _train(train: Any, given: Any, *, dry_run: bool = False) -> Any:
    if dry_run:
        return plan(**given)
    trained = train(**given)
    return trained if trained.is_main else None


@SHARED(
    subsets=Option("Also show the parts of each task.", panel=OUTPUT),
    markdown=Option("Write the tables as Markdown.", metavar="FILE", panel=OUTPUT, main=True),
    out=Option("Write the result as JSON.", short="-o", metavar="FILE", panel=OUTPUT),
)
def _evaluate(
    evaluate: Any,
    given: Any,
    *,
    subsets: bool = False,
    markdown: Path | None = None,
    out: Path | None = None,
    json: bool = False,
) -> None:
    from pairkit.base.system.files import write_json, write_text

    result = evaluate(**given)
    if json:
        print_json(result.to_dict())
    else:
        for table in result.tables(subsets=subsets):
            stdout.print(table)
        for verdict in result.verdicts():
            stdout.print(verdict, markup=False)
    if out is not None:
        write_json(Path(out), result.to_dict())
    if markdown is not None:
        write_text(Path(markdown), result.to_markdown())


@SHARED(
    every=Option("Search for each text of the index itself and write the hits to --out.", panel=INPUT),
    out=Option(
        "Output of --every: .csv, .tsv, .jsonl or .parquet.", short="-o", metavar="FILE", panel=OUTPUT
    ),
)
def _search(
    search: Any,
    given: Any,
    *,
    every: bool = False,
    out: str | None = None,
    json: bool = False,
    quiet: bool = False,
) -> Any:
    where = given["where"] or []
    before = given["before"] or []
    text = given["text"]
    if every != (text is None) or every != (out is not None):
        raise ConfigError("expected a TEXT to search for, or both --every and --out")
    if not every:
        given |= {"where": _conditions("--where", where), "before": _conditions("--before", before)}
        query = sys.stdin.buffer.read().decode("utf-8", "replace") if text == "-" else text
        return search(**given | {"text": query})
    if where or len(before) > 1 or any("=" in name for name in before):
        raise ConfigError("--every: allows one --before COLUMN and no --where")
    return _search_every(given, Path(out or ""), json=json, quiet=quiet)


def _search_every(given: Any, out: Path, *, json: bool, quiet: bool) -> None:
    from pairkit.dataset.table_files import check_new

    column = given["before"][0] if given["before"] else None
    check_new(out)
    options = {name: given[name] for name in ("folder", "top", "by", "weight", "model")}
    result = search_every(**options, before=column, progress=not quiet)
    result.write(out)
    if json:
        print_json(result.to_dict())
    left_out = f"; {result.undated:,} rows without a value in {column} left out" if result.undated else ""
    say(f"{result.hits.height:,} hits of {result.texts:,} texts{left_out}", quiet=quiet or json)


def _conditions(flag: str, conditions: list[str]) -> dict[str, str]:
    values = {}
    for condition in conditions:
        name, mark, value = condition.partition("=")
        if not mark or not name:
            raise ConfigError(f"{flag} {one_line(condition)}: expected COLUMN=VALUE, such as state=open")
        values[name] = value
    return values


@SHARED(
    out=Option(
        "Write all pairs with both rows and, within one index, the number of their group: .csv, .tsv, .jsonl"
        " or .parquet.",
        short="-o",
        metavar="FILE",
        panel=OUTPUT,
        main=True,
    )
)
def _duplicates(duplicates: Any, given: Any, *, out: Path | None = None) -> Any:
    from pairkit.dataset.table_files import check_new

    if out is not None:
        check_new(Path(out))
    result = duplicates(**given)
    if out is not None:
        result.write(out)
    return result


def _serve(serve: Any, given: Any, *, json: bool = False, quiet: bool = False) -> None:
    stop = threading.Event()
    running = serve(**given)
    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, lambda *_: stop.set())
    with running as server:
        if json:
            print_json({"url": server.url, "model": server.model})
        else:
            stdout.print(server.url, markup=False)
            say(f"serving {server.model} at {server.url}/v1 (Ctrl-C stops it)", quiet=quiet)
            # A key isn't written to logs.
            page = server.page_url if stderr.is_terminal else f"{server.url}/#KEY"
            if given["index"]:
                say(f"search page: {page if given['key_env'] else server.url}", quiet=quiet)
        stop.wait()
        say("finishing the requests in progress", quiet=quiet)


add_command(
    app,
    train,
    "aoe train --data gis --out model",
    "aoe train -d stsb-train.tsv --dev-data stsb-dev.tsv -b minilm -o model --preset aoe",
    "aoe train -d nli -b meta-llama/Llama-3.2-1B -o model",
    "aoe train -d stsb-train.tsv -b minilm -o model --dims 384,256,128,64,32",
    "aoe train -d pairs/triplet -b minilm -o model --preset domain --accept-on judged",
    "aoe train -d questions.csv -b minilm -o model --guide minilm",
    "aoe train -d sentences.txt -b google/bert_uncased_L-2_H-128_A-2 -o model --teacher minilm",
    "aoe train -d stsb-train.tsv -b minilm -o model --dims 384,128 --layers all",
    "aoe train -d 'shards/*.parquet' -b minilm -o model",
    "aoe train -d nli=nli.tsv -d stsb=stsb-train.tsv --dev-data stsb=stsb-dev.tsv -b minilm -o model"
    " --set datasets.stsb.weight=2",
    "torchrun --nproc-per-node 2 -m aoe_train train -d gis -b minilm -o model",
    run=_train,
)
add_command(
    app,
    evaluate,
    "aoe evaluate --model minilm --data-dir data",
    "aoe evaluate --model M --data-dir data --markdown M.md",
    "aoe evaluate --model M --against minilm --data-dir data",
    "aoe evaluate -m M -m M2 -m minilm --data-dir data",
    "aoe evaluate --model M --data gis --json",
    "aoe evaluate --model M --against minilm --data judged",
    "aoe evaluate --data results.review",
    "aoe evaluate -m M -m minilm --suite tracker --data pairs.tsv --reports reports.jsonl",
    "aoe evaluate --model M --data-dir data --dim 384,128,32 --quantize float32,int8,binary",
    "aoe evaluate --model M --data-dir data --layers 6,4,2 --dim 384,128,32",
    "aoe evaluate -m text-embedding-3-small --endpoint https://api.openai.com/v1 --data-dir data",
    run=_evaluate,
)
add_command(
    app,
    encode,
    "aoe encode texts.txt --model M --out vectors.npy",
    "aoe encode questions.txt --model M --out questions.npy --prompt-name query",
    "aoe encode issues.parquet -m M -o issues-vectors.parquet --columns text=body",
    "aoe encode texts.txt -m M -o small.npy --dim 128 --quantize int8",
    "aoe encode texts.txt -m M -o fast.npy --layers 4",
    "aoe encode questions.txt -m M -o q.npy --dim 128 --quantize int8 --calibration small.npy",
    "aoe encode texts.txt -m M -o vectors.npy --workers 4",
    "aoe encode texts.txt -m M -o vectors.npy --device cuda:0,cuda:1",
    "aoe encode texts.txt -m M -o vectors.npy --engine ray --address 10.0.0.1:6379",
    "zcat texts.gz | aoe encode - --model M --out vectors.npy",
)
add_command(
    app,
    index,
    "aoe index texts.txt --model minilm --out index",
    "aoe index issues.parquet -m M -o index",
    "aoe index faq.csv -m M -o index --columns question=ask,answer=reply",
    "aoe index many.parquet -m static -o index --kind hnsw --quantize int8",
)
add_command(
    app,
    search,
    'aoe search index "window is blank after resizing"',
    'aoe search index "E0277 in a loop" --top 5 --where state=open',
    'aoe search index "panics on save" --by words --json',
    "aoe search index - --before created_at=2015-05-15",
    "aoe search index --every --before created_at --top 20 --out hits.parquet",
    run=_search,
)
add_command(
    app,
    duplicates,
    "aoe duplicates index",
    "aoe duplicates index --min-cosine 0.8 --out pairs.parquet",
    "aoe duplicates index --against new-index --json",
    run=_duplicates,
)
add_command(
    app,
    export,
    "aoe export --model M --out M-small --dtype bf16",
    "aoe export --model M --out M-onnx --format onnx",
    "aoe export --model M --out M-int8 --format onnx-int8 --data pairs.tsv",
    "aoe export --model M --out M-4 --layers 4",
    "aoe export --model M --out M-half --interpolate 0.5",
)
add_command(
    app,
    serve,
    "aoe serve --model minilm",
    "aoe serve --index index --against index-before --port 9000",
    "aoe serve --model M --host 0.0.0.0 --key-env SERVE_KEY",
    run=_serve,
)
add_command(
    app,
    mine,
    "aoe mine --data pairs.csv --out mined",
    "aoe mine --data gis --model minilm --by both --relative-margin 0.05 --out mined",
    "aoe mine -d nq.jsonl -m minilm --rank-range 10,50 --sampling random -o mined",
    "aoe mine -d questions.tsv -m minilm --corpus passages.txt --num-negatives 7 -o mined",
)
add_command(
    app,
    sample_pairs,
    "aoe sample-pairs --data sentences.txt --model model --model minilm --out to-judge",
    "aoe sample-pairs --data sentences.txt --queries queries.txt -m model -m minilm --out results",
    "aoe sample-pairs -d sentences.txt --queries q.txt --purpose group --purpose search --out results",
)
add_command(
    app,
    distill,
    "aoe distill sentences.txt --model minilm --out static",
    "aoe distill corpus.parquet -m M --dim 128 --out static-128",
)
