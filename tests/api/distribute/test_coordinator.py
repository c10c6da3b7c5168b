"""A worker function that a coordinator runs as the tasks of a cluster."""

import json
import threading
from types import SimpleNamespace

import pytest
from tensorfleet.python.distribute import distribute_coordinator as coordinator
from tensorfleet.python.distribute import distribute_coordinator_context, multi_worker_test_base

import tensorfleet as tf

current = distribute_coordinator_context.get_current_worker_context


class Strategy:
    """Notes how it was configured."""

    def __init__(self, between):
        self.extended = SimpleNamespace(
            experimental_between_graph=between,
            experimental_should_init=None,
            should_checkpoint=True,
            should_save_summary=True,
        )

    def configure(self, session_config=None, cluster_spec=None, task_type=None, task_id=None):
        self.extended.experimental_should_init = not task_id
        session_config.device_filters.extend([f"/job:{task_type}", "/job:ps"])
        session_config.intra_op_parallelism_threads += 1


@pytest.fixture
def cluster(serve):
    addresses = multi_worker_test_base.create_cluster_spec(num_workers=2, num_ps=1)
    for job, tasks in addresses.items():
        for i in range(len(tasks)):
            serve(tf.train.ClusterSpec(addresses), job, i)
    return addresses


def told():
    """What the current worker knows of itself."""
    worker = current()
    return worker.master_target, worker.num_workers, worker.is_chief, worker.distributed_mode


def test_without_a_cluster_it_is_called_here(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert coordinator.run_distribute_coordinator(lambda _: told(), Strategy(False)) == ("", 0, True, False)


def test_one_function_may_build_the_graph_of_all_workers(cluster):
    def work(strategy):
        with tf.device("/job:worker/task:1"):
            v = tf.get_variable("v", initializer=1.0)
        with tf.Session(current().master_target) as sess:
            sess.run(v.initializer)
            return told(), sess.run(v + 1.0)

    result = coordinator.run_distribute_coordinator(work, Strategy(False), cluster_spec=cluster)
    assert result == ((f"grpc://{cluster['worker'][0]}", 2, True, True), 2.0)


def test_every_worker_may_have_a_thread_and_a_graph(cluster):
    seen = []

    def work(strategy):
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", initializer=1.0, use_resource=True)
        more = v.assign_add(1.0)
        with tf.train.MonitoredSession() as sess:
            sess.run(more)
            current().wait_for_other_workers()
            seen.append((*told()[1:3], sess.run(v)))

    assert coordinator.run_distribute_coordinator(work, Strategy(True), cluster_spec=cluster) is None
    assert sorted(seen) == [(2, False, 3.0), (2, True, 3.0)]


def test_what_a_worker_raises_is_raised(cluster):
    def work(strategy):
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        coordinator.run_distribute_coordinator(work, Strategy(True), cluster_spec=cluster)


@pytest.mark.parametrize("between", [True, False])
def test_an_independent_worker_has_a_server_of_its_own(monkeypatch, between):
    servers, seen = {}, {}

    def server(**given):
        result = servers[given["task_type"], given["task_id"]] = SimpleNamespace(joined=False, **given)
        result.join = lambda: setattr(result, "joined", True)
        return result

    monkeypatch.setattr(coordinator, "_run_std_server", server)
    cluster = {"worker": ["a:1", "b:1"], "ps": ["c:1"], "evaluator": ["d:1"]}
    lock = threading.Lock()

    def work(strategy):
        with lock:
            seen[current().task_type, current().task_id] = current().session_config

    for job, tasks in cluster.items():
        for i in range(len(tasks)):
            coordinator.run_distribute_coordinator(
                work,
                Strategy(between),
                mode=coordinator.CoordinatorMode.INDEPENDENT_WORKER,
                cluster_spec=cluster,
                task_type=job,
                task_id=i,
            )
    assert len(servers) == 4 and servers["ps", 0].joined and not servers["worker", 0].joined
    assert servers["worker", 1].joined != between and not servers["evaluator", 0].joined
    assert all(not s.session_config.device_filters for s in servers.values())
    trains = [("worker", 0), ("worker", 1)] if between else [(None, None)]
    assert set(seen) == {*trains, ("evaluator", 0)}
    assert {config.intra_op_parallelism_threads for config in seen.values()} == {2}


def test_a_server_for_the_task_that_the_environment_describes(monkeypatch):
    cluster = {"worker": ["localhost:0"], "ps": ["localhost:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker"}}))
    monkeypatch.setattr(coordinator, "_thread_local", threading.local())
    server = coordinator.run_standard_tensorflow_server()
    try:
        leader = server.server_def.default_session_config.experimental.collective_group_leader
        assert leader == "/job:worker/replica:0/task:0"
        assert coordinator.run_standard_tensorflow_server() is server
    finally:
        server.stop()
    monkeypatch.delenv("TF_CONFIG")
    with pytest.raises(ValueError, match="needs a cluster"):
        coordinator.run_standard_tensorflow_server()


def test_a_worker_alone_has_nobody_to_wait_for():
    with (
        coordinator._WorkerContext(Strategy(False), None, None, None) as worker,
        pytest.raises(ValueError, match="is not set"),
    ):
        worker.wait_for_other_workers()
    with pytest.raises(ValueError, match="coordinator mode"):
        coordinator.run_distribute_coordinator(None, Strategy(False), mode="x", cluster_spec={"ps": ["a:1"]})
    with pytest.raises(ValueError, match="needs its task type"):
        coordinator.run_distribute_coordinator(
            None, Strategy(False), mode="independent_worker", cluster_spec={"ps": ["a:1"]}
        )


def test_workers_wait_for_each_other_but_not_for_ever(monkeypatch):
    monkeypatch.setenv("TENSORFLEET_WAIT_SECONDS", "0.01")
    with pytest.raises(tf.errors.DeadlineExceededError, match="Not all 2 workers came"):
        coordinator._Barrier(2).wait()


@pytest.mark.parametrize("between", [True, False])
def test_what_an_evaluator_fails_of_is_raised(between):
    def evaluate(strategy):
        raise KeyError("no such checkpoint")

    with pytest.raises(KeyError, match="no such checkpoint"):
        coordinator.run_distribute_coordinator(
            lambda strategy: None,
            Strategy(between),
            eval_fn=evaluate,
            cluster_spec={"worker": ["a:1"], "evaluator": ["b:1"]},
        )
