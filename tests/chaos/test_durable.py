"""A durable parameter server keeps what was acknowledged, once, whatever process is killed or stopped at any moment.

Two clients make marked updates of every kind, a plain session and a MonitoredTrainingSession, which is a chief, and keep
ledgers. `make chaos` plays more rounds; TENSORFLEET_CHAOS_SEED chooses other moments.
"""

import contextlib
import json
import os
import statistics
import subprocess
import time

import pytest

import tensorfleet as tf
from tensorfleet.testing import ledger as checks
from tensorfleet.testing.faults import Faults
from tensorfleet.testing.ledger import Ledger
from tests.chaos import durable_client
from tests.support.durable_cluster import DurableCluster
from tests.support.waiting import SECONDS, in_background, until

KILLS = int(os.environ.get("TENSORFLEET_CHAOS_KILLS", "50"))
ROUNDS = int(os.environ.get("TENSORFLEET_CHAOS_ROUNDS", "15"))
SEED = int(os.environ.get("TENSORFLEET_CHAOS_SEED", "20261119"))
MOST_GAMES, KILLS_OF_GAME = 10, 10  # until a missing part of the design has to be noticed
NETWORK_FAULTS = ("cut", "cut to the server", "cut to the client", "delay")
PLAYER = 2  # the worker whose server is in this process
UPDATES = 11  # of one step of a client


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 200 KB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True, timeout=30)


