"""Tests of several workers in one process."""

import os
import sys
import unittest

import pytest
from tensorfleet.python.distribute import multi_worker_test_base as base

import tensorfleet as tf


def run(case, *names):
    """What came of the tests of a class with these names."""
    result = unittest.TestResult()
    case.setUpClass()
    for name in names:
        case(name).run(result)
    case.tearDownClass()
    return result


@pytest.fixture(autouse=True)
def ended(monkeypatch):
    """The servers of these tests are stopped after each of them."""
    from tensorfleet_legacy.testing import multi_worker_test_base as workers

    monkeypatch.setattr(workers, "_servers", [])
    yield
    for server in workers._servers:
        server.stop()


def test_every_worker_has_a_thread_and_a_session_of_its_own():
    class Case(base.MultiWorkerTestBase):
        def test_it(self):
            def client(job, index, gpus, more):
                target = f"grpc://{self._cluster_spec[job][index]}"
                with tf.Graph().as_default(), self.cached_session(target=target) as sess:
                    with tf.device("/job:ps/task:0"):
                        v = tf.get_variable(f"v{index}", initializer=0.0, use_resource=True)
                    sess.run(v.initializer)
                    self.assertEqual(sess.run(v.assign_add(more)), 2.0)

            self._run_between_graph_clients(client, self._cluster_spec, 0, 2.0)

        def test_wrong(self):
            def client(job, index, gpus):
                raise ValueError(f"{job} {index}")

            self._run_between_graph_clients(client, {"worker": ["one"]}, 0)

        def test_alone(self):
            with self.session() as sess:
                self.assertEqual(sess.run(tf.constant(1)), 1)

    result = run(Case, "test_it", "test_wrong", "test_alone")
    assert result.testsRun == 3 and not result.failures
    ((failed, output),) = result.errors
    assert failed.id().endswith("test_wrong") and "ValueError: worker 0" in output


def test_independent_workers_have_a_tf_config_each():
    seen = {}

    class Case(base.IndependentWorkerTestBase):
        def test_it(self):
            def task(word):
                seen[base.get_task_type(), base.get_task_index()] = (word, base.is_chief())

            cluster = base.create_cluster_spec(num_workers=2, num_ps=1)
            started = self.run_multiple_tasks_in_threads(task, cluster, "x")
            self.join_independent_workers([t for threads in started.values() for t in threads])
            self.assertNotIn("TF_CONFIG", os.environ)

    before = os.environ
    assert run(Case, "test_it").wasSuccessful() and os.environ is before
    assert seen == {("worker", 0): ("x", True), ("worker", 1): ("x", False), ("ps", 0): ("x", False)}


def test_workers_may_be_processes():
    class Case(base.MultiWorkerMultiProcessTest):
        def test_it(self):
            command = [
                sys.executable,
                "-c",
                "import os, sys; sys.exit('worker' not in os.environ['TF_CONFIG'])",
            ]
            started = self.run_multiple_tasks_in_processes(command, {"worker": ["a:1", "b:1"]})
            self.join_independent_workers(started)

    assert run(Case, "test_it").wasSuccessful()


def test_a_port_that_is_taken_ends_the_test_as_skipped():
    class Case(base.IndependentWorkerTestBase):
        def test_it(self):
            server = tf.train.Server.create_local_server()
            try:
                with base.skip_if_grpc_server_cant_be_started(self):
                    tf.train.Server({"other": [server.target.removeprefix("grpc://")]})
            finally:
                server.stop()

    assert len(run(Case, "test_it").skipped) == 1
