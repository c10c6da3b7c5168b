"""`tensorfleet explain`: where a script's operations go, or what the passes do, found without running a step."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorfleet.cli import plan as planning
from tensorfleet.cli.scripts.script import run_script

if TYPE_CHECKING:
    from tensorfleet.base.protos import ConfigProto
    from tensorfleet.cluster.membership.spec import ClusterSpec
    from tensorfleet.graph.graph import Graph
    from tensorfleet.session.session import BaseSession

_LOCAL_DEVICES = ["/job:localhost/replica:0/task:0/device:CPU:0"]


class _Ready(BaseException):
    """The script was about to use a session: its graph is there. No `except Exception` stops this one."""

    def __init__(self, graph: Graph, config: ConfigProto | None, fetches: object = None) -> None:
        super().__init__()
        self.graph = graph
        self.config = config
        self.fetches = fetches


class _Server:
    """In place of `tf.train.Server`: remembers the cluster, listens nowhere."""

    devices: list[str] = []
    cluster: ClusterSpec | None = None
    own = ("", 0)
    target = "explain://"

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: ConfigProto | None = None,
        start: bool = True,
    ) -> None:
        from tensorfleet.cluster.membership.spec import ClusterSpec

        if hasattr(server_or_cluster_def, "cluster"):
            job_name = job_name or server_or_cluster_def.job_name
            task_index = server_or_cluster_def.task_index if task_index is None else task_index
            server_or_cluster_def = server_or_cluster_def.cluster
        cluster = ClusterSpec(server_or_cluster_def)
        tasks = [(j, i) for j in cluster.jobs for i in cluster.task_indices(j)]
        own = (job_name or cluster.jobs[0], task_index or 0)
        tasks.sort(key=lambda task: (task != own, task))  # what is not placed goes to the session's own task
        _Server.cluster, _Server.own = cluster, own
        _Server.devices = [f"/job:{j}/replica:0/task:{i}/device:CPU:0" for j, i in tasks]

    def start(self) -> None:
        """Nothing to start."""

    def join(self) -> None:
        """A server's process builds no graph."""
        raise SystemExit(0)


def explain_script(script: str, arguments: list[str], passes: bool = False) -> None:
    """Runs a script until it uses a session, as the first worker of a small cluster if it is made for one.

    Then prints where the operations go, or what the `passes` do to its step.
    """
    import tensorfleet as tf
    from tensorfleet.graph.scopes import get_default_graph
    from tensorfleet.session.session import BaseSession

    if planning.is_for_clusters(Path(script)):
        arguments = _as_worker(script, arguments)
    _stop_at_sessions(BaseSession)
    # Public names are set at run time: mypy knows them only from the stubs.
    train: Any = getattr(tf, "train")  # noqa: B009
    train.Server = _Server
    graph: Graph | None = None
    config: ConfigProto | None = None
    fetches: object = None
    try:
        run_script(script, arguments)
    except _Ready as ready:
        graph, config, fetches = ready.graph, ready.config, ready.fetches
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    sys.stdout.flush()
    graph = graph or get_default_graph()
    print(_passes(graph, config, fetches) if passes else _table(graph, config))


def _stop_at_sessions(session: Any) -> None:
    make = session.__init__

    def init(
        self: BaseSession, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None
    ) -> None:
        if target:
            from tensorfleet.graph.scopes import get_default_graph

            raise _Ready(graph if graph is not None else get_default_graph(), config)
        make(self, target, graph, config)

    def run(self: BaseSession, fetches: object, *args: object, **kwargs: object) -> None:
        raise _Ready(self._graph, self._config, fetches)

    session.__init__ = init
    session.run = session.make_callable = session.partial_run_setup = run


def _as_worker(script: str, arguments: list[str]) -> list[str]:
    """What a run with one server and two workers would tell its first worker."""
    addresses = {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2", "127.0.0.1:3"]}
    places = {job: [planning.Place(a) for a in hosts] for job, hosts in addresses.items()}
    task = planning.plan(planning.Wishes(script, arguments), places, token="")[1]
    os.environ.update(task.environment)
    return task.command[task.command.index(script) + 1 :]


def _passes(graph: Graph, config: ConfigProto | None, fetches: object) -> str:
    from tensorfleet.cli.explain_passes import passes_table
    from tensorfleet.cluster.master.placer import ClusterPlacer, task_name
    from tensorfleet.passes.place import Placer

    soft = bool(getattr(config, "allow_soft_placement", False))
    if _Server.cluster is None:
        return passes_table(graph, fetches, Placer(_LOCAL_DEVICES, soft), on_tasks=False)

    def devices_of(job: str, index: int, waits: bool) -> list[str]:
        return [f"{task_name(job, index)}/device:CPU:0"]

    filters = list(getattr(config, "device_filters", ()))
    placer = ClusterPlacer(_Server.cluster, _Server.own, devices_of, filters, soft)
    return passes_table(graph, fetches, placer, on_tasks=True)


def _table(graph: Graph, config: ConfigProto | None) -> str:
    from tensorfleet.fleet.placement import placement_table
    from tensorfleet.passes.place import Placer

    devices = _Server.devices or _LOCAL_DEVICES
    placer = Placer(devices, bool(getattr(config, "allow_soft_placement", False)))
    placer.check(graph.get_operations())
    for op in graph.get_operations():
        placer.device_of(op)
    return placement_table(placer)
