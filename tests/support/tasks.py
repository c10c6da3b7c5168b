"""Programs as tasks of a cluster: real processes, each told its task as a launcher tells it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import tensorfleet

SECONDS = 240
ROOT = str(Path(tensorfleet.__file__).parent.parent)


class Tasks:
    """Processes that are ended with the block, whatever happens."""

    def __init__(self):
        self._started = []

    def start(self, program, *arguments, task=None, **told):
        """Starts a program; `task` is its (cluster, job, index), to which TF_CONFIG adds what else is told."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")])}
        if task is not None:
            cluster, job, index = task
            told = {"cluster": cluster, "task": {"type": job, "index": index}, **told}
            environment["TF_CONFIG"] = json.dumps(told)
        result = subprocess.Popen(
            [sys.executable, str(program), *map(str, arguments)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._started.append(result)
        return result

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self._started:
            process.kill()
            process.wait()
            process.stdout.close()


def output(process):
    """What a process says to its end, which must be a good one."""
    text, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, text
    return text


def read_until(process, found):
    """Reads what a process says up to the first line for which a function gives something, and gives that."""
    results = []
    for line in process.stdout:
        results.append(line)
        if result := found(line):
            return result
    raise AssertionError("".join(results))
