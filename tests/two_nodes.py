"""A Ray cluster of two nodes on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def two_nodes(head: int = 2 << 30, second: int = 4 << 30) -> Iterator[tuple[Any, Any]]:
    """Start a cluster of nodes with one core and this memory; yields it and its second node."""
    pytest.importorskip("ray")  # skips the test
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "memory": head})
    try:
        node = cluster.add_node(num_cpus=1, memory=second)
        cluster.wait_for_nodes()
        yield cluster, node
    finally:
        cluster.shutdown()
