"""A real Ray cluster on this machine: a head without CPUs, and nodes with one each, which can be killed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import psutil

ray_missing = find_spec("ray") is None
NO_RAY = "needs Ray: pip install 'rlanything[ray]' (or pip install ray; .ci/run does it)"
STORE = 80 << 20
"""Bytes of a node's object store, near the least that Ray takes."""


class Nodes:
    """The cluster. A context manager."""

    def __init__(self, count: int = 2) -> None:
        self.count = count

    def __enter__(self) -> Nodes:
        self.before = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        # Workers import the modules of tests. On a real cluster, every node has the project installed.
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes: list[Any] = []
        for _ in range(self.count):
            self.add()
        return self

    def __exit__(self, *error: object) -> None:
        import ray

        os.environ.update(self.before)
        ray.shutdown()
        self.cluster.shutdown()

    @property
    def address(self) -> str:
        return self.cluster.address

    def connect(self) -> Any:
        """The module `ray`, connected."""
        import ray

        if not ray.is_initialized():
            ray.init(address=self.address, log_to_driver=False, configure_logging=False)
        return ray

    def add(self) -> None:
        self.nodes.append(self.cluster.add_node(num_cpus=1, object_store_memory=STORE))

    def kill_one(self) -> None:
        """Kill all processes of a node at once, and what they have started, as when a machine is lost."""
        node = self.nodes.pop(0)
        (raylet,) = node.all_processes["raylet"]
        below = psutil.Process(raylet.process.pid).children(recursive=True)
        self.cluster.remove_node(node, allow_graceful=False)
        for process in below:
            with suppress(psutil.NoSuchProcess):
                process.kill()