class Game:
    """A durable parameter server, two clients, and faults."""

    def __init__(self, path, name, **options):
        print(f"seed {SEED}, {KILLS} kills or {ROUNDS} rounds")
        self.faults = Faults(f"{SEED} {name}")
        self.cluster = DurableCluster(workers=3, seed=SEED, **options)
        self.ledgers = [Ledger(path / f"ledger{n}") for n in range(durable_client.CLIENTS)]
        self.clients = []
        self.pauses = []
        self.server = None

    def __enter__(self):
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self):
        self.cluster.wait_for_pair()
        self.server = tf.train.Server(self.cluster.cluster, "worker", PLAYER)
        with tf.Graph().as_default():
            shared = durable_client.Shared()
            with tf.Session(self.server.target) as sess:
                sess.run(tf.variables_initializer(shared.variables))
        self.clients = [self.client(n) for n in range(durable_client.CLIENTS)]
        self.goes_on()

    def __exit__(self, *_):
        self.cluster.close()
        if self.server is not None:
            self.server.stop()

    def client(self, n):
        """Starts a client, or its next life."""
        path = self.ledgers[n].path
        first = self.ledgers[n].next()
        return self.cluster.script("durable_client.py", json.dumps(self.cluster.cluster), n, path, first)

    def goes_on(self, updates=UPDATES):
        """Waits until both clients have made some more updates."""
        seen = [ledger.acknowledged() for ledger in self.ledgers]
        for n, ledger in enumerate(self.ledgers):
            until(
                lambda n=n, ledger=ledger: self._has_gone_on(n, ledger, seen[n] + updates),
                "the clients go on",
            )

    def _has_gone_on(self, n, ledger, count):
        done = ledger.acknowledged() >= count
        for m, client in enumerate(self.clients):
            assert done or client.poll() is None, f"client {m} has ended: {self.ledgers[m].failures}"
        return done

    # -- faults ---------------------------------------------------------------------------------------

    def kill_server(self, leads):
        """Kills the server that leads, or the other one, and waits until there are two again."""
        cluster = self.cluster
        seat = cluster.leader() if leads else 1 - cluster.leader()
        since = len(cluster.notes)
        self.faults.pause()
        fault = self.faults.kill(cluster.process(seat))
        self.goes_on()
        self.pauses.append(self._pause(fault.began))
        cluster.wait_for_pair(since)

    def freeze_server(self, leads, least=0.1, most=3.0):
        """Stops a server for a while, then waits until there are two again."""
        cluster = self.cluster
        seat = cluster.leader() if leads else 1 - cluster.leader()
        self.faults.pause()
        fault = self.faults.freeze(cluster.process(seat), least, most)
        self.goes_on()
        self.pauses.append(self._pause(fault.began))
        until(cluster.is_paired, "there are two servers again")

    def cut_off_leader(self):
        """The guard does not reach the leader any more, which serves its clients still; later it does again."""
        cluster = self.cluster
        seat, since = cluster.leader(), len(cluster.notes)
        self.faults.pause()
        cluster.networks[seat].partition()
        cluster.wait_for("leads it now", since)
        self.goes_on()
        self.faults.pause(1.0)
        cluster.networks[seat].heal()
        self.goes_on()
        cluster.wait_for_pair(since)

    def cut_off_standby(self):
        """The servers do not reach each other for a while; the guard reaches both."""
        cluster = self.cluster
        seat, since = 1 - cluster.leader(), len(cluster.notes)
        self.faults.pause()
        cluster.networks[seat].partition()
        cluster.wait_for("leads it now", since)
        cluster.networks[seat].heal()
        self.goes_on()
        cluster.wait_for_pair(since)

    def break_network(self):
        """The network before a server has a fault for a while."""
        self.faults.pause()
        what = self.faults.random.choice(NETWORK_FAULTS)
        self.faults.break_network(self.faults.random.choice(self.cluster.networks), what)
        self.goes_on()
        until(self.cluster.is_paired, "there are two servers again")

    def move_server(self, replaces):
        """Moves the server that leads to its standby, or to a new process."""
        cluster, leads = self.cluster, self.cluster.leader()
        self.faults.pause()
        began = time.monotonic()
        assert cluster.move(replaces) == ""
        assert cluster.leader() != leads
        self.goes_on()
        self.pauses.append(max(checks.longest_pause(ledger, began) for ledger in self.ledgers))

    def move_and_kill(self):
        """Kills one of the two servers at some moment of a move."""
        cluster, since = self.cluster, len(self.cluster.notes)
        moving = in_background(cluster.move, False)
        self.faults.pause(0.02)
        self.faults.kill(cluster.process(self.faults.random.randrange(2)))
        moving.result(SECONDS)
        self.goes_on()
        cluster.wait_for_pair(since)
        until(cluster.is_paired, "there are two servers again")

    def kill_client(self, n):
        """Kills a client, and starts its next life."""
        self.faults.pause()
        self.faults.kill(self.clients[n])
        self.clients[n] = self.client(n)
        self.goes_on()

    def freeze_client(self, n):
        """Stops a client for a while."""
        self.faults.pause()
        self.faults.freeze(self.clients[n], 0.1, 2.0)
        self.goes_on()

    def kill_guard(self):
        """Kills the guard, and starts another one, which finds the leader; then kills that."""
        cluster, since = self.cluster, len(self.cluster.notes)
        self.faults.pause()
        self.faults.kill(cluster.guard_process)
        self.goes_on()
        cluster.start_guard()
        cluster.wait_for_pair(since)
        self.kill_server(leads=True)

    def save_to(self, folder):
        """Saves all variables, through the parameter server."""
        with tf.Graph().as_default():
            saver = tf.train.Saver(durable_client.Shared().variables)
            with tf.Session(self.server.target) as sess:
                return saver.save(sess, str(folder / "model"), write_meta_graph=False)

    def _pause(self, moment):
        return min(checks.pause_after(ledger, moment) for ledger in self.ledgers)

    # -- the end --------------------------------------------------------------------------------------

    def failures(self):
        """The errors that the clients have seen."""
        return [text for ledger in self.ledgers for text in ledger.failures]

    def violations(self):
        """Ends the clients and compares their ledgers with the state."""
        for one in self.clients:
            self.faults.kill(one)
        if self.pauses:
            shown = sorted(self.pauses)
            late = shown[min(len(shown) * 99 // 100, len(shown) - 1)]
            print(
                f"pauses after {len(shown)} faults: median {statistics.median(shown):.2f} s, 99th percentile {late:.2f} s"
            )
        print(f"{[ledger.acknowledged() for ledger in self.ledgers]} updates")
        with tf.Graph().as_default():
            shared = durable_client.Shared()
            with tf.Session(self.server.target) as sess:
                sizes = [int(sess.run(queue.size())) for queue in shared.queues]
                rest = [sess.run(q.dequeue_many(n)) for q, n in zip(shared.queues, sizes, strict=True)]
                found = sess.run({"dense": shared.dense, "rows": shared.rows, "total": shared.total})
                keys, values = sess.run(shared.table.export())
        table = dict(zip(keys.tolist(), values.tolist(), strict=True))
        result = []
        for n, ledger in enumerate(self.ledgers):
            dense, rows = (
                {int(i): int(of[i]) for i in of.nonzero()[0]} for of in (found["dense"][n], found["rows"][n])
            )
            result += checks.check_marks(
                f"dense {n}", ledger.of("dense"), dense, lambda m: m % durable_client.SLOTS
            )
            result += checks.check_marks(f"rows {n}", ledger.of("rows"), rows)
            own = {
                v: 1
                for k, v in table.items()
                if k % durable_client.CLIENTS == n and k // durable_client.CLIENTS == v
            }
            result += checks.check_marks(f"table {n}", ledger.of("table"), own)
            result += [
                f"lookup {n}: {one.value} at {one.number}"
                for one in ledger.of("lookup").acknowledged
                if one.value != one.number
            ]
            result += [
                f"mean {n}: {one.value} at {one.number}"
                for one in ledger.of("mean").acknowledged
                if one.value != 0.25
            ]
            result += checks.check_replay(f"adam {n}", ledger.of("adam"), durable_client.adam_steps)
            result += checks.check_replay(f"random {n}", ledger.of("random"), durable_client.random_sums)
            result += checks.check_reads(f"read {n}", ledger.of("read"))
            result += checks.check_reads(f"total {n}", ledger.of("total"))
            taken_by = self.ledgers[1 - n]
            result += checks.check_transfer(
                f"queue {n}", ledger.of("put"), taken_by.of("take"), rest[n].tolist()
            )
        both = checks.History()
        for n, ledger in enumerate(self.ledgers):
            both.attempts += [2 * m + n for m in ledger.of("total").attempts]
            both.acknowledged += [
                checks.Acknowledgement(2 * one.number + n, one.at, one.value, one.life)
                for one in ledger.of("total").acknowledged
            ]
        result += checks.check_count("total", both, int(found["total"]))
        return result


def test_kills_of_the_leader(tmp_path):
    with Game(tmp_path, "leader") as game:
        for _ in range(KILLS):
            game.kill_server(leads=True)
        assert game.failures() == []
        assert game.violations() == []


def test_kills_of_the_standby(tmp_path):
    with Game(tmp_path, "standby") as game:
        for _ in range(KILLS):
            game.kill_server(leads=False)
        assert game.failures() == []
        assert game.violations() == []


def test_moves_under_load(tmp_path):
    with Game(tmp_path, "moves") as game:
        for n in range(ROUNDS):
            game.move_server(replaces=n % 5 == 4)
        assert game.failures() == []
        assert game.violations() == []


def test_kills_in_the_middle_of_moves(tmp_path):
    with Game(tmp_path, "moves and kills") as game:
        for _ in range(ROUNDS):
            game.move_and_kill()
        assert game.failures() == []
        assert game.violations() == []


def test_kills_of_the_leader_and_the_standby_in_turn(tmp_path):
    with Game(tmp_path, "in turn") as game:
        for n in range(KILLS):
            game.kill_server(leads=n % 2 == 0)
        assert game.failures() == []
        assert game.violations() == []


def test_kills_of_clients(tmp_path):
    with Game(tmp_path, "clients") as game:
        for n in range(KILLS):
            game.kill_client(n % 2)
        assert game.failures() == []
        assert game.violations() == []


def test_kills_of_the_guard(tmp_path):
    with Game(tmp_path, "guard", by_hand=True, guards_in_process=False) as game:
        for _ in range(max(ROUNDS // 3, 1)):
            game.kill_guard()
        assert game.failures() == []
        assert game.violations() == []


def test_a_full_disk_costs_a_checkpoint_and_no_update(tmp_path, small_disk):
    with Game(tmp_path, "full disk") as game:
        for _ in range(max(ROUNDS // 5, 1)):
            with pytest.raises(tf.errors.ResourceExhaustedError, match="No space left on device"):
                game.save_to(small_disk)
            assert list(small_disk.glob("model*")) == []
            game.kill_server(leads=True)
        assert tf.train.load_checkpoint(game.save_to(tmp_path)).has_tensor("total")
        assert game.failures() == []
        assert game.violations() == []


def test_servers_and_clients_that_are_stopped_and_go_on(tmp_path):
    with Game(tmp_path, "stops", by_hand=True) as game:
        for _ in range(ROUNDS):
            what = game.faults.random.choice(("leader", "leader", "standby", "client"))
            if what == "client":
                game.freeze_client(game.faults.random.randrange(2))
            else:
                game.freeze_server(leads=what == "leader")
        assert game.failures() == []
        assert game.violations() == []


def test_a_leader_that_its_guard_does_not_reach_is_not_a_second_one(tmp_path):
    with Game(tmp_path, "cut off", by_hand=True, networks="guard") as game:
        for _ in range(max(ROUNDS // 5, 1)):
            game.cut_off_leader()
        assert game.failures() == []
        assert game.violations() == []


def test_servers_that_do_not_reach_each_other_are_noticed(tmp_path):
    with Game(tmp_path, "apart", networks="all but the guard") as game:
        for _ in range(max(ROUNDS // 30, 1)):
            game.cut_off_standby()
        assert game.failures() == []
        assert game.violations() == []


def test_networks_that_fail(tmp_path):
    with Game(tmp_path, "networks", by_hand=True, networks="everybody") as game:
        for _ in range(max(ROUNDS // 4, 1)):
            game.break_network()
        assert game.failures() == []
        assert game.violations() == []


@pytest.mark.skipif(
    "TENSORFLEET_CHAOS_ROUNDS" not in os.environ, reason="it shows by chance: see `make chaos`"
)
@pytest.mark.parametrize("part", ["results", "epochs", "answers"])
def test_the_ledger_notices_when_a_part_of_the_design_is_missing(tmp_path, part):
    """Without it nobody could tell whether the tests above can fail."""
    env = {"TENSORFLEET_TEST_WITHOUT": part, "TENSORFLEET_TEST_TIMEOUT": "10000"}
    options = {"by_hand": True, "networks": "guard"} if part == "epochs" else {}
    for n in range(MOST_GAMES):
        path = tmp_path / str(n)
        path.mkdir()
        with Game(path, f"without {part} {n}", env=env, **options) as game:
            with contextlib.suppress(AssertionError):  # a client has ended: the state says why
                for _ in range(KILLS_OF_GAME):
                    if part == "epochs":
                        game.cut_off_leader()
                    else:
                        game.kill_server(leads=True)
            found = game.violations()
        if found:
            print(f"found in game {n}: {found}")
            return
    pytest.fail(f"not noticed in {MOST_GAMES} games")
