"""`tf.train.Server` itself: what it is made from, where it listens, how it ends."""

import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

import tensorfleet as tf
from tensorfleet.cluster import messages
from tensorfleet.cluster.transport.peers import Peer
from tensorfleet.testing.cluster import ProcessCluster, free_addresses, free_ports
from tests.support.waiting import in_background, until


def test_a_local_server(server):
    assert server.target.startswith("grpc://localhost:")
    assert server.server_def.job_name == "local" and server.server_def.task_index == 0
    v = tf.Variable(3.0)
    with tf.Session(server.target) as s:
        s.run(v.initializer)
    with tf.Session(server.target) as s:
        assert s.run(v) == 3.0


def test_five_servers_in_one_process(serve):
    spec = free_addresses(ps=2, worker=3)
    servers = [serve(spec, job, i) for job, n in (("ps", 2), ("worker", 3)) for i in range(n)]
    values = []
    for i in range(2):
        with tf.device(f"/job:ps/task:{i}"):
            values.append(tf.Variable(float(i + 1)))
    with tf.device("/job:worker/task:2"):
        total = tf.add_n(values)
    with tf.Session(servers[2].target) as s:
        s.run(tf.global_variables_initializer())
        assert s.run(total) == 3.0


def test_a_cluster_for_tests():
    workers, servers = tf.test.create_local_cluster(num_workers=2, num_ps=1)
    try:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(5.0)
        with tf.Session(workers[0].target) as s:
            s.run(v.initializer)
        with tf.Session(workers[1].target) as s:
            assert s.run(v) == 5.0
    finally:
        for server in (*workers, *servers):
            server.stop()


def test_what_a_server_is_made_from():
    spec = tf.train.ClusterSpec({"worker": ["localhost:1", "localhost:2"], "ps": ["localhost:3"]})
    with pytest.raises(ValueError, match="explicit `job_name`: the cluster has ps, worker"):
        tf.train.Server(spec)
    with pytest.raises(ValueError, match=r"explicit `task_index`: job 'worker' has tasks \[0, 1\]"):
        tf.train.Server(spec, job_name="worker")
    with pytest.raises(ValueError, match="No such job in cluster: 'wrker'; it has ps, worker"):
        tf.train.Server(spec, job_name="wrker")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Task 7 was not defined"):
        tf.train.Server(spec, "worker", 7)
    with pytest.raises(TypeError, match="server_or_cluster_def"):
        tf.train.Server("localhost:2222")
    with pytest.raises(tf.errors.NotFoundError, match="No server factory"):
        tf.train.Server(spec, "ps", 0, protocol="carrier pigeon")
    with pytest.raises(tf.errors.InvalidArgumentError, match="host-port pair"):
        tf.train.Server({"local": ["nowhere"]})
    definition = tf.train.ServerDef(
        cluster=tf.train.ClusterSpec(free_addresses(a=1)).as_cluster_def(), job_name="a", protocol="grpc"
    )
    server = tf.train.Server(definition, start=False)
    assert server.server_def.job_name == "a"
    server.stop()


def test_other_ways_to_carry_grpc_are_taken_for_ours():
    spec = tf.train.ClusterSpec(free_addresses(ps=1))
    server = tf.train.Server(spec, "ps", 0, protocol="grpc+verbs", start=False)
    assert server.server_def.protocol == "grpc+verbs"
    server.stop()


def test_what_is_not_in_the_cluster_is_refused_as_tensorflow_does():
    with pytest.raises(tf.errors.InternalError, match='Job "x" was not defined in cluster'):
        tf.train.Server({"ps": ["localhost:2222"]}, job_name="x", task_index=0)
    with pytest.raises(TypeError, match="Task address 1 must be bytes or unicode"):
        tf.train.ClusterSpec({"ps": [1]})


def test_a_port_in_use_is_named():
    held = socket.create_server(("localhost", 0))
    address = f"localhost:{held.getsockname()[1]}"
    with pytest.raises(tf.errors.UnknownError, match=f"Could not start gRPC server.*{address}"):
        tf.train.Server({"local": [address]})
    held.close()


def test_beyond_this_machine_a_token_must_be_set(monkeypatch):
    monkeypatch.delenv("TENSORFLEET_TOKEN", raising=False)
    monkeypatch.delenv("TENSORFLEET_TOKEN_FILE", raising=False)
    with pytest.raises(tf.errors.FailedPreconditionError, match="TENSORFLEET_TOKEN"):
        tf.train.Server({"local": ["0.0.0.0:0"]})


def test_a_server_listens_at_its_address_and_at_no_other(server, serve):
    tcp = [s for s in server._sockets if s.family != socket.AF_UNIX]
    assert [s.getsockname()[0] in ("127.0.0.1", "::1") for s in tcp] == [True]
    at = serve({"local": ["127.0.0.2:0"]})
    tcp = [s for s in at._sockets if s.family != socket.AF_UNIX]
    assert [s.getsockname()[0] for s in tcp] == ["127.0.0.2"]


def test_another_token_is_refused(monkeypatch):
    with ProcessCluster(env={"TENSORFLEET_TOKEN": "theirs"}, worker=1) as cluster:
        monkeypatch.setenv("TENSORFLEET_TOKEN", "ours")
        with pytest.raises(tf.errors.UnauthenticatedError, match="another cluster token"):
            tf.Session(cluster.target("worker", 0))


def test_a_target_that_is_none():
    with pytest.raises(tf.errors.NotFoundError, match="No session factory"):
        tf.Session("nonsense")
    port = free_ports(1)[0]
    config = tf.ConfigProto(operation_timeout_in_ms=300)
    with pytest.raises(tf.errors.DeadlineExceededError, match=str(port)):
        tf.Session(f"grpc://localhost:{port}", config=config)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, -signal.SIGINT)])
