"""A Ray cluster of two nodes on this machine."""

from contextlib import contextmanager

import pytest


@contextmanager
def two_nodes(head=2 << 30, second=4 << 30):
    """Start a cluster of nodes with one core and this memory; yields it and its second node."""
    pytest.importorskip("ray")  # skips the test
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "memory": head}
    )
    try:
        node = cluster.add_node(num_cpus=1, memory=second)
        cluster.wait_for_nodes()
        yield cluster, node
    finally:
        cluster.shutdown()
