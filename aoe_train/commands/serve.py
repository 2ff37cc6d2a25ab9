"""`aoe serve`."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated

from aoe_train.commands import options as o
from aoe_train.commands.app import app, examples
from pairkit.app.terminal import out as stdout
from pairkit.app.terminal import print_json, say

SERVER, LIMITS = o.Group("Server"), o.Group("Limits")


@app.command(
    epilog=examples(
        "aoe serve --model minilm",
        "aoe serve --model M --index index --port 9000",
        "aoe serve --model M --host 0.0.0.0 --key-env SERVE_KEY",
    )
)
def serve(
    *,
    model: o.Model,
    index: Annotated[
        Path | None, o.MODEL("--index", "What `aoe index` made with this model, for /search.", "INDEX")
    ] = None,
    name: Annotated[
        str | None, o.MODEL("--name", "What clients call the model. [default: its own name]", "NAME")
    ] = None,
    layers: o.Layers = None,
    precision: o.EncodingPrecision = None,
    host: Annotated[str, SERVER("--host", "Address to listen on.", "ADDRESS")] = "127.0.0.1",
    port: Annotated[int, SERVER("--port -p", "Port to listen on; 0 takes a free one.", "N")] = 8000,
    key_env: Annotated[
        str | None, SERVER("--key-env", "Environment variable with the only key it accepts.", "NAME")
    ] = None,
    no_key: Annotated[
        bool, SERVER("--no-key", "Listen on another host than 127.0.0.1 without a key.")
    ] = False,
    batch_tokens: Annotated[
        int | None, o.RUN("--batch-tokens", "Tokens at a time; fewer need less memory.", "N", min=1)
    ] = None,
    max_texts: Annotated[
        int | None, LIMITS("--max-texts", "Texts of a request. [default: 2048]", "N", min=1)
    ] = None,
    max_queue: Annotated[
        int | None,
        LIMITS("--max-queue", "Texts that wait; what comes beyond gets 429. [default: 16384]", "N", min=1),
    ] = None,
    max_body: Annotated[
        int | None, LIMITS("--max-body", "Of a request, in MiB. [default: 8]", "MIB", min=1)
    ] = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Serve a model as OpenAI's /v1/embeddings, with /search and /health.

    Requests that come while the model runs are encoded together next. On SIGTERM or Ctrl-C it finishes what
    it works on.
    """
    import aoe_train

    ended = threading.Event()
    running = aoe_train.serve(
        model,
        index=index,
        host=host,
        port=port,
        name=name,
        key_env=key_env,
        no_key=no_key,
        precision=precision,
        layers=layers,
        batch_tokens=batch_tokens,
        max_texts=max_texts,
        max_queue=max_queue,
        max_body=max_body,
        progress=not quiet,
    )
    for kind in (signal.SIGTERM, signal.SIGINT):
        signal.signal(kind, lambda *_: ended.set())
    with running as server:
        if json:
            print_json({"url": server.url, "model": server.model})
        else:
            stdout.print(server.url, markup=False)
            say(f"serving {server.model} at {server.url}/v1 (Ctrl-C ends it)", quiet=quiet)
        ended.wait()
        say("finishing what is being worked on", quiet=quiet)
