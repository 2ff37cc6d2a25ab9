"""The function behind `aoe serve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aoe_train.api.parameters import MODEL, notes, options
from pairkit.base.cli.options import RUN, Option

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.searching.serve.embedding_server import EmbeddingServer
    from pairkit.base.cli.progress import Listener

_SERVER, _LIMITS = "Server", "Limits"


@options(
    "aoe_train.searching.serve.requests:Limits",
    index=Option(metavar="INDEX", panel=MODEL, main=True),
    against=Option(metavar="INDEX", panel=MODEL, main=True),
    host=Option(metavar="ADDRESS", panel=_SERVER, main=True),
    port=Option(short="-p", panel=_SERVER, main=True),
    name=Option(metavar="NAME", panel=MODEL),
    key_env=Option(metavar="NAME", panel=_SERVER, main=True),
    no_key=Option(panel=_SERVER),
    batch_tokens=Option(setting="batch_tokens", panel=RUN),
    max_texts=Option(setting="texts", panel=_LIMITS),
    max_queue=Option(setting="queue", panel=_LIMITS),
    max_body=Option(setting="body_mib", metavar="MIB", panel=_LIMITS),
)
def serve(
    model: str | Path | Encoder | None = None,
    *,
    index: str | Path | None = None,
    against: str | Path | None = None,
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
    """Serve a model as OpenAI's /v1/embeddings, and an index as a search page at / and as /search.

    Requests that arrive while the model runs form the next batch. On SIGTERM or Ctrl-C, requests in progress
    are finished.

    Args:
        model: A folder, a Hub id, minilm or smollm2; also a static model. In Python also an `Encoder`.
            Default: the model that the index records.
        index: Index to search, built by `aoe index` with this model.
        against: Another index, such as of the same texts before training. The page shows its hits beside.
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        name: Model name for clients. Default: the model's own name.
        key_env: Environment variable with the key that clients must send.
        no_key: Allow other hosts than 127.0.0.1 without a key.

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

    from aoe_train.evaluation.embedders.cached import open_model
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
