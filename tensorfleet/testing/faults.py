"""Faults of processes and networks, chosen by a seed: the same seed gives the same faults in the same order.

    faults = Faults(seed=7)
    faults.pause()                                  # to a random moment
    faults.kill(child)                              # SIGKILL
    faults.freeze(child, 0.1, 3.0)                  # SIGSTOP, and SIGCONT after 0.1 to 3 s
    faults.break_network(cluster.network("ps", 0))  # cut, one-way cut or delay, for a moment

A child is what `ProcessCluster.process` or `fork_server.start` gives. What is done is printed, with its moment.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from dataclasses import dataclass
from typing import Literal, get_args

from tensorfleet.testing.fork_server import Child
from tensorfleet.testing.proxy import Proxy, Way

_END_SECONDS = 60.0

NetworkFault = Literal["cut", "cut to the server", "cut to the client", "delay"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that has happened."""

    what: str
    label: str
    #: `time.monotonic()` when it began, and when it was over
    began: float
    ended: float


class Faults:
    """A source of faults. One thread at a time uses it."""

    def __init__(self, seed: int | str) -> None:
        self.seed = seed
        self.random = random.Random(f"faults {seed}")
        #: all that was done
        self.done: list[Fault] = []
        self._never = threading.Event()

    def pause(self, seconds: float = 0.05) -> None:
        """Lets a random time of up to `seconds` pass: to a random point of a step."""
        self._never.wait(self.random.uniform(0, seconds))

    def kill(self, child: Child) -> Fault:
        """Kills a process, and waits until it is gone."""
        began = time.monotonic()
        child.kill()
        child.wait(_END_SECONDS)
        return self._note("kill", child.label, began)

    def freeze(self, child: Child, least: float = 0.1, most: float = 3.0) -> Fault:
        """Stops a process for a random time: its connections stay open, and nobody answers. Then it goes on."""
        seconds = self.random.uniform(least, most)
        began = time.monotonic()
        child.send_signal(signal.SIGSTOP)
        try:
            child.ended.wait(seconds)  # somebody may kill it meanwhile
        finally:
            child.send_signal(signal.SIGCONT)
        return self._note(f"stop for {seconds:.2f} s", child.label, began)

    def break_network(
        self, network: Proxy, what: NetworkFault | None = None, least: float = 0.1, most: float = 3.0
    ) -> Fault:
        """Has a network fail for a random time, in a random way if none is given. Then it is healed."""
        what = what or self._network_fault()
        seconds = self.random.uniform(least, most)
        began = time.monotonic()
        if what == "cut":
            network.cut()
        elif what == "delay":
            network.delay(self.random.uniform(0.01, 0.2))
        else:
            way: Way = "to the server" if what == "cut to the server" else "to the client"
            network.partition(way)
        if what != "cut":
            self._never.wait(seconds)
            network.heal()
        return self._note(what, network.name, began)

    def _network_fault(self) -> NetworkFault:
        chosen: NetworkFault = self.random.choice(get_args(NetworkFault))
        return chosen

    def _note(self, what: str, label: str, began: float) -> Fault:
        fault = Fault(what, label, began, time.monotonic())
        self.done.append(fault)
        print(f"[faults] {began:.3f} {what}: {label}", flush=True)
        return fault
