"""`tensorfleet doctor --on ray`: the way to a Ray cluster, and what its nodes have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorfleet.base.versions import FLEET_VERSION
from tensorfleet.cli.doctor import Finding
from tensorfleet.cli.engines.base import EngineError
from tensorfleet.cli.engines.ray_connection import chosen_address, connect, disconnect, ray_library
from tensorfleet.fleet import ray_placement, ray_tasks
from tensorfleet.fleet.ray_tasks import NodePlace

_PROBE_SECONDS = 60.0  # for a worker process on each node


def findings(address: str | None) -> Iterator[Finding]:
    """A line for Ray, for the cluster, for its room, and for each of its nodes."""
    try:
        ray = ray_library()
    except EngineError as error:
        yield Finding("Ray", str(error), "bad")
        return
    yield Finding("Ray", ray.__version__, "ok")
    place = chosen_address(address)
    try:
        connect(address)
    except EngineError as error:
        yield Finding("cluster", str(error), "bad")
        return
    try:
        yield Finding("cluster", f"reached at {place}", "ok")
        yield from _nodes(ray)
    finally:
        disconnect()


def _nodes(ray: Any) -> Iterator[Finding]:
    nodes = ray_placement.alive_nodes()
    free = ray.available_resources()
    kinds = [kind for kind in ("CPU", "GPU", "memory") if any(n["Resources"].get(kind) for n in nodes)]
    total = {kind: sum(n["Resources"].get(kind, 0) for n in nodes) for kind in kinds}
    room = ray_placement.shown({kind: free.get(kind, 0) for kind in kinds})
    has_room = free.get("CPU", 0) >= 1
    yield Finding(
        "room",
        f"{room} free of {ray_placement.shown(total)} on {len(nodes)} node{'s' * (len(nodes) != 1)}",
        "ok" if has_room else "warning",
        "" if has_room else "a run waits until others give CPUs back",
    )
    ray.cloudpickle.register_pickle_by_value(ray_tasks)
    asked = {_ask(ray, node["NodeID"]): node for node in nodes}
    ready, late = ray.wait(list(asked), num_returns=len(asked), timeout=_PROBE_SECONDS)
    for reference in ready:
        yield _node(ray, asked[reference]["NodeManagerAddress"], reference)
    for reference in late:
        where = asked[reference]["NodeManagerAddress"]
        yield Finding(
            "node", f"{where} did not answer within {_PROBE_SECONDS:g} s", "bad", "see `ray status`"
        )


def _ask(ray: Any, node_id: str) -> Any:
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node_id, soft=False)
    probe = ray.remote(ray_tasks.node_place).options(num_cpus=0, scheduling_strategy=strategy, max_retries=0)
    return probe.remote(0)


def _node(ray: Any, where: str, reference: Any) -> Finding:
    try:
        found: NodePlace = ray.get(reference, timeout=_PROBE_SECONDS)
    except ray.exceptions.RayError as error:
        return Finding("node", f"{where}: {str(error).strip().splitlines()[0]}", "bad", "see `ray status`")
    text = f"{where} has TensorFleet {found.version or 'not installed'} ({found.python})"
    if found.version == FLEET_VERSION:
        return Finding("node", text, "ok")
    return Finding("node", text, "bad", f"this machine has {FLEET_VERSION}: install the same there")
