"""A running server."""

from __future__ import annotations

from typing import Self

from aoe_train._evaluate.embedders.embedder import Embedder
from aoe_train._memory import share_memory_among_threads
from aoe_train._serve.app import Application, Search
from aoe_train._serve.batching import Batcher
from aoe_train._serve.door import Door
from aoe_train._serve.limits import Limits
from aoe_train._serve.metrics import Metrics
from aoe_train._serve.slow import protocol_of
from aoe_train._serve.token_arrays import TokenArrays
from pairkit.address import is_loopback
from pairkit.errors import ConfigError
from pairkit.http_door import bound
from pairkit.http_server import HttpServer


class EmbeddingServer:
    """A running server, in a thread of its own. Use it as a context manager, or `close` it.

    Attributes:
        url: Where it is.
        model: What clients call its model.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        name: str,
        search: Search | None,
        host: str,
        port: int,
        key: str | None,
        limits: Limits,
        arrays: TokenArrays | None = None,
    ) -> None:
        """Start it.

        Args:
            embedder: The model.
            name: What clients call it.
            search: Looks into an index; None where there is none.
            host: The address to bind.
            port: 0 for one that is free.
            key: What requests have to bear; None for nothing.
            limits: How much it takes.
            arrays: Reads texts that come as arrays of tokens; None refuses them.

        Raises:
            ConfigError: No such address, or a port that is taken.
        """
        share_memory_among_threads()
        listening = bound(host, port)
        port = listening.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        self.url, self.model = f"http://{shown}:{port}", name
        self._batcher = Batcher(embedder, batch_tokens=limits.batch_tokens, most_texts=limits.queue)
        metrics = Metrics(self._batcher)
        application = Application(embedder, name, search, self._batcher, metrics, limits, arrays)
        hosts = _own_names(host, port) if is_loopback(host) else frozenset[bytes]()
        self._server = HttpServer(
            Door(application.routes(), limits, metrics, hosts=hosts, key=key),
            listening,
            name="serve",
            connections=limits.connections,
            stop_s=limits.stop_s,
            protocol=protocol_of(limits.receive_s, limits.send_s),
        )

    def close(self) -> None:
        """Finish what is worked on, and stop. Closing twice is harmless."""
        self._server.close()
        self._batcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_open(host: str, *, has_key: bool, no_key: bool) -> None:
    """Refuse to let a whole network ask, unless it was said.

    Raises:
        ConfigError: It was not.
    """
    if not is_loopback(host) and not has_key and not no_key:
        raise ConfigError(
            f"host {host}: others could ask this server; name the variable with a key (--key-env), or say"
            " --no-key"
        )


def _own_names(host: str, port: int) -> frozenset[bytes]:
    names = {"localhost", "127.0.0.1", "[::1]", f"[{host}]" if ":" in host else host}
    return frozenset(f"{name}:{port}".encode() for name in names)
