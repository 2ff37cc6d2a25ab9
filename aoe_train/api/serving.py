"""A model behind HTTP, as `aoe serve` runs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aoe_train.evaluation.embedders.embedder import Embedder
    from aoe_train.model.encoder import Encoder
    from aoe_train.searching.serve.server import EmbeddingServer, Search
    from pairkit.app.progress import Listener


def serve(
    model: str | Path | Encoder,
    *,
    index: str | Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    name: str | None = None,
    key_env: str | None = None,
    no_key: bool = False,
    precision: str | None = None,
    layers: int | None = None,
    batch_tokens: int | None = None,
    max_texts: int | None = None,
    max_queue: int | None = None,
    max_body: int | None = None,
    progress: bool | Listener = True,
) -> EmbeddingServer:
    """Serve a model in a thread: OpenAI's `/v1/embeddings`, and `/search` in an index.

    Requests that come while the model runs are encoded together next.

    Args:
        model: What `index` takes: a folder, a Hub id, `minilm`, `smollm2`, a static model, or an `Encoder`.
        index: A folder that `index` made with this model, for `/search`.
        host: The address to listen on.
        port: 0 for one that is free.
        name: What clients call the model; by default its own name.
        key_env: The environment variable with the key that requests have to bear.
        no_key: Listen on another host than this machine's own without a key.
        precision: fp32, bf16, fp16, int8 (on a CPU) or auto.
        layers: Use so many of the model's layers, the first ones.
        batch_tokens: Tokens that run at once; fewer make small requests wait less. By default 8192.
        max_texts: Of a request. By default 2048.
        max_queue: Texts that wait or run; a request beyond them gets 429. By default 16384.
        max_body: Of a request's body, in MiB. By default 8.
        progress: Whether a precision that is slow here is told on stderr.

    Raises:
        ConfigError: No such model, index, address or key, a number out of its range, or a host that others
            can reach without `key_env` or `no_key`.
        DataError: A damaged model or index.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import aoe_train, requests
        >>> with aoe_train.serve("model", port=0, progress=False) as server:
        ...     asked = {"input": ["A plane is taking off."], "model": server.model}
        ...     reply = requests.post(f"{server.url}/v1/embeddings", json=asked).json()
        >>> len(reply["data"])
        1
    """
    from pairkit.app.extras import needed_for

    with needed_for("`aoe serve`", "serve"):
        from aoe_train.searching.serve.server import EmbeddingServer, check_open
    import os

    from aoe_train.api.notes import notes
    from aoe_train.evaluation.embedders.open import open_model
    from aoe_train.searching.serve.requests import Limits
    from aoe_train.settings.training import named_precision
    from pairkit.app.settings import argument, load_settings
    from pairkit.openai_api.credentials import find_key

    given = {"batch_tokens": batch_tokens, "texts": max_texts, "queue": max_queue, "body_mib": max_body}
    limits = load_settings(Limits, flags=given)
    check_open(host, has_key=key_env is not None, no_key=no_key)
    key = None if key_env is None else find_key("aoe serve", key_env, os.environ, f"set {key_env}").secret
    named = str(model) if isinstance(model, Path) else model
    embedder = open_model(named, precision=named_precision(precision), layers=layers, say=notes(progress))
    return EmbeddingServer(
        embedder,
        name=name or embedder.name,
        search=None if index is None else _searching(argument("index", index, Path), embedder),
        host=host,
        port=port,
        key=key,
        limits=limits,
    )


def _searching(folder: Path, embedder: Embedder) -> Search:
    from aoe_train.searching.index import SearchIndex

    index = SearchIndex(folder, embedder)
    return lambda sought: index.search(
        sought.text,
        top=sought.top,
        where=sought.where,
        before=sought.before,
        by=sought.by,
        weight=sought.weight,
    )
