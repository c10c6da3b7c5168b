"""`tensorfleet scale` with real runs: workers join and leave, and the others go on."""

import pytest

from tensorfleet.testing.cluster import free_addresses
from tests.support.launching import launched, run

pytestmark = pytest.mark.slow  # left out by `make quick`

TRAIN = """
import json, os, time
import tensorflow as tf

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
cluster = tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(cluster, job, index)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:{job}/task:{index}")):
    more = tf.assign_add(tf.train.get_or_create_global_step(), 1)
told = False
with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0) as sess:
    while not sess.should_stop() and not os.path.exists("end"):
        sess.run(more)
        if not told:
            print("trains", flush=True)
        told = True
        time.sleep(0.01)
print("saved", flush=True)
"""


@pytest.fixture
def here(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def scale(here, *arguments):
    return run(here, "scale", *arguments)


START = ("run", "--dashboard", "off", "--name", "r", "--ps", "1")


def test_a_run_gets_more_workers_and_then_fewer(here):
    with launched(here, *START, "--workers", "1", "--max-workers", "3", "train.py") as training:
        training.read_until("[worker/0] trains")
        more = scale(here, "r", "--workers", "3")
        assert more.code == 0, more.stderr
        first, *others = more.stdout.splitlines()
        assert first == "Scaled to 3 workers: worker/1 and worker/2 to join."
        assert sorted(others) == ["worker/1 joins.", "worker/2 joins."]
        training.read_until("trains", 3)
        fewer = scale(here, "--workers", "1")
        assert fewer.code == 0, fewer.stderr
        assert "worker/1 and worker/2 told to save and leave" in fewer.stdout
        training.read_until(" has left.", 2)
        again = scale(here, "r", "--workers", "2")
        assert again.stdout.splitlines()[-1] == "worker/1 joins."
        training.read_until("[worker/1] trains", 2)
        too_many = scale(here, "r", "--workers", "4")
        assert too_many.code == 1
        assert too_many.stderr.startswith(
            "tensorfleet: r is not scaled to 4 workers. It has room for 3 workers, not 4"
        )
        (here / "end").touch()
        done = training.end()
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout.count("] saved") == 4  # each that left stopped after a step, and so did the last two
    assert "worker/2 has left." in done.stdout


def test_a_worker_started_by_hand_joins_and_its_death_frees_its_number(here):
    with launched(here, *START, "--workers", "1", "--max-workers", "2", "train.py") as training:
        training.read_until("[worker/0] trains")
        with launched(here, "join", "r", "train.py") as guest:
            guest.read_until("trains")
            assert "join at" in run(here, "ps").stdout
            full = run(here, "join", "r", "train.py")
            assert full.code == 1 and "All 2 numbers of workers are taken" in full.stderr
            guest.process.kill()
        training.read_until("worker/1 has left.")
        with launched(here, "join", "r", "train.py") as guest:
            guest.read_until("trains")
            (here / "end").touch()
            done = guest.end()
            assert done.code == 0 and "saved" in done.stdout
            assert "tensorfleet: joins as worker/1." in done.stderr
        done = training.end()
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout.count("worker/1 joins: started by hand on this machine.") == 2


def test_a_worker_started_by_hand_needs_the_token_and_ends_with_the_run(here):
    start = (*START, "--workers", "1", "--max-workers", "2", "train.py")
    (address,) = free_addresses(join=1)["join"]
    with launched(here, *start, TENSORFLEET_JOIN_AT=address) as training:
        training.read_until("[worker/0] trains")
        stranger = run(here, "join", address, "train.py", TENSORFLEET_TOKEN="another one of some length")
        assert stranger.code == 1 and "token" in stranger.stderr
        with launched(here, "join", "r", "train.py") as guest:
            guest.read_until("trains")
            assert run(here, "stop", "r").code == 0
            assert guest.end().code != 0
        training.end()


def test_a_run_with_a_fixed_number_of_workers_says_how_it_can_be_scaled(here):
    with launched(here, *START, "--workers", "1", "train.py") as training:
        training.read_until("[worker/0] trains")
        refused = scale(here, "r", "--workers", "2")
        assert refused.code == 1
        assert (
            "Start it with --max-workers, such as --workers 2 --max-workers 8, to scale it." in refused.stderr
        )
        unknown = scale(here, "s", "--workers", "2")
        assert unknown.code == 2 and "No run named s on this machine. Running: r." in unknown.stderr
        (here / "end").touch()
        assert training.end().code == 0


def test_a_number_of_workers_to_begin_with_has_to_find_room(here):
    done = run(here, *START, "--workers", "3", "--max-workers", "2", "train.py")
    assert done.code == 2
    assert "--workers 3 does not go with --max-workers 2" in done.stderr
