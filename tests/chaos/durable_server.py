"""A server of the durable task ps/0: python durable_server.py CLUSTER ADDRESS PLACES STATE.

CLUSTER and PLACES are JSON; ADDRESS is where this server listens; STATE is `waiting` or `standing by`.
TENSORFLEET_TEST_WITHOUT names a part of the design that this server does without: the tests must notice.
TENSORFLEET_TEST_POINTS is a folder for the points at which a test has this server fail.
"""

import collections
import json
import os
import sys
import threading
import time

from tensorfleet.cluster.durability import replica, results, role, standby_link
from tensorfleet.cluster.server import Server
from tensorfleet.testing import fault_points

LAG_SECONDS = 0.05


def without_results():
    """A request that comes again is done again."""
    results.Results.of_stage = lambda self, request: None
    results.Results.of_items = lambda self, request: {}


def without_epochs():
    """A server takes commits of a server that was given up: it looks at no epoch, and cuts off nobody."""
    replica.Replica._cut_off = lambda self: None
    standby_link.StandbyLink.leads_in = lambda self: 0
    refuse = role.Role.on_copy

    def on_copy(self, epoch, number, part):
        if epoch < self.epoch:
            return role.Taken.TAKE
        return refuse(self, epoch, number, part)

    role.Role.on_copy = on_copy
    apply = replica.Replica._apply
    replica.Replica._apply = lambda self, change: (
        None if self.role.state is role.State.LEADING else apply(self, change)
    )


def without_answers():
    """A server answers its clients when it has noted what to send to the standby."""
    send = standby_link.StandbyLink.send
    waiting = collections.deque()
    sent = threading.Condition()

    def send_later():
        while True:
            with sent:
                while not waiting:
                    sent.wait(60)
            time.sleep(LAG_SECONDS)
            while waiting:
                link, arguments = waiting.popleft()
                try:
                    send(link, *arguments)
                except Exception:
                    link.has_failed = True

    def note(self, epoch, number, part, changes):
        if part:  # a copy of all that there is ends behind what was noted
            while waiting:
                time.sleep(0.001)
            return send(self, epoch, number, part, changes)
        if getattr(self, "has_failed", False):
            raise ConnectionError("the standby was lost")
        with sent:
            waiting.append((self, (epoch, number, part, changes)))
            sent.notify()

    threading.Thread(target=send_later, daemon=True).start()
    standby_link.StandbyLink.send = note


WITHOUT = {"results": without_results, "epochs": without_epochs, "answers": without_answers}


def main(cluster, address, places, state):
    part = os.environ.get("TENSORFLEET_TEST_WITHOUT")
    if part:
        WITHOUT[part]()
    points = os.environ.get("TENSORFLEET_TEST_POINTS")
    if points:
        fault_points.watch(os.path.join(points, str(json.loads(places).index(address))))
    jobs = json.loads(cluster) | {"ps": [address]}
    server = Server(jobs, "ps", 0, start=False)
    server.make_durable(json.loads(places), role.State(state))
    server.start()
    server.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