def test_join_ends_at_a_signal(number, code):
    with ProcessCluster(ps=1) as cluster:
        at = Peer("/job:ps/replica:0/task:0", cluster.cluster["ps"][0], watched=False)
        until(lambda: at.call(messages.Describe()).joined)
        at.forget()
        cluster.signal("ps", 0, number)
        assert cluster.process("ps", 0).wait(60) == code


def test_servers_end_when_all_workers_have_finished():
    with ProcessCluster(here=[("worker", 0), ("worker", 1)], ps=2, worker=2) as cluster:
        program = textwrap.dedent(f"""
            import tensorfleet as tf
            import sys
            index = int(sys.argv[1])
            server = tf.train.Server({cluster.cluster!r}, "worker", index)
            with tf.device("/job:ps/task:0"):
                v = tf.Variable(0.0)
            with tf.Session(server.target) as s:
                if index == 0:
                    s.run(v.initializer)
        """)
        for index in range(2):
            assert cluster.process("ps", 0).poll() is None
            subprocess.run([sys.executable, "-c", program, str(index)], check=True, timeout=60)
        assert cluster.process("ps", 0).wait(20) == 0
        assert cluster.process("ps", 1).wait(20) == 0


def test_a_chief_that_is_a_worker_too_is_one_task_to_wait_for(serve):
    spec = free_addresses(ps=1, worker=1)
    spec["chief"] = [spec["worker"][0].replace("127.0.0.1", "localhost")]
    ended = in_background(serve(spec, "ps", 0).join)
    program = f"import tensorfleet as tf; tf.train.Server({spec!r}, 'chief', 0)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    ended.result(20)


def test_workers_that_only_serve_end_with_the_parameter_servers():
    with ProcessCluster(here=[("worker", 0)], ps=1, worker=3) as cluster:
        program = textwrap.dedent(f"""
            import tensorfleet as tf
            server = tf.train.Server({cluster.cluster!r}, "worker", 0)
            with tf.device("/job:worker/task:2"):
                v = tf.constant(1.0) + 1.0
            with tf.Session(server.target) as s:
                s.run(v)
        """)
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
        for job, index in (("ps", 0), ("worker", 1), ("worker", 2)):
            assert cluster.process(job, index).wait(20) == 0


def test_a_program_that_goes_on_after_join_ends_at_its_session():
    spec = free_addresses(ps=1, worker=1)
    program = textwrap.dedent(f"""
        import sys
        import tensorfleet as tf
        job = sys.argv[1]
        server = tf.train.Server({spec!r}, job, 0)
        if job == "ps":
            server.join()
        print("going on", job, flush=True)
        with tf.device("/job:ps"):
            v = tf.Variable(1.0)
        with tf.Session(server.target) as s:
            s.run(v.initializer)
            print("done", job, flush=True)
    """)
    run = [sys.executable, "-c", program]
    with subprocess.Popen([*run, "ps"], stdout=subprocess.PIPE, text=True) as ps:
        try:
            subprocess.run([*run, "worker"], check=True, timeout=60, stdout=subprocess.DEVNULL)
            told, _ = ps.communicate(timeout=30)
        finally:
            ps.kill()
    assert told == "going on ps\n" and ps.returncode == 0


def test_a_silent_task_is_given_up():
    with ProcessCluster(ps=1, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0)
        with tf.Session(cluster.target("worker", 0)) as s:
            s.run(v.initializer)
            cluster.signal("ps", 0, signal.SIGSTOP)
            began = time.monotonic()
            with pytest.raises(tf.errors.UnavailableError, match="/job:ps/replica:0/task:0"):
                s.run(v.read_value())
            assert time.monotonic() - began < 20  # it would be for ever
            cluster.signal("ps", 0, signal.SIGCONT)
        with tf.Session(cluster.target("worker", 0)) as s:
            assert s.run(v) == 1.0


def test_closing_a_session_wakes_its_runs():
    with ProcessCluster(worker=1) as cluster:
        q = tf.FIFOQueue(1, [tf.float32], shared_name="q")
        take = q.dequeue()
        s = tf.Session(cluster.target("worker", 0))
        waiting = in_background(s.run, take)
        until(lambda: s._engine.running)
        time.sleep(0.2)  # for the dequeue to wait at the queue, which does not tell
        s.close()
        with pytest.raises(tf.errors.CancelledError):
            waiting.result(10)
        with tf.Session(cluster.target("worker", 0)) as s:
            s.run(q.enqueue(1.0))
            assert s.run(take) == 1.0  # the withdrawn dequeue took nothing


def test_forked_processes_are_clients_of_their_own():
    program = (
        "import os\n"
        "from tensorfleet.cluster.transport.peers import client\n"
        "print(client(), flush=True)\n"
        "if os.fork() == 0:\n"
        "    print(client(), flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    names = done.stdout.split()
    assert len(names) == len(set(names)) == 2


def test_a_session_can_be_made_at_once_after_its_task_was_started_again():
    with ProcessCluster(ps=1, worker=1) as cluster:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0)
        for _ in range(3):
            with tf.Session(cluster.target("worker", 0)) as s:
                s.run(v.initializer)
                assert s.run(v) == 1.0
            cluster.kill("ps", 0)
            cluster.start("ps", 0)
            with tf.Session(cluster.target("worker", 0)) as s:
                with pytest.raises(tf.errors.FailedPreconditionError):  # it is empty, and it answers
                    s.run(v)
