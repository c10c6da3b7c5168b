"""A durable parameter server as processes: two seats, a guard that watches them, networks before them, and clients."""

import contextlib
import json
import os
import re
import tempfile
import threading
import time
from pathlib import Path

from tensorfleet.cli.guarding import PairGuard
from tensorfleet.cli.replicas import ServerPair
from tensorfleet.testing import fork_server
from tensorfleet.testing.cluster import free_addresses
from tensorfleet.testing.proxy import Proxy

CHAOS = Path(__file__).parent.parent / "chaos"
LABELS = ("ps/0", "ps-standby/0")
SECONDS = 120  # for what takes one
_END_SECONDS = 10
_LEADS = re.compile(r"(ps(?:-standby)?/0) (?:leads|goes on alone)")


class _FarGuard(PairGuard):
    """A guard that may reach the servers by another way than they each other."""

    def __init__(self, pair, listener, seen_at, by_hand):
        self._seen_at = seen_at
        super().__init__(pair, listener, by_hand=by_hand)

    def address(self, seat):
        return self._seen_at[seat]


class _Mover:
    """Who wants the task to move."""

    def __init__(self):
        self.why, self.ended = "", threading.Event()

    def on_decision(self, text):
        """A step of it."""

    def on_end(self, why):
        """It is over."""
        self.why = why
        self.ended.set()


class DurableCluster:
    """ps/0 with a standby, and the addresses of workers whose servers are in the clients.

    With `by_hand` the guard is that of a cluster that was started by hand: nobody tells it that a server has ended, and a
    server that was given up is left alone, so that it can come back. Else it is that of a run. `networks` are before the
    servers for "everybody", for the "guard" alone, or for "all but the guard".
    """

    def __init__(self, workers=2, by_hand=False, networks="", env=None, seed=0, guards_in_process=True):
        found = free_addresses(ps=2, worker=workers)
        self.listens = found["ps"]
        self.networks = [Proxy(at, seed + n, LABELS[n]) for n, at in enumerate(self.listens) if networks]
        through = [network.address for network in self.networks]
        seen_at = through if networks in ("everybody", "guard") else self.listens
        self.places = self.listens if networks in ("", "guard") else through
        self.cluster = {"ps": [self.places[0]], "worker": found["worker"]}
        self.notes = []
        self.lost = []
        self._changed = threading.Condition()
        self._env = {**os.environ, **(env or {})}
        self._by_hand = by_hand
        self._closing = False
        self._folder = tempfile.TemporaryDirectory()
        self._seats = [None, None]
        self._scripts = []
        self.guard_process = self._guard = None
        if guards_in_process:
            pair = ServerPair(LABELS[0], LABELS, tuple(self.places), "ps", 0, self.cluster)
            self._guard = _FarGuard(pair, self, seen_at, by_hand)
        self._start(0, "waiting")
        self._start(1, "standing by")
        if self._guard is not None:
            self._guard.start()
        else:
            self.start_guard()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start_guard(self):
        """Starts `tensorfleet guard` in a process of its own: `guard_process`."""
        notes = Path(self._folder.name) / "guard"
        notes.write_text("")
        at = f"ps/0={','.join(self.places)}"
        arguments = [str(notes), "guard", "--cluster", json.dumps(self.cluster), "--task", at]
        script = str(CHAOS / "durable_guard.py")
        child = fork_server.start("guard", script=script, arguments=arguments, env=self._env)
        self.guard_process = child
        self._scripts.append(child)
        threading.Thread(target=self._follow, args=(notes, child), daemon=True).start()

    def _follow(self, path, child):
        with open(path) as notes:
            while not child.ended.wait(0.02):
                for line in notes:
                    self.on_note(line.strip())

    # -- the guard's listener --------------------------------------------------------------------------

    def on_restart(self, label):
        """Puts a new standby into a seat."""
        seat = LABELS.index(label)
        process = self._seats[seat]
        if self._by_hand and process is not None and process.poll() is None:
            return  # its machine cannot be reached, perhaps; it becomes a standby when it answers
        if process is not None:
            process.kill()
            process.wait(SECONDS)
        if not self._closing:
            self._start(seat, "standing by")

    def on_lost(self, label, cause, text):
        """The state is lost."""
        self.on_note(f"LOST {label} ({cause}): {text}")
        self.lost.append(text)

    def on_decision(self, task, text):
        """A decision."""
        self.on_note(text)

    def on_note(self, text):
        """A decision, or a complaint."""
        print(f"[guard] {time.monotonic():.3f} {text}", flush=True)
        with self._changed:
            self.notes.append(text)
            self._changed.notify_all()

    # -- the servers -----------------------------------------------------------------------------------

    def _start(self, seat, state):
        arguments = [json.dumps(self.cluster), self.listens[seat], json.dumps(self.places), state]
        if not self._by_hand:
            self._guard.started(LABELS[seat])
        script = str(CHAOS / "durable_server.py")
        child = fork_server.start(LABELS[seat], script=script, arguments=arguments, env=self._env)
        self._seats[seat] = child
        threading.Thread(target=self._watch, args=(seat, child), daemon=True).start()

    def _watch(self, seat, child):
        while not child.ended.wait(SECONDS):
            pass
        if self._closing:
            return
        if not self._by_hand:
            self._guard.exited(LABELS[seat], f"died (signal {-child.returncode})")
        elif self._seats[seat] is child:
            self._start(seat, "standing by")  # as the person does who has started it

    def wait_for(self, text, since=0):
        """Waits for a decision that has this text; gives how many there are up to it."""
        limit = time.monotonic() + SECONDS
        with self._changed:
            while True:
                for n, note in enumerate(self.notes[since:], since):
                    if text in note:
                        return n + 1
                    assert not note.startswith("LOST"), note
                assert time.monotonic() < limit, (
                    f"no decision '{text}' in {SECONDS} s after {self.notes[since:]}"
                )
                self._changed.wait(1.0)

    def wait_for_pair(self, since=0):
        """Waits until the task has a standby again; gives the number of that decision."""
        return self.wait_for("as its standby", since)

    def move(self, replaces):
        """Has the standby lead, or a new one in its seat; returns when that is done, or why it is not."""
        mover = _Mover()
        assert self._guard.begin_move(mover, replaces)
        assert mover.ended.wait(SECONDS), f"no end of the move in {SECONDS} s after {self.notes}"
        return mover.why

    def is_paired(self):
        """Whether the last decision is one for a leader with a standby."""
        return "as its standby" in self.notes[-1]

    def leader(self):
        """The seat that leads by the last decision."""
        found = [_LEADS.search(note) for note in self.notes]
        return LABELS.index([match[1] for match in found if match][-1])

    def process(self, seat):
        """The process in a seat."""
        return self._seats[seat]

    def script(self, name, *arguments):
        """Runs a script of tests/chaos in a process of its own."""
        arguments = [str(one) for one in arguments]
        child = fork_server.start(name, script=str(CHAOS / name), arguments=arguments, env=self._env)
        self._scripts.append(child)
        return child

    def close(self):
        """Ends everything."""
        self._closing = True
        if self._guard is not None:
            self._guard.close()
        children = [*self._scripts, *self._seats]
        for child in children:
            child.kill()
        for child in children:
            with contextlib.suppress(Exception):
                child.wait(_END_SECONDS)
        for network in self.networks:
            network.close()
        self._folder.cleanup()
