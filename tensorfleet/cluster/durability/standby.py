"""The server of a standby: has the state of a parameter server, and takes its place when the guard says so."""

from __future__ import annotations

from tensorfleet.cluster.durability.role import State
from tensorfleet.cluster.durability.told_places import told_places
from tensorfleet.cluster.master.placer import task_name
from tensorfleet.cluster.membership.spec import ClusterSpec
from tensorfleet.cluster.server import Server


def serve(cluster: ClusterSpec, job: str, index: int, address: str) -> None:
    """Stands by for a task at an address of its own, until the server is stopped or everybody has gone."""
    jobs = {
        name: {i: cluster.task_address(name, i) for i in cluster.task_indices(name)} for name in cluster.jobs
    }
    own, jobs[job][index] = jobs[job][index], address
    places = told_places(task_name(job, index), address) or [own, address]
    server = Server(ClusterSpec(jobs), job, index, start=False)
    server.make_durable(places, State.STANDING_BY)
    server.start()
    server.join()
