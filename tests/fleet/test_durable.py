"""Parameter servers that scripts make durable themselves."""

import json
import signal

import pytest

import tensorfleet as tf
from tensorfleet.cluster import messages
from tensorfleet.testing.cluster import free_addresses
from tests.support.launching import launched
from tests.support.waiting import SECONDS, in_background

# Counts on a parameter server, and compares with its own count after each step.
COUNT = """
import json, os, sys, time
import tensorfleet as tf
cluster, job, standby = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
if job == "ps":
    server = tf.fleet.durable(tf.train.Server(cluster, "ps", 0, start=False), standby=standby)
    server.join()
server = tf.train.Server(cluster, "worker", 0)
with tf.device("/job:ps/task:0"):
    total = tf.get_variable("total", [4], tf.float32, tf.zeros_initializer())
    more = tf.assign_add(total, tf.ones([4]))
count, said = 0, 0.0
with tf.train.MonitoredTrainingSession(server.target, is_chief=True) as sess:
    while not os.path.exists("end"):
        value = sess.run(more)
        count += 1
        assert value.tolist() == [count] * 4, (value, count)
        if time.monotonic() - said > 0.1:
            said = time.monotonic()
            print("count", count, flush=True)
        time.sleep(0.002)
print("counted all", flush=True)
"""


@pytest.fixture
def addresses():
    return free_addresses(ps=2)["ps"]


@pytest.fixture
def server(addresses):
    result = tf.train.Server({"ps": [addresses[0]]}, "ps", 0, start=False)
    yield result
    result.stop()


@pytest.mark.slow
def test_a_server_of_a_script_is_killed_and_no_update_is_lost(tmp_path):
    ps, standby, worker = [at for found in free_addresses(ps=2, worker=1).values() for at in found]
    cluster = json.dumps({"ps": [ps], "worker": [worker]})
    (tmp_path / "train.py").write_text(COUNT)
    secret = {"TENSORFLEET_TOKEN": "a token of this test alone"}
    with (
        launched(tmp_path, "train.py", cluster, "ps", standby, **secret) as first,
        launched(
            tmp_path, "standby", "--task", "ps/0", "--listen", standby, "--cluster", cluster, **secret
        ) as second,
        launched(
            tmp_path, "guard", "--cluster", cluster, "--task", f"ps/0={ps},{standby}", **secret
        ) as guarding,
        launched(tmp_path, "train.py", cluster, "worker", standby, **secret) as working,
    ):
        guarding.read_until("ps/0 leads with ps-standby/0 as its standby (epoch 1).")
        working.read_until("count ", 3)
        first.kill_all()
        guarding.read_until("ps-standby/0 leads it now (epoch 2)")
        ended = in_background(working.end)
        (tmp_path / "end").touch()
        ended.result(SECONDS)
        assert working.code == 0 and "counted all" in working.stdout, working.stdout + working.stderr
        second.kill_all()
        guarding.process.send_signal(signal.SIGINT)
        assert guarding.end().code == 0


def test_a_durable_server_waits_for_the_guard_and_tells_clients_both_places(server, addresses):
    assert tf.fleet.durable(server, standby=addresses[1]) is server
    assert server.is_started
    assert server.replica.places == addresses
    task = "/job:ps/replica:0/task:0"
    assert server.replica.lead(messages.Lead(task, 1, "", addresses)).epoch == 1
    with tf.Graph().as_default(), tf.Session(server.target) as sess:
        assert sess.run(tf.constant(7)) == 7


def test_a_server_that_was_started_is_refused(server, addresses):
    server.start()
    text = r"was started already.*start=False; tf\.fleet\.durable starts it\."
    with pytest.raises(tf.errors.FailedPreconditionError, match=text):
        tf.fleet.durable(server, standby=addresses[1])
    assert server.replica is None


def test_the_address_of_a_standby_is_checked(server, addresses):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Its standby needs an address of its own\."):
        tf.fleet.durable(server, standby=addresses[0].replace("127.0.0.1", "localhost"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="host-port pair"):
        tf.fleet.durable(server, standby="beta")
    with pytest.raises(TypeError, match="must be an address such as beta:2222"):
        tf.fleet.durable(server, standby=None)
    with pytest.raises(TypeError, match=r"must be a tf\.train\.Server"):
        tf.fleet.durable(server.target, standby=addresses[1])
    assert not server.is_started


def test_the_launcher_decides_for_the_servers_that_it_starts(server, addresses, monkeypatch):
    monkeypatch.setenv("TENSORFLEET_SERVES", "ps/0")
    tf.fleet.durable(server, standby=addresses[1])
    assert server.is_started and server.replica is None


def test_places_of_the_launcher_go_before_those_of_the_script(server, addresses, monkeypatch):
    places = [addresses[0], "127.0.0.1:1"]
    monkeypatch.setenv("TENSORFLEET_PLACES", json.dumps(places))
    tf.fleet.durable(server, standby=addresses[1])
    assert server.replica.places == places
