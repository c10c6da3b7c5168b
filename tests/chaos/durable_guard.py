"""The command with its output in a file: python durable_guard.py FILE guard --cluster ..."""

import sys

from tensorfleet.cli.command import main

if __name__ == "__main__":
    sys.stdout = open(sys.argv.pop(1), "w", buffering=1)  # noqa: SIM115 - open as long as the process lives
    main()
