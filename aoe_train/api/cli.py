"""The `aoe` command line. Heavy imports stay inside the functions."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train.api.encoding import encode
from aoe_train.api.evaluation import evaluate
from aoe_train.api.exporting import distill, export, serve
from aoe_train.api.mining import mine, sample_pairs
from aoe_train.api.searching import duplicates, index, search, search_every
from aoe_train.api.training import plan, train
from pairkit.base.cli.commands import add_command, application
from pairkit.base.cli.options import INPUT, OUTPUT, RUN, Option
from pairkit.base.cli.terminal import err as stderr
from pairkit.base.cli.terminal import out as stdout
from pairkit.base.cli.terminal import print_json, say
from pairkit.base.errors import ConfigError
from pairkit.dataset.shared_options import SHARED

if TYPE_CHECKING:
    from aoe_train.api.training import Trained
    from aoe_train.searching.index import SearchHits
    from aoe_train.searching.similar_texts import NearDuplicates
    from aoe_train.training.train_plan import Plan

app = application(
    "aoe",
    "Train and evaluate text-embedding models (AnglE, AoE); encode, search, serve and export with them.",
)

_REQUESTS = "data/sample_requests.csv --columns text=text"
_GROUPS = "data/sample_requests.csv --columns text=text,group=intent"
_SENTENCES = "data/sample_sentences.txt"
_TICKETS = "data/sample_tickets.csv --columns anchor=title,positive=body"


@SHARED(
    dry_run=Option("Estimate memory and time without training.", panel=RUN, main=True)
)
def _train(
    arguments: dict[str, Any], *, dry_run: bool = False
) -> Plan | Trained | None:
    if dry_run:
        return plan(**arguments)
    trained = train(**arguments)
    return trained if trained.is_main else None


@SHARED(
    subsets=Option("Also show the parts of each task.", panel=OUTPUT),
    markdown=Option(
        "Write the tables as Markdown.", metavar="FILE", panel=OUTPUT, main=True
    ),
    html=Option(
        "Write the tables and plots as an HTML page.",
        metavar="FILE",
        panel=OUTPUT,
        main=True,
    ),
    out=Option("Write the result as JSON.", short="-o", metavar="FILE", panel=OUTPUT),
)
def _evaluate(
    arguments: dict[str, Any],
    *,
    subsets: bool = False,
    markdown: str | None = None,
    html: str | None = None,
    out: str | None = None,
    json: bool = False,
) -> None:
    from pairkit.base.system.files import write_json, write_text

    result = evaluate(**arguments)
    if json:
        print_json(result.to_dict())
    else:
        for table in result.tables(subsets=subsets):
            stdout.print(table)
        for verdict in result.verdicts():
            stdout.print(verdict)
    if out is not None:
        write_json(Path(out), result.to_dict())
    if markdown is not None:
        write_text(Path(markdown), result.to_markdown())
    if html is not None:
        write_text(Path(html), result.to_html())


@SHARED(
    every=Option(
        "Search for each text of the index itself and write the hits to --out.",
        panel=INPUT,
    ),
    out=Option(
        "Output of --every: .csv, .tsv, .jsonl or .parquet.",
        short="-o",
        metavar="FILE",
        panel=OUTPUT,
    ),
)
def _search(
    arguments: dict[str, Any],
    *,
    every: bool = False,
    out: str | None = None,
    json: bool = False,
    quiet: bool = False,
) -> SearchHits | None:
    text = arguments.pop("text")
    if every != (text is None) or every != (out is not None):
        raise ConfigError("expected a TEXT to search for, or both --every and --out")
    if out is not None:
        _search_every(arguments, Path(out), json=json, quiet=quiet)
        return None
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    return search(text=text, **arguments)


def _search_every(
    arguments: dict[str, Any], out: Path, *, json: bool, quiet: bool
) -> None:
    from pairkit.dataset.table_files import check_new

    check_new(out)
    where = arguments.pop("where")
    column, *others = arguments.pop("before") or [None]
    if where or others or "=" in (column or ""):
        raise ConfigError("--every: allows one --before COLUMN and no --where")
    result = search_every(**arguments, before=column, progress=not quiet)
    result.write(out)
    if json:
        print_json(result.to_dict())
    summary = f"{result.hits.height:,} hits of {result.texts:,} texts"
    if result.undated:
        summary += f"; {result.undated:,} rows without a value in {column} left out"
    say(summary, quiet=quiet or json)


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
def _duplicates(arguments: dict[str, Any], *, out: str | None = None) -> NearDuplicates:
    from pairkit.dataset.table_files import check_new

    if out is not None:
        check_new(Path(out))
    result = duplicates(**arguments)
    if out is not None:
        result.write(out)
    return result


def _serve(
    arguments: dict[str, Any], *, json: bool = False, quiet: bool = False
) -> None:
    stop = threading.Event()
    running = serve(**arguments)
    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, lambda *_: stop.set())
    with running as server:
        if json:
            print_json({"url": server.url, "model": server.model})
        else:
            stdout.print(server.url)
            say(
                f"serving {server.model} at {server.url}/v1 (Ctrl-C stops it)",
                quiet=quiet,
            )
            if arguments["index"]:
                # The key isn't shown if stderr may be a log.
                page = server.page_url
                if arguments["key_env"] and not stderr.is_terminal:
                    page = f"{server.url}/#KEY"
                say(f"search page: {page}", quiet=quiet)
        stop.wait()
        say("finishing the requests in progress", quiet=quiet)


add_command(
    app,
    train,
    f"aoe train -d {_REQUESTS} -b minilm -o model --purpose group",
    f"aoe train -d {_TICKETS} -b minilm -o titles",
    "aoe train -d demo -b minilm -o gis-model --dev-data demo --preset aoe",
    f"aoe train -d {_TICKETS} -b minilm -o small --dims 384,128 --layers all",
    "aoe train -d triplets/triplet -b minilm -o domain --preset domain --accept-on demo",
    f"aoe train -d {_TICKETS} -b minilm -o guided --guide minilm",
    f"aoe train -d {_REQUESTS} -b google/bert_uncased_L-2_H-128_A-2 -o student --teacher minilm",
    "aoe train -d demo -b meta-llama/Llama-3.2-1B -o llama",
    "aoe train -d demo=demo -d label=pairs --dev-data demo=demo -b minilm -o mixed"
    " --set datasets.demo.weight=2",
    "torchrun --nproc-per-node 2 -m aoe_train train -d demo -b minilm -o gis-model",
    run=_train,
)
add_command(
    app,
    evaluate,
    f"aoe evaluate -m minilm -d {_GROUPS}",
    f"aoe evaluate -m model -d {_GROUPS} --against minilm --html report.html",
    "aoe evaluate -m gis-model -m minilm --data demo --json",
    "aoe evaluate --model gis-model --against minilm --data judged",
    "aoe evaluate --data results.review",
    "aoe evaluate -m gis-model -m minilm --suite tracker --data demo --reports issues.parquet",
    "aoe evaluate --model small --data demo --dim 384,128,32 --quantize float32,int8,binary",
    "aoe evaluate --model small --data demo --layers 6,4,2 --dim 384,128",
    "aoe evaluate --model minilm --data-dir data-dir --markdown sts.md",
    "aoe evaluate -m text-embedding-3-small --endpoint https://api.openai.com/v1 --data demo",
    run=_evaluate,
)
add_command(
    app,
    encode,
    f"aoe encode {_SENTENCES} -m minilm -o vectors.npy",
    "aoe encode data/sample_tickets.csv -m minilm -o tickets.parquet --columns text=body",
    f"aoe encode {_SENTENCES} -m intfloat/multilingual-e5-small -o queries.npy --prompt-name query",
    f"aoe encode {_SENTENCES} -m minilm -o small.npy --dim 128 --quantize int8",
    f"aoe encode {_REQUESTS} -m minilm -o requests.npy --dim 128 --quantize int8 --calibration small.npy",
    f"aoe encode {_SENTENCES} -m minilm -o fast.npy --layers 4",
    f"aoe encode {_SENTENCES} -m minilm -o vectors.npy --workers 4",
    f"aoe encode {_SENTENCES} -m minilm -o vectors.npy --device cuda:0,cuda:1",
    f"aoe encode {_SENTENCES} -m minilm -o vectors.npy --engine ray --address 10.0.0.1:6379",
    f"cat {_SENTENCES} | aoe encode - -m minilm -o piped.npy",
)
add_command(
    app,
    index,
    "aoe index data/sample_tickets.csv --model minilm --out index",
    f"aoe index {_REQUESTS} -m model -o requests-index --purpose group",
    "aoe index data/sample_faq.csv -m intfloat/multilingual-e5-small -o faq-index"
    " --columns question=Frage,answer=Antwort",
    "aoe index issues.parquet -m minilm -o issues",
    "aoe index issues.parquet -m static -o large --kind hnsw --quantize int8",
)
add_command(
    app,
    search,
    'aoe search index "the app crashes on the map"',
    'aoe search index "receipt twice" --top 5 --where component=checkout',
    'aoe search index "T-0001" --by words --json',
    "echo receipt | aoe search index - --before created_at=2025-05-15",
    "aoe search index --every --before created_at --top 20 --out hits.parquet",
    run=_search,
)
add_command(
    app,
    duplicates,
    "aoe duplicates index",
    "aoe duplicates index --min-cosine 0.8 --out pairs.parquet",
    "aoe duplicates index --against issues --json",
    run=_duplicates,
)
add_command(
    app,
    export,
    "aoe export --model model --out model-small --dtype bf16",
    "aoe export --model model --out model-onnx --format onnx",
    "aoe export --model model --out model-int8 --format onnx-int8 --data demo",
    "aoe export --model small --out small-4 --layers 4",
    "aoe export --model model --out model-half --interpolate 0.5",
)
add_command(
    app,
    serve,
    "aoe serve --model minilm",
    "aoe serve --index index --port 9000",
    "aoe serve --model model --host 0.0.0.0 --key-env SERVE_KEY",
    run=_serve,
)
add_command(
    app,
    mine,
    f"aoe mine -d {_TICKETS} -m minilm -o mined",
    "aoe mine -d demo -m minilm --by both --relative-margin 0.05 -o mined-gis",
    f"aoe mine -d {_TICKETS} -m minilm --rank-range 10,50 --sampling random -o mined-random",
    f"aoe mine -d {_TICKETS} -m minilm --corpus {_SENTENCES} --num-negatives 7 -o mined-many",
)
add_command(
    app,
    sample_pairs,
    f"aoe sample-pairs -d {_REQUESTS} -m model -m minilm --purpose group -o to-judge",
    f"aoe sample-pairs -d {_REQUESTS} --queries {_SENTENCES} -m model -m minilm -o results",
    f"aoe sample-pairs -d {_SENTENCES} --queries {_SENTENCES} -m minilm --purpose group --purpose search"
    " -o ranked",
)
add_command(
    app,
    distill,
    "aoe distill demo --model minilm --out static",
    "aoe distill demo -m model --dim 128 --out static-128",
)
