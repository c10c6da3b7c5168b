"""Serves the page over a simulated run, by the server that real runs have."""

from __future__ import annotations

import argparse
import threading

from tensorfleet.cli.dashboard.server import ListenPlace, PageServer, listen
from tensorfleet.cli.dashboard.simulated import SimulatedRun

_WAIT_SECONDS = 3600.0


class SimulatedPage:
    """The page of a simulated run, on loopback. `port` 0 takes a free one."""

    def __init__(self, run: SimulatedRun, port: int = 0, key: str | None = None) -> None:
        self.run = run
        page = listen(ListenPlace(port=port), key)
        #: what to open, with and without the key
        self.address, self.plain_address = page.address, page.plain_address
        self.key, self.port = page.access.key, page.access.port
        self._server = PageServer(run, page)

    def start(self) -> SimulatedPage:
        """Serves in a thread of its own."""
        self._server.start()
        return self

    def wait(self) -> None:
        """Waits until the server ends."""
        while not self._server.wait(_WAIT_SECONDS):
            pass

    def stop(self) -> None:
        """Stops serving and frees the port."""
        self._server.stop()


def main() -> None:
    """Serves until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Serve the page over a simulated run.")
    parser.add_argument("--ps", type=int, default=2, help="parameter servers")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--hostile", action="store_true", help="put HTML into every name and line")
    parser.add_argument("--kill", metavar="TASK", help="kill this task after some seconds")
    parser.add_argument("--after", type=float, default=10.0, metavar="SECONDS", help="when to kill it")
    options = parser.parse_args()
    run = SimulatedRun(options.ps, options.workers, hostile=options.hostile)
    page = SimulatedPage(run, options.port).start()
    print(f"Open {page.address}", flush=True)
    if options.kill:
        threading.Timer(options.after, run.kill, [options.kill]).start()
    try:
        page.wait()
    except KeyboardInterrupt:
        page.stop()
