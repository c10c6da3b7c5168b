"""An engine of one's own: each task is started by `mpirun`.

tensorfleet run --on mpi --engine-arg hosts=node1,node2 --ps 1 --workers 2 train.py

A package makes it known to the command by an entry point in its pyproject.toml:

[project.entry-points."tensorfleet.engines"]
mpi = "mpi_engine:MpiEngine"
"""

import itertools
import os
import shutil
import signal

from tensorfleet.cli.engines.base import EngineError, EngineNode, RunEngine
from tensorfleet.cli.engines.child import ChildStart, ChildTask, Guardian
from tensorfleet.cli.plan import TOKEN, Place

FIRST_PORT = 22220


class MpiEngine(RunEngine):
    """Starts the tasks on the hosts in turn. There is always room."""

    name = "mpi"

    def __init__(self, options):
        super().__init__(options)
        if shutil.which("mpirun") is None:
            raise EngineError("mpirun is not installed. Install an MPI, for example Open MPI.")
        given = dict(argument.split("=", 1) for argument in options.engine_arguments)
        self._hosts = itertools.cycle(given.get("hosts", "localhost").split(","))
        self._ports = itertools.count(FIRST_PORT)
        self._guardian = Guardian()  # ends the tasks if the launcher is killed
        self._children = []

    def reserve(self, wanted, listener):
        """The next host, with a port that no other task of the run has."""
        return {one.label: self._next_place() for one in wanted}

    def start(self, task, listener):
        """mpirun passes its input on: the token comes first, and at the end of the input the task ends."""
        told = {k: v for k, v in task.environment.items() if k != TOKEN} | {"TENSORFLEET_LAUNCHER": "stdin"}
        passed = itertools.chain.from_iterable(("-x", f"{key}={value}") for key, value in told.items())
        command = ["mpirun", "-n", "1", "--host", task.host.name, *passed, *task.command]
        start = ChildStart(command, dict(os.environ), first_line=task.environment[TOKEN])
        child = ChildTask(task.label, start, listener.on_line, listener.on_exit, self._guardian)
        self._children.append(child)
        return child

    def seek(self, wanted, listener):
        """A task that is lost, or one more worker, gets the next host."""
        listener.on_place(wanted.label, self._next_place())

    def close(self):
        """Ends what still runs."""
        for child in self._children:
            child.send(signal.SIGKILL)
        self._guardian.close()

    def _next_place(self):
        host = next(self._hosts)
        return Place(f"{host}:{next(self._ports)}", EngineNode(host))
