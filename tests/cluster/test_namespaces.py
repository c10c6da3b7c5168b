"""Two hosts, as far as their tasks can tell: network namespaces joined by a cable of their own."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

PS, WORKER = "10.231.7.1", "10.231.7.2"
SECONDS = 90

TASK = """
    import sys
    import numpy as np
    import tensorfleet as tf

    job, ps, worker = sys.argv[1:]
    cluster = tf.train.ClusterSpec({"ps": [ps + ":2222"], "worker": [worker + ":2222"]})
    server = tf.train.Server(cluster, job_name=job, task_index=0)
    if job == "ps":
        server.join()
        sys.exit()
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        x, y = tf.placeholder(tf.float32, [None, 300]), tf.placeholder(tf.float32, [None, 1])
        w = tf.get_variable("w", [300, 1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
        train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)
    rng = np.random.RandomState(0)
    data = rng.normal(size=(400, 300)).astype("f")
    wanted = data @ rng.normal(size=(300, 1)).astype("f")
    hooks = [tf.train.StopAtStepHook(last_step=100)]
    with tf.train.MonitoredTrainingSession(server.target, hooks=hooks) as session:
        first = session.run(loss, {x: data, y: wanted})
        while not session.should_stop():
            _, last = session.run([train, loss], {x: data, y: wanted})
    print("lower" if last < first / 5 else f"{first} {last}", w.device)
"""


def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


@pytest.fixture
def hosts():
    """The names of two namespaces that reach each other, and nothing else."""
    names = [f"tensorfleet-{os.getpid()}-{side}" for side in "ab"]
    cable = [f"tf{os.getpid()}{side}" for side in "ab"]
    if shutil.which("ip") is None:
        pytest.skip("there is no `ip` command")
    try:
        ip("netns", "add", names[0])
    except subprocess.CalledProcessError as e:
        pytest.skip(f"no network namespaces here: {e.stderr.decode().strip()}")
    try:
        ip("netns", "add", names[1])
        ip("link", "add", cable[0], "netns", names[0], "type", "veth", "peer", cable[1], "netns", names[1])
        for name, end, address in zip(names, cable, (PS, WORKER), strict=True):
            ip("-n", name, "address", "add", f"{address}/24", "dev", end)
            ip("-n", name, "link", "set", end, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, timeout=30)


def test_two_hosts_train_together_over_tcp(hosts, tmp_path):
    script = tmp_path / "task.py"
    script.write_text(textwrap.dedent(TASK))
    environment = {
        **os.environ,
        "TENSORFLEET_TOKEN": "only-these-two-know",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    started = [
        subprocess.Popen(
            ["ip", "netns", "exec", host, sys.executable, str(script), job, PS, WORKER],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for host, job in zip(hosts, ("ps", "worker"), strict=True)
    ]
    try:
        out, errors = started[1].communicate(timeout=SECONDS)
        assert out.split() == ["lower", "/job:ps/task:0"], errors
        _, errors = started[0].communicate(timeout=SECONDS)
        assert started[0].returncode == 0, errors
    finally:
        for process in started:
            process.kill()
            process.communicate()
