"""The function behind `aoe serve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aoe_train.api.parameters import MODEL, Layers, Model, Precision, notes
from pairkit.base.cli.flag import RUN, Flag

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.searching.serve.embedding_server import EmbeddingServer
    from pairkit.base.cli.progress import Listener


def serve(
    model: Annotated[str | Path | Encoder | None, Model] = None,
    *,
    index: Annotated[str | Path | None, Flag(metavar="INDEX", panel=MODEL, main=True)] = None,
    against: Annotated[str | Path | None, Flag(metavar="INDEX", panel=MODEL, main=True)] = None,
    host: Annotated[str, Flag(metavar="ADDRESS", panel="Server", main=True)] = "127.0.0.1",
    port: Annotated[int, Flag("-p", metavar="N", panel="Server", main=True)] = 8000,
    name: Annotated[str | None, Flag(metavar="NAME", panel=MODEL)] = None,
    key_env: Annotated[str | None, Flag(metavar="NAME", panel="Server", main=True)] = None,
    no_key: Annotated[bool, Flag(panel="Server")] = False,
    precision: Precision = None,
    layers: Layers = None,
    batch_tokens: Annotated[int | None, Flag(metavar="N", panel=RUN, setting="batch_tokens")] = None,
    max_texts: Annotated[int | None, Flag(metavar="N", panel="Limits", setting="texts")] = None,
    max_queue: Annotated[int | None, Flag(metavar="N", panel="Limits", setting="queue")] = None,
    max_body: Annotated[int | None, Flag(metavar="MIB", panel="Limits", setting="body_mib")] = None,
    progress: bool | Listener = True,
) -> EmbeddingServer:
    """Serve a model as OpenAI's /v1/embeddings, and an index as a search page at / and as /search.

    Requests that arrive while the model runs form the next batch. On SIGTERM or Ctrl-C, requests in progress
    are finished.

    Args:
        model: A folder, a Hub id, minilm or smollm2. Static models work, too; in Python also an `Encoder`.
            Default: the one that the index records.
        index: Index to search, built by `aoe index` with this model.
        against: Another index, such as of the same texts before training. The page shows its hits beside.
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        name: Model name for clients. Default: the model's own name.
        key_env: Environment variable with the key that clients must send.
        no_key: Allow other hosts than 127.0.0.1 without a key.
        precision: Precision of the model: fp32, bf16, fp16, int8 (CPU only) or auto. auto is bf16 on a GPU
            that supports it, else fp32. Default: auto.
        layers: Use only the first N layers of the model. Default: all.
        batch_tokens: Maximum number of tokens in a batch. Smaller batches need less memory and answer short
            requests sooner. Default: 8192.
        max_texts: Maximum number of texts of a request. Default: 2048.
        max_queue: Maximum number of texts in progress or waiting; further requests get 429. Default: 16384.
        max_body: Maximum size of a request, in MiB. Default: 8.
        progress: Whether to warn on stderr if the precision is slow on this device.

    Raises:
        ConfigError: No such model, index, address or key, a number out of range, or a public host without
            `key_env` or `no_key`.
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
    from pairkit.base.extras import needed_for

    with needed_for("`aoe serve`", "serve"):
        from aoe_train.searching.serve.embedding_server import EmbeddingServer, check_open
    import os
    from functools import partial

    from aoe_train.evaluation.embedders.open import open_model
    from aoe_train.searching.folder import read_manifest
    from aoe_train.searching.index import SearchIndex
    from aoe_train.searching.serve.requests import Limits
    from aoe_train.settings.train_settings import named_precision
    from pairkit.base.errors import ConfigError
    from pairkit.base.openai_api.credentials import find_key
    from pairkit.base.settings import argument, load_settings

    given = {"batch_tokens": batch_tokens, "texts": max_texts, "queue": max_queue, "body_mib": max_body}
    limits = load_settings(Limits, flags=given)
    if model is None and index is None:
        raise ConfigError("nothing to serve; give --model, or --index with an index of `aoe index`")
    if against is not None and index is None:
        raise ConfigError("--against: needs --index, the index to compare with; give it, too")
    check_open(host, has_key=key_env is not None, no_key=no_key)
    key = None if key_env is None else find_key("aoe serve", key_env, os.environ, f"set {key_env}").secret
    folders = [argument("index", each, Path) for each in (index, against) if each is not None]
    recorded = [read_manifest(folder).model for folder in folders]
    sources = recorded if model is None else [model, *recorded[1:]]
    opened = partial(open_model, precision=named_precision(precision), layers=layers, say=notes(progress))
    embedders = [opened(str(source) if isinstance(source, Path) else source) for source in sources]
    return EmbeddingServer(
        embedders,
        name=name or embedders[0].name,
        indexes=[SearchIndex(*each) for each in zip(folders, embedders, strict=False)],
        host=host,
        port=port,
        key=key,
        limits=limits,
    )
