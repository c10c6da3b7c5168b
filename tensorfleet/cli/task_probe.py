"""`/healthz` and `/metrics` of one task, at TENSORFLEET_METRICS: for Kubernetes' probes and for Prometheus.

The page of a run has the metrics of all its tasks. This is for tasks that run where nobody sees the page.
"""

from __future__ import annotations

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tensorfleet.base import logging, settings
from tensorfleet.cli.dashboard.access import Access
from tensorfleet.cli.dashboard.metrics import exposition
from tensorfleet.cli.dashboard.overview import FleetView, TaskView
from tensorfleet.cli.dashboard.server import place_of
from tensorfleet.cli.dashboard.snapshots import snapshot_of

_REQUEST_SECONDS = 5.0  # for a client to send its request and read the answer


def serve_probe() -> None:
    """Begins to answer, where the setting asks for it. A port that is in use is a line in the log, not an error."""
    text = settings.METRICS()
    if not text:
        return
    try:
        place = place_of(text)
        server = _Probe((place.host, place.port), _Answer)
    except (OSError, ValueError) as error:
        logging.warning(
            "No metrics at %s (%s): %s. The task goes on without.", text, settings.METRICS.name, error
        )
        return
    os.register_at_fork(after_in_child=server.socket.close)
    threading.Thread(target=server.serve_forever, name="tensorfleet-probe", daemon=True).start()


def own_metrics() -> str:
    """The metrics of this process, as Prometheus reads them."""
    from tensorfleet.cluster.inspection import own_task, stats

    server = own_task.server_here(None)
    label = own_task.label(server)
    now = time.time()
    snapshot = snapshot_of(label, stats.report(server, {}).content, now)
    return exposition(FleetView(now, {label: TaskView(label, "running", snapshot=snapshot)}), [])


class _Probe(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is none of the script's business."""


class _Answer(BaseHTTPRequestHandler):
    timeout = _REQUEST_SECONDS

    def do_GET(self) -> None:
        """Answers the two paths that there are."""
        path = self.path.partition("?")[0]
        if path == "/healthz":
            self._reply(200, "application/json", json.dumps({"status": "ok"}))
        elif path != "/metrics":
            self._reply(404, "text/plain", "There are /healthz and /metrics.\n")
        elif not (key := settings.DASHBOARD_KEY()):
            self._reply(
                401, "text/plain", f"Set {settings.DASHBOARD_KEY.name} in this task to read its metrics.\n"
            )
        elif not Access(key, 0).has_bearer(self.headers.get("Authorization")):
            self._reply(
                401, "text/plain", f"Send `Authorization: Bearer KEY` with {settings.DASHBOARD_KEY.name}.\n"
            )
        else:
            self._reply(200, "text/plain; version=0.0.4", own_metrics())

    def _reply(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """A probe each second is no news."""
