"""What a server tells Prometheus of itself."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from aoe_train._serve.batching import Batcher

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


class Metrics:
    """A server's own, so that several in one process stay apart."""

    def __init__(self, batcher: Batcher) -> None:
        """Begin to count.

        Args:
            batcher: Whose line is told as it is when asked.
        """
        self._registry = registry = CollectorRegistry()
        self.requests = Counter("aoe_requests", "Requests answered.", ["route", "status"], registry=registry)
        self.seconds = Histogram(
            "aoe_request_seconds",
            "From a request's headers to the end of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.texts = Counter("aoe_texts", "Texts encoded.", registry=registry)
        self.tokens = Counter("aoe_tokens", "Tokens of texts encoded.", registry=registry)
        self.cut = Counter("aoe_texts_cut", "Texts cut to the model's greatest length.", registry=registry)
        batches = Histogram("aoe_batch_texts", "Texts that ran at once.", buckets=_TEXTS, registry=registry)
        batcher.ran = batches.observe
        queue = Gauge("aoe_queue_requests", "Requests that wait or run.", registry=registry)
        queue.set_function(lambda: batcher.requests)
        waiting = Gauge("aoe_queue_texts", "Texts that wait or run.", registry=registry)
        waiting.set_function(lambda: batcher.texts)

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self._registry)
