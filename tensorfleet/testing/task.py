"""One task of a `ProcessCluster`: python -m tensorfleet.testing.task CLUSTER JOB INDEX."""

from __future__ import annotations

import json
import os
import sys
import threading

from tensorfleet.cluster.server import Server


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    server = Server(json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    server.join()
